#!/usr/bin/env bash
# Runs what the original brings along, unmodified, against a fresh cluster: its examples and benchmark classes
# (Examples.java), and those of its own tests that can do without servers inside their JVM (own_tests.txt).
#   run.sh SOURCE_ROOT BUILD_DIR examples|CASE...        cases of own_tests.txt
# Exit 77 (ctest: skipped) when Maven or its registry cannot be had; never when something fails.
set -euo pipefail
root=$1 build=$2
shift 2
version=5.5.0
here=$root/tests/interop/original
target=$build/interop-original/$version
. "$root/tests/interop/maven.sh"
build_java "$here" "$target" "rocketmq-test and rocketmq-example $version" -Drocketmq.version="$version"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cat >"$scratch/inside.sh" <<'INSIDE'
namesrv=$1 here=$2 scratch=$3 path=$4
shift 4
java=(java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Duser.home="$scratch" -Dtriad.namesrv="$namesrv"
  -Drocketmq.client.logLevel=ERROR -Drocketmq.log.root.level=OFF -Drocketmq.client.localOffsetStoreDir="$scratch"
  -Dcom.rocketmq.remoting.client.connect.timeout=15000 -cp "$path")
code=0
for case in "$@"; do
  if [ "$case" = examples ]; then
    "${java[@]}" triad.Examples "$namesrv" 2>>"$scratch/err" || code=1
  else
    # shellcheck disable=SC2046  # a list of classes
    "${java[@]}" triad.OwnTests "$case" $(sed -n "s/^$case: //p" "$here/own_tests.txt") >"$scratch/$case.out" \
      2>>"$scratch/err" || code=1
    grep "^case " "$scratch/$case.out" || true
  fi
done
[ $code = 0 ] || tail -60 "$scratch/err"
exit $code
INSIDE
# Some examples dial 127.0.0.1:9876, which somebody else may have: they get a loopback of their own.
alone=()
if unshare -n true 2>/dev/null; then
  # shellcheck disable=SC2016  # expanded inside
  alone=(unshare -n bash -c 'ip link set lo up && exec "$@"' bash)
fi
timeout "${TRIAD_INTEROP_SECONDS:-600}" "${alone[@]}" "$build/tests/with_cluster" --root "$root" --programs "$build/bin" -- \
  bash "$scratch/inside.sh" {namesrv} "$here" "$scratch" "$target/classes:$(cat "$target/classpath.txt")" "$@"
