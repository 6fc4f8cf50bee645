#!/bin/sh
# fast-try.sh: a name server and the three peers of conf/dledger on this host.
#
#   sh bin/dledger/fast-try.sh start      start what does not run yet, wait until a leader serves
#   sh bin/dledger/fast-try.sh status     who runs, who leads
#   sh bin/dledger/fast-try.sh stop       stop all of it, orderly
#
# State (logs, pids) is kept in $TRIAD_TRY_DIR, default /tmp/rmqstore; the messages stand where
# conf/dledger/broker-n*.conf say.
self=$(readlink -f "$0")
root=$(cd "$(dirname "$self")/../.." && pwd)
dir=${TRIAD_TRY_DIR:-/tmp/rmqstore}
programs=${TRIAD_BUILD:-$root/build/release}/bin
namesrv=127.0.0.1:9876

# Its first words are mqnamesrv's or mqbroker's, then (after exec) triad-namesrv's or triad-broker's.
running() { # name
  pid=$(cat "$dir/$1.pid" 2>/dev/null) && [ -n "$pid" ] && [ -r "/proc/$pid/cmdline" ] &&
    tr '\0' ' ' <"/proc/$pid/cmdline" | grep -q -e 'bin/mq' -e 'bin/triad-'
}

start_one() { # name command...
  name=$1
  shift
  if running "$name"; then
    echo "$name runs already (pid $pid)"
    return 0
  fi
  nohup "$@" >"$dir/$name.out" 2>&1 </dev/null &
  echo $! >"$dir/$name.pid"
  echo "$name started (pid $!, log $dir/$name.out)"
}

leader() {
  "$root/bin/mqadmin" clusterList -n "$namesrv" 2>/dev/null |
    awk '$2 == "RaftNode00" && $3 == 0 { print $4 }'
}

start() {
  for program in triad-namesrv triad-broker; do
    if [ ! -x "$programs/$program" ]; then
      echo "fast-try: $programs/$program is not there; run $root/bin/build first" >&2
      exit 2
    fi
  done
  mkdir -p "$dir" || exit 1
  start_one namesrv "$root/bin/mqnamesrv" -c "$root/conf/namesrv.conf"
  for id in n0 n1 n2; do
    start_one "$id" "$root/bin/mqbroker" -c "$root/conf/dledger/broker-$id.conf"
  done
  tries=0
  while [ $tries -lt 150 ]; do
    for name in namesrv n0 n1 n2; do
      if ! running "$name"; then
        echo "$name has ended:" >&2
        tail -5 "$dir/$name.out" >&2
        exit 1
      fi
    done
    address=$(leader)
    if [ -n "$address" ]; then
      echo "the group serves; its leader is $address. Next: sh bin/mqadmin clusterList -n $namesrv"
      exit 0
    fi
    tries=$((tries + 1))
    sleep 0.2
  done
  echo "no leader within 30 s; see $dir/n0.out" >&2
  exit 1
}

status() {
  result=0
  for name in namesrv n0 n1 n2; do
    if running "$name"; then
      echo "$name runs (pid $pid)"
    else
      echo "$name does not run"
      result=1
    fi
  done
  address=$(leader)
  echo "leader: ${address:-none}"
  exit $result
}

stop() {
  stopped=
  for name in n0 n1 n2 namesrv; do
    if running "$name"; then
      kill "$pid" && stopped="$stopped $name"
    fi
  done
  tries=0
  while [ $tries -lt 450 ]; do
    left=
    for name in n0 n1 n2 namesrv; do
      running "$name" && left="$left $name"
    done
    [ -z "$left" ] && break
    tries=$((tries + 1))
    sleep 0.1
  done
  if [ -n "$left" ]; then
    echo "still running:$left" >&2
    exit 1
  fi
  echo "stopped:${stopped:- nothing ran}"
}

case "$1" in
  start) start ;;
  status) status ;;
  stop) stop ;;
  *)
    echo "usage: fast-try.sh start | status | stop" >&2
    exit 2
    ;;
esac
