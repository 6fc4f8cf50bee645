#!/usr/bin/env bash
# Runs the Spring interop program, with all its cases, against a fresh cluster.
#   run.sh SOURCE_ROOT BUILD_DIR
# Exit 77 (ctest: skipped) when Maven or its registry cannot be had; never when the client itself fails.
set -euo pipefail
root=$1 build=$2
here=$root/tests/interop/spring
target=$build/interop-spring
mkdir -p "$target/classes"
if ! command -v mvn >/dev/null || ! command -v java >/dev/null; then
  echo "skipped: no java or mvn on this machine (bin/setup installs them)"
  exit 77
fi
(
  flock 9
  if [ ! -f "$target/classpath.txt" ] || [ "$here/pom.xml" -nt "$target/classpath.txt" ]; then
    if ! mvn -q -B -f "$here/pom.xml" dependency:build-classpath -Dmdep.outputFile="$target/classpath.tmp" \
      >"$target/mvn.log" 2>&1; then
      tail -5 "$target/mvn.log"
      echo "skipped: Maven cannot get rocketmq-spring-boot-starter (see $target/mvn.log)"
      exit 77
    fi
    mv "$target/classpath.tmp" "$target/classpath.txt"
  fi
  javac -nowarn -parameters -cp "$(cat "$target/classpath.txt")" -d "$target/classes" "$here"/src/main/java/triad/*.java
) 9>"$target/lock"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
timeout "${TRIAD_INTEROP_SECONDS:-170}" "$build/tests/with_cluster" --root "$root" --programs "$build/bin" -- \
  java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Duser.home="$scratch" -Drocketmq.client.logRoot="$target/logs" \
  -cp "$target/classes:$(cat "$target/classpath.txt")" triad.SpringInterop {namesrv}
