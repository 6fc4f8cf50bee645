#!/usr/bin/env bash
# Runs one case of the Java interop program against a fresh cluster.
#   run.sh SOURCE_ROOT BUILD_DIR CASE
# Exit 77 (ctest: skipped) when Maven or its registry cannot be had; never when the client itself fails.
set -euo pipefail
root=$1 build=$2 case=$3
here=$root/tests/interop/java
target=$build/interop-java
mkdir -p "$target"
if ! command -v mvn >/dev/null || ! command -v java >/dev/null; then
  echo "skipped: no java or mvn on this machine (bin/setup installs them)"
  exit 77
fi
(
  flock 9  # the cases share one build
  if [ ! -f "$target/classpath.txt" ] || [ "$here/pom.xml" -nt "$target/classpath.txt" ]; then
    if ! mvn -q -B -f "$here/pom.xml" dependency:build-classpath -Dmdep.outputFile="$target/classpath.tmp" >"$target/mvn.log" 2>&1; then
      tail -5 "$target/mvn.log"
      echo "skipped: Maven cannot get rocketmq-client (see $target/mvn.log)"
      exit 77
    fi
    mv "$target/classpath.tmp" "$target/classpath.txt"
  fi
  mkdir -p "$target/classes"
  javac -nowarn -cp "$(cat "$target/classpath.txt")" -d "$target/classes" "$here"/src/main/java/triad/*.java
) 9>"$target/lock"
exec timeout 170 "$build/tests/with_cluster" --root "$root" --programs "$build/bin" \
  --set "messageDelayLevel=1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s" -- \
  java -Xmx256m -XX:+UseSerialGC -Drocketmq.client.logRoot="$target/logs" -Drocketmq.client.logLevel=ERROR \
  -cp "$target/classes:$(cat "$target/classpath.txt")" triad.Interop {namesrv} "$case"
