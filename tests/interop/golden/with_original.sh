#!/usr/bin/env bash
# Runs a command against the original's name server and broker behind proxy.py, which writes OUTPUT.
#   with_original.sh TARGET_DIR PROXY OUTPUT COMMAND...          {namesrv} in a word becomes the address
set -euo pipefail
target=$1 proxy=$2 output=$3
shift 3
store=$(mktemp -d "$target/store-XXXXXX")
pids=""
trap 'for pid in $pids; do kill "$pid" 2>/dev/null || true; done; wait; rm -rf "$store"' EXIT
# Three ports: proxy, name server, broker (its VIP port 2 below, its replication port 1 above). The broker gives its port
# on 127.0.0.1 to the proxy.
read -r listen namesrv broker < <(python3 - <<'PORTS'
import random
import socket
def free(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) != 0
while True:
    base = random.randrange(20000, 30000, 10)
    if all(free(base + i) for i in range(10)):
        print(base, base + 3, base + 7)
        break
PORTS
)
cat >"$store/namesrv.conf" <<CONF
listenPort=$namesrv
rocketmqHome=$target/home
CONF
cat >"$store/broker.conf" <<CONF
brokerClusterName=RaftCluster
brokerName=broker-a
brokerId=0
brokerIP1=127.0.0.1
bindAddress=127.0.0.2
listenPort=$broker
namesrvAddr=127.0.0.1:$namesrv
storePathRootDir=$store/store
storePathCommitLog=$store/store/commitlog
mappedFileSizeCommitLog=16777216
mappedFileSizeConsumeQueue=60000
timerWheelEnable=false
diskMaxUsedSpaceRatio=95
messageDelayLevel=1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s
CONF
export ROCKETMQ_HOME=$target/home
java=(java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Duser.home="$store" -Drocketmq.log.root.level=OFF
  -Drocketmq.broker.diskSpaceWarningLevelRatio=0.99 -cp "$(cat "$target/server.classpath")")
"${java[@]}" -Xmx128m org.apache.rocketmq.namesrv.NamesrvStartup -c "$store/namesrv.conf" >"$store/namesrv.out" 2>&1 &
pids="$pids $!"
"${java[@]}" -Xms256m -Xmx384m -XX:MaxDirectMemorySize=256m org.apache.rocketmq.broker.BrokerStartup -c "$store/broker.conf" \
  >"$store/broker.out" 2>&1 &
pids="$pids $!"
for _ in $(seq 120); do
  "$target/bin/triad-admin" clusterList -n "127.0.0.1:$namesrv" >/dev/null 2>&1 && break
  sleep 1
done
python3 "$proxy" "$listen" "$namesrv" "$broker" "$output" >"$store/proxy.out" &
recorder=$!
for _ in $(seq 60); do
  grep -q listening "$store/proxy.out" && break
  sleep 1
done
export TRIAD_ADMIN_NAMESRV=127.0.0.1:$namesrv  # for our own mqadmin: it is not a client to record
code=0
"${@//\{namesrv\}/127.0.0.1:$listen}" || code=$?
kill "$recorder"
wait "$recorder" || true
exit $code
