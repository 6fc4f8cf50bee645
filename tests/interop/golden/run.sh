#!/usr/bin/env bash
# Records what a real client and the original server say to each other: tests/remoting/golden/CLIENT.txt, which
# tests/unit/remoting/golden_capture_test.cc reads.
#   run.sh SOURCE_ROOT BUILD_DIR CLIENT...        of: java-json java-binary (5.3.3) java-4.9.8 java-5.5.0 spring go node python
# The clients' own scripts run unchanged; instead of a cluster of ours they get the original's servers behind proxy.py.
# Exit 77: Maven or a client's registry cannot be had.
set -euo pipefail
root=$(cd "$1" && pwd) build=$(cd "$2" && pwd)
shift 2
here=$root/tests/interop/golden
target=$build/interop-golden
. "$root/tests/interop/skip.sh"
mkdir -p "$target/home/conf" "$target/tests"
for file in logback_broker.xml logback_namesrv.xml; do
  echo '<configuration><root level="OFF"/></configuration>' >"$target/home/conf/$file"
done
if [ ! -f "$target/server.classpath" ]; then
  if ! mvn -q -B -f "$root/tests/interop/mqadmin/pom.xml" -P server -Drocketmq.version=5.3.3 \
    dependency:build-classpath -Dmdep.outputFile="$target/server.tmp" >"$target/mvn.log" 2>&1; then
    skip "Maven cannot get the original server (see $target/mvn.log)" probe_maven
  fi
  mv "$target/server.tmp" "$target/server.classpath"
fi
ln -sfn "$build/bin" "$target/bin"
for made in "$build"/interop-*; do  # what the clients' scripts have fetched before
  [ "$made" = "$target" ] || ln -sfn "$made" "$target/"
done

# with_cluster's place: starts the original's servers and the proxy, then the command behind "--".
cat >"$target/tests/with_cluster" <<SCRIPT
#!/usr/bin/env bash
set -euo pipefail
while [ "\$1" != -- ]; do shift; done
shift
exec bash "$here/with_original.sh" "$target" "$here/proxy.py" "\$TRIAD_GOLDEN" "\$@"
SCRIPT
chmod +x "$target/tests/with_cluster"

mkdir -p "$root/tests/remoting/golden"
for client in "$@"; do
  unset TRIAD_JAVA_CLIENT TRIAD_JAVA_HEADER TRIAD_GOLDEN_KEEP
  export TRIAD_GOLDEN=$root/tests/remoting/golden/$client.txt TRIAD_INTEROP_SECONDS=300
  case $client in
    java-json) TRIAD_JAVA_HEADER=JSON script=java
      cases="send_sync send_oneway send_batch orderly concurrent pull tags retry_dead_letter query_by_key running_info consume_directly reset_running offset_by_time client_status request_reply" ;;  # 5.3.3 gives its requests up, their replies come all the same
    java-binary) TRIAD_JAVA_HEADER=ROCKETMQ script=java
      cases="send_sync send_batch orderly concurrent pull query_by_key running_info" ;;
    java-4.9.8 | java-5.5.0)
      export TRIAD_JAVA_CLIENT=${client#java-} TRIAD_GOLDEN_KEEP=1
      script=java cases="send_sync send_batch orderly concurrent pull broadcast delay query_by_key retry_dead_letter request_reply" ;;
    spring) script=spring cases="" TRIAD_GOLDEN_KEEP=1 ;;
    go) script=go cases="send_sync send_batch orderly concurrent pull tags retry_dead_letter" ;;
    node) script=node cases="send_sync orderly concurrent broadcast delay retry" ;;
    python) script=python cases="send_sync send_batch orderly concurrent retry" ;;
    *) echo "no client $client" && exit 1 ;;
  esac
  export TRIAD_JAVA_HEADER=${TRIAD_JAVA_HEADER:-JSON} TRIAD_GOLDEN_KEEP=${TRIAD_GOLDEN_KEEP:-2}
  # shellcheck disable=SC2086  # a list of cases
  bash "$root/tests/interop/$script/run.sh" "$root" "$target" $cases || echo "$client: some cases did not pass"
  echo "$client: $(wc -l <"$TRIAD_GOLDEN") frames, $(wc -c <"$TRIAD_GOLDEN") bytes"
done
