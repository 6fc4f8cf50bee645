#!/usr/bin/env bash
# Runs cases of the Java interop program against a fresh cluster.
#   run.sh SOURCE_ROOT BUILD_DIR CASE...
# TRIAD_JAVA_CLIENT names the client's version (default 5.3.3), TRIAD_JAVA_HEADER its header encoding (JSON, ROCKETMQ).
# TRIAD_DELAY_TABLE is the brokers' messageDelayLevel: eighteen times 1s when it is not given, "default": not in their files.
# Exit 77 (ctest: skipped) when Maven or its registry cannot be had; never when the client itself fails.
set -euo pipefail
root=$1 build=$2
shift 2
version=${TRIAD_JAVA_CLIENT:-5.3.3}
header=${TRIAD_JAVA_HEADER:-JSON}
here=$root/tests/interop/java
target=$build/interop-java/$version
. "$root/tests/interop/maven.sh"
build_java "$here" "$target" "rocketmq-client $version" -Drocketmq.version="$version"
set_delays=()
delays=${TRIAD_DELAY_TABLE:-1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s}
[ "$delays" = default ] || set_delays=(--set "messageDelayLevel=$delays")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
TRIAD_ADMIN=$build/bin/triad-admin timeout "${TRIAD_INTEROP_SECONDS:-170}" "$build/tests/with_cluster" --root "$root" \
  --programs "$build/bin" "${set_delays[@]}" -- \
  java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Drocketmq.serialize.type="$header" \
  -Dcom.rocketmq.remoting.client.connect.timeout=15000 -Drocketmq.client.logRoot="$target/logs" \
  -Drocketmq.client.logLevel=ERROR -Duser.home="$scratch" \
  -Drocketmq.client.localOffsetStoreDir="$scratch" -cp "$target/classes:$(cat "$target/classpath.txt")" \
  triad.Interop {namesrv} "$@"
