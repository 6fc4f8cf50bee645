#!/usr/bin/env bash
# Runs the original's mqadmin, and the calls of its dashboard and exporter, against the original server and against
# ours, and compares what they print.
#   run.sh SOURCE_ROOT BUILD_DIR [VERSION]     of the tools: 5.3.3 (default), or 4.9.8, whose servers are not in Maven:
#                                              they are compared with those of 4.9.7
# TRIAD_MQADMIN_SHORT=1: only the verbs in front of "start: clients".
# Exit 1: a difference that nothing explains; 77 (ctest: skipped): Maven or its registry cannot be had.
set -euo pipefail
root=$(cd "$1" && pwd) build=$(cd "$2" && pwd)
version=${3:-5.3.3}
server=$version
[ "$version" != 4.9.8 ] || server=4.9.7
here=$root/tests/interop/mqadmin
target=$build/interop-mqadmin
outputs=$target
verbs=$here/verbs.txt
if [ -n "${TRIAD_MQADMIN_SHORT:-}" ]; then
  outputs=$target/short
  verbs=$outputs/verbs.txt
fi
mkdir -p "$target/home/conf" "$outputs"
[ "$verbs" = "$here/verbs.txt" ] || sed '/^start: clients/,$d' "$here/verbs.txt" >"$verbs"
# Both look for their logging there.
for file in logback_tools.xml logback_broker.xml logback_namesrv.xml; do
  echo '<configuration><root level="OFF"/></configuration>' >"$target/home/conf/$file"
done
export ROCKETMQ_HOME=$target/home
quiet="-Drocketmq.log.root.level=OFF -Drocketmq.client.logLevel=OFF -Drocketmq.client.logRoot=$target/logs"
quiet="$quiet -Duser.home=$target/home -Djava.security.manager=allow -XX:+UseSerialGC -XX:TieredStopAtLevel=1"

# classpath PROFILE VERSION: the file with the class path, made once.
classpath() {
  local file=$target/$1-$2.classpath
  if [ ! -f "$file" ]; then
    mvn -q -B -f "$here/pom.xml" -P "$1" -Drocketmq.version="$2" dependency:build-classpath \
      -Dmdep.outputFile="$file.tmp" >"$target/mvn.log" 2>&1 || return 1
    mv "$file.tmp" "$file"
  fi
  cat "$file"
}
. "$root/tests/interop/skip.sh"
need java "no java on this machine (bin/setup installs it)"
need mvn "no mvn on this machine (bin/setup installs it)"
server_path=$(classpath server $server) || skip "Maven cannot get the original server (see $target/mvn.log)" probe_maven

pids=""
trap 'for pid in $pids; do kill "$pid" 2>/dev/null || true; done' EXIT

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
# until FILE TEXT: waits until the file has the text, at most two minutes.
until_said() {
  for _ in $(seq 120); do
    grep -q "$2" "$1" && return 0
    sleep 1
  done
  cat "$1"
  return 1
}
# start WHOSE: a name server and one broker; sets address to the name server's.
start() {
  local store port
  store=$(mktemp -d "$target/$1-XXXXXX")
  port=$(free_port)
  address=127.0.0.1:$port
  cat >"$store/namesrv.conf" <<CONF
listenPort=$port
kvConfigPath=$store/kv.json
configStorePath=$store/namesrv.properties
CONF
  cat >"$store/broker.conf" <<CONF
brokerClusterName=DefaultCluster
brokerName=RaftNode00
brokerIP1=127.0.0.1
listenPort=$(free_port)
namesrvAddr=$address
storePathRootDir=$store/store
mappedFileSizeCommitLog=16777216
traceTopicEnable=true
CONF
  touch "$store/broker.out"
  if [ "$1" = ours ]; then
    echo "diskSpaceFreeFloorBytes=0" >>"$store/broker.conf"
    "$build/bin/triad-namesrv" -c "$store/namesrv.conf" >"$store/namesrv.out" 2>&1 &
    pids="$pids $!"
    "$build/bin/triad-broker" -c "$store/broker.conf" >"$store/broker.out" 2>&1 &
    pids="$pids $!"
  else
    echo "rocketmqHome=$ROCKETMQ_HOME" >>"$store/namesrv.conf"
    printf 'storePathCommitLog=%s\ndiskMaxUsedSpaceRatio=95\n' "$store/store/commitlog" >>"$store/broker.conf"
    # shellcheck disable=SC2086  # a list of options
    java $quiet -Xmx256m -cp "$server_path" org.apache.rocketmq.namesrv.NamesrvStartup -c "$store/namesrv.conf" \
      >"$store/namesrv.out" 2>&1 &
    pids="$pids $!"
    # shellcheck disable=SC2086
    java $quiet -Xmx768m -XX:MaxDirectMemorySize=512m -Drocketmq.broker.diskSpaceWarningLevelRatio=0.99 \
      -cp "$server_path" org.apache.rocketmq.broker.BrokerStartup -c "$store/broker.conf" >"$store/broker.out" 2>&1 &
    pids="$pids $!"
  fi
  until_said "$store/broker.out" "boot success"
}
stop() {
  for pid in $pids; do
    kill "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  pids=""
}

tools=$(classpath tools "$version") || skip "Maven cannot get rocketmq-tools $version (see $target/mvn.log)" probe_maven
classes=$outputs/classes-$version
mkdir -p "$classes"
javac -nowarn -cp "$tools" -d "$classes" "$here"/src/main/java/triad/*.java
java="java $quiet -Xmx256m -cp $classes:$tools"
# shellcheck disable=SC2086  # lists of options
$java triad.VerbOptions >"$outputs/options-$version.txt"
for whose in theirs ours; do
  start $whose
  rm -rf "$outputs/$whose-$version"
  # shellcheck disable=SC2086
  (cd "$target" && timeout 900 $java triad.RunVerbs "$address" "$verbs" "$outputs/$whose-$version" "$here")
  stop
done
python3 "$here/compare.py" "$root" "$outputs" "$build/bin/triad-admin" "$version"
