#!/usr/bin/env bash
# Runs the Spring interop program, with all its cases, against a fresh cluster.
#   run.sh SOURCE_ROOT BUILD_DIR
# Exit 77 (ctest: skipped) when Maven or its registry cannot be had; never when the client itself fails.
set -euo pipefail
root=$1 build=$2
here=$root/tests/interop/spring
target=$build/interop-spring
. "$root/tests/interop/maven.sh"
JAVAC_OPTIONS=-parameters build_java "$here" "$target" rocketmq-spring-boot-starter
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
timeout "${TRIAD_INTEROP_SECONDS:-170}" "$build/tests/with_cluster" --root "$root" --programs "$build/bin" -- \
  java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Duser.home="$scratch" -Drocketmq.client.logRoot="$target/logs" \
  -cp "$target/classes:$(cat "$target/classpath.txt")" triad.SpringInterop {namesrv}
