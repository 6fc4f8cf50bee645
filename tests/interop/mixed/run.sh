#!/usr/bin/env bash
# A group of ours and a broker of the original, both at a name server of ours and one of the original.
#   run.sh SOURCE_ROOT BUILD_DIR
# TRIAD_JAVA_SERVER names the original's version (default 5.3.3).
# Exit 77 (ctest: skipped) when Maven or its registry cannot be had; never when something fails.
set -euo pipefail
root=$1 build=$2
version=${TRIAD_JAVA_SERVER:-5.3.3}
here=$root/tests/interop/mixed
target=$build/interop-mixed/$version
. "$root/tests/interop/maven.sh"
build_java "$here" "$target" "the servers of RocketMQ $version" -Drocketmq.version="$version"

scratch=$(mktemp -d)
servers=()
cleanup() {
  for pid in "${servers[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$scratch"
}
trap cleanup EXIT
# Three ports in a row for the broker (its VIP port is 2 below, its replication port 1 above), one for the name server.
read -r java_namesrv_port java_broker_port < <(python3 "$here/free_ports.py")
mkdir -p "$scratch/conf"
for name in logback_namesrv logback_broker; do echo '<configuration/>' >"$scratch/conf/$name.xml"; done
echo "listenPort=$java_namesrv_port" >"$scratch/namesrv.conf"
java=(java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Drocketmq.home.dir="$scratch" -Duser.home="$scratch"
  -cp "$target/classes:$(cat "$target/classpath.txt")")
"${java[@]}" -Xmx128m org.apache.rocketmq.namesrv.NamesrvStartup -c "$scratch/namesrv.conf" >"$scratch/namesrv.log" 2>&1 &
servers+=($!)

# The broker comes up with our cluster's address; the program then runs against both.
cat >"$scratch/inside.sh" <<INSIDE
cat >"$scratch/broker.conf" <<CONF
brokerClusterName=JavaCluster
brokerName=java-broker
brokerId=0
brokerIP1=127.0.0.1
listenPort=$java_broker_port
namesrvAddr=\$1;127.0.0.1:$java_namesrv_port
storePathRootDir=$scratch/store
storePathCommitLog=$scratch/store/commitlog
mappedFileSizeCommitLog=16777216
mappedFileSizeConsumeQueue=60000
autoCreateTopicEnable=true
timerWheelEnable=false
CONF
$(printf '%q ' "${java[@]}") -Xms256m -Xmx384m -XX:MaxDirectMemorySize=256m org.apache.rocketmq.broker.BrokerStartup \\
  -c "$scratch/broker.conf" >"$scratch/broker.log" 2>&1 &
broker=\$!
$(printf '%q ' "${java[@]}") -Xmx256m -Drocketmq.client.logRoot="$target/logs" triad.Mixed "\$1" "127.0.0.1:$java_namesrv_port" 2>"$scratch/client.err"
code=\$?
kill \$broker
[ \$code = 0 ] || tail -20 "$scratch/broker.log" "$scratch/namesrv.log"
exit \$code
INSIDE
timeout "${TRIAD_INTEROP_SECONDS:-240}" "$build/tests/with_cluster" --root "$root" --programs "$build/bin" \
  --set "namesrvAddr=127.0.0.1:$java_namesrv_port" -- bash "$scratch/inside.sh" {namesrv}
