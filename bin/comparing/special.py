"""Loads of Triad alone, each on a group of its own: many queues, many groups, mixed sizes, a roll of the segment, a cold
backlog, a follower that is down or slow, the original's own benchmark."""

import os
import re
import signal
import subprocess
import threading
import time

import machine
import systems
from processes import Fault, Process, cpu_seconds, wait_until

KIB = 1024
MIB = 1 << 20
SECONDS_TO_CATCH_UP = 30
SLOW_SYNC_MS = 5  # beside about 0.25 ms


def publish(system, topic, seconds, *words, inflight=1024, size=KIB, rate=0):
    load = dict(inflight=inflight, size=size, rate=rate, seconds=seconds, warmup=1)
    machine.warm_memory()
    return system.publish(load, topic, *words)


class Group:
    """with Group(...) as triad: a fresh group, ended at the end."""

    def __init__(self, where, kind=systems.Triad, **changes):
        self.where, self.kind, self.changes = where, kind, changes

    def __enter__(self):
        self.system = self.kind(self.where, **self.changes)
        try:
            self.system.start()
        except BaseException:
            self.system.stop()
            raise
        return self.system

    def __exit__(self, *_):
        self.system.stop()


def leader_index(system):
    """The node that a load's servers' CPU says leads: it works the most."""
    before = [cpu_seconds([node.pid]) for node in system.nodes]
    publish(system, "WhoLeads", 1)
    used = [cpu_seconds([node.pid]) - b for node, b in zip(system.nodes, before)]
    return used.index(max(used))


def follower_index(system):
    return (leader_index(system) + 1) % len(system.nodes)


def queues_10k(where, seconds):
    """Publishing over 10,000 queues against 8: throughput, added memory, and the restart of a peer."""
    with Group(where) as triad:
        few = publish(triad, "Few", seconds)
        before = triad.memory_mib()
        triad.queues = 10000
        many = publish(triad, "Many", seconds)
        after = triad.memory_mib()
        triad.queues = 8
        took = restart(triad, follower_index(triad))
    return {"ratio": round(many["msg_per_s"] / few["msg_per_s"], 3), "added_mib": round(after - before, 1),
            "restart_s": round(took, 2), "msg_per_s_8": few["msg_per_s"], "msg_per_s_10000": many["msg_per_s"]}


def restart(system, i):
    """Seconds from starting peer i until it listens for clients; it was ended with SIGKILL."""
    system.nodes[i].kill()
    with open(system.configs[i]) as file:
        port = int(re.search(r"^listenPort=(\d+)", file.read(), re.M)[1])
    began = time.monotonic()
    system.nodes[i] = system.start_node(i)
    wait_until("restart of a peer", 60, lambda: listens(port), [system.nodes[i]])
    return time.monotonic() - began


def listens(port):
    with open("/proc/net/tcp") as file:
        return any(line.split()[1].endswith(":%04X" % port) and line.split()[3] == "0A"
                   for line in file.readlines()[1:])


def groups_1k(where, seconds):
    """1,000 consumer groups read one topic; then they wait for messages that do not come."""
    with Group(where) as triad:
        publish(triad, "Shared", 0.5)
        pull = ("--groups", "1000", "--connections", "4")
        busy = triad.mqbench("consumer", "Shared", *pull, "--seconds", str(seconds), seconds=60)
        idle = triad.mqbench("consumer", "Shared", *pull, "--follow", "--seconds", str(seconds), seconds=60)
    for report in (busy, idle):
        if report["errors"]:
            raise Fault("%d pulls were refused, the first: %s" % (report["errors"], report.get("first_error", "")))
    return {"delivered_per_s": busy["msg_per_s"], "idle_cores": idle["server_cpu_cores"]}


def beside_big(where, seconds):
    """p99 of 1 KiB messages at 1,000 a second while 50 MB/s of 1 MiB messages are sent."""
    with Group(where) as triad:
        triad.prepare("Small")
        big = Side(lambda: publish(triad, "Big", seconds + 2, inflight=1000, size=MIB, rate=50))
        small = publish(triad, "Small", seconds, inflight=60000, rate=1000)
        other = big.result()
    return {"p99_ms": small["p99_ms"], "p999_ms": small["p999_ms"], "max_ms": small["max_ms"],
            "big_mb_per_s": other["mb_per_s"]}


class Side:
    """Something that runs beside."""

    def __init__(self, run):
        self.value, self.fault = None, None
        self.thread = threading.Thread(target=self.call, args=(run,))
        self.thread.start()

    def call(self, run):
        try:
            self.value = run()
        except Fault as fault:
            self.fault = fault

    def result(self):
        self.thread.join()
        if self.fault:
            raise self.fault
        return self.value


def roll(where, seconds):
    """The slowest acknowledgement at 20,000 a second over segments of 32 MiB, against segments of 1 GiB."""
    with Group(where, mappedFileSizeCommitLog=32 * MIB) as triad:
        often = publish(triad, "Roll", seconds, inflight=60000, rate=20000)
    with Group(where) as triad:
        never = publish(triad, "Roll", seconds, inflight=60000, rate=20000)
    return {"max_ms": often["max_ms"], "p9999_ms": often["p9999_ms"], "max_ms_without": never["max_ms"]}


def cold_backlog(where, seconds):
    """p99 of sends at 2,000 a second while a backlog is read that is in no cache, against the p99 without."""
    with Group(where) as triad:
        publish(triad, "Backlog", 3 * seconds)
        publish(triad, "Other", 1)
        alone = publish(triad, "Sends", seconds, inflight=60000, rate=2000)
        subprocess.run(["sync"], check=False)
        try:
            with open("/proc/sys/vm/drop_caches", "w") as file:
                file.write("3\n")
        except OSError as error:
            raise Fault("the page cache cannot be dropped: %s" % error) from error
        reading = Side(lambda: triad.consume("Backlog", 0))
        beside = publish(triad, "Sends", seconds, inflight=60000, rate=2000)
        read = reading.result()
    return {"ratio": round(beside["p99_ms"] / alone["p99_ms"], 2), "p99_ms": beside["p99_ms"],
            "p99_ms_without": alone["p99_ms"], "read_per_s": read["msg_per_s"], "read_messages": read["messages"]}


def follower_down(where, seconds):
    """Throughput and p99 without one follower, against those with all three peers."""
    with Group(where) as triad:
        follower = follower_index(triad)
        whole = both(triad, seconds)
        triad.nodes[follower].kill()
        without = both(triad, seconds)
    return against(without, whole)


def both(system, seconds):
    return (publish(system, "Full", seconds), publish(system, "Rate", seconds, inflight=60000, rate=2000))


def against(now, healthy):
    return {"ratio": round(now[0]["msg_per_s"] / healthy[0]["msg_per_s"], 3),
            "p99_ratio": round(now[1]["p99_ms"] / healthy[1]["p99_ms"], 2),
            "msg_per_s": now[0]["msg_per_s"], "msg_per_s_healthy": healthy[0]["msg_per_s"],
            "p99_ms": now[1]["p99_ms"], "p99_ms_healthy": healthy[1]["p99_ms"]}


class OnSlowDisk(systems.Triad):
    """Peer 2 keeps its store on a file system whose syncs can be made slower."""

    def start(self):
        base = self.where.fresh("slow-disk")
        self.mount = base + "/mount"
        self.control = self.mount + "/.crashfs"
        for name in ("backing", "mount"):
            os.makedirs("%s/%s" % (base, name))
        self.disk = Process([self.where.program("triad-crashfs"), base + "/backing", self.mount],
                            base + "/crashfs.log")
        wait_until("crashfs", 20, lambda: os.path.exists(self.control), [self.disk])
        super().start()

    def store(self, i):
        return self.mount + "/store" if i == 2 else super().store(i)

    def stop(self):
        super().stop()
        subprocess.run(["fusermount3", "-u", self.mount], check=False)
        self.disk.end()


def follower_slow(where, seconds):
    """One follower's syncs take 20 times as long, against the healthy group on the same disks."""
    if not os.access(where.program("triad-crashfs"), os.X_OK) or not os.path.exists("/dev/fuse"):
        raise Fault("needs triad-crashfs and /dev/fuse")
    with Group(where, OnSlowDisk) as triad:
        if leader_index(triad) == 2:
            triad.nodes[2].signal(signal.SIGSTOP)
            time.sleep(2)
            triad.nodes[2].signal(signal.SIGCONT)
            wait_until("another leader", SECONDS_TO_CATCH_UP, lambda: leader_index(triad) != 2)
        whole = both(triad, seconds)
        with open(triad.control, "w") as file:
            file.write("slow %d" % SLOW_SYNC_MS)
        slow = both(triad, seconds)
    return against(slow, whole)


def memory_after(where, seconds):
    """RssAnon of the three peers behind a million messages."""
    with Group(where) as triad:
        sent = 0
        for _ in range(20):
            sent += publish(triad, "Many", seconds)["messages"]
            if sent >= 1000000:
                break
        time.sleep(2)
        return {"rss_anon_mib": round(triad.memory_mib(), 1), "messages": sent}


def orderly(where, seconds):
    """The C++ client's orderly consumption of 64 keys over 8 queues, of its concurrent consumption."""
    with Group(where) as triad:
        publish(triad, "Keys", seconds, "--keys", "64")
        concurrent = triad.mqbench("listener", "Keys", "--seconds", "60", seconds=90)
        in_order = triad.mqbench("listener", "Keys", "--seconds", "60", "--orderly", seconds=90)
    return {"ratio": round(in_order["msg_per_s"] / concurrent["msg_per_s"], 3), "orderly_per_s": in_order["msg_per_s"],
            "concurrent_per_s": concurrent["msg_per_s"], "messages": in_order["messages"]}


def java_producer(where, seconds):
    """The stock Java client in 64 threads, as the original's benchmark does it, on Triad and on the original."""
    reason = systems.RocketMq.unavailable(where)
    if reason:
        raise Fault(reason)
    out = {}
    for kind in (systems.Triad, systems.RocketMq):
        with Group(where, kind) as system:
            system.prepare("BenchmarkTest")
            out[kind.name + "_per_s"], out[kind.name + "_failed"] = benchmark_producer(where, system, 3 * seconds)
    if out["triad_failed"]:
        raise Fault("%d sends of the Java producer failed" % out["triad_failed"])
    return dict(out, ratio=round(out["triad_per_s"] / out["rocketmq_per_s"], 2))


def benchmark_producer(where, system, seconds):
    program = os.path.join(where.root, "bin/comparing/Producer.java")
    client = Process(["java", "-Xmx512m", "-Drocketmq.client.logRoot=" + system.directory,
                      "-cp", systems.RocketMq.classpath, program, system.namesrv, "BenchmarkTest", str(seconds)],
                     system.directory + "/producer.log")
    found = []

    def reports():
        with open(client.log, errors="replace") as file:
            found[:] = re.findall(r"^sent_per_s=(\d+) failed=(\d+)$", file.read(), re.M)
        return bool(found)
    try:
        wait_until("the Java producer", seconds + 60, reports, [client])
    finally:
        client.kill()
    return int(found[0][0]), int(found[0][1])


# Ten thousand directories a peer take a while to remove: last, and once.
LOADS = {"groups_1k": groups_1k, "beside_big": beside_big, "roll": roll,
         "cold_backlog": cold_backlog, "follower_down": follower_down, "follower_slow": follower_slow,
         "memory_after": memory_after, "orderly": orderly,
         "java_producer": java_producer, "queues_10k": queues_10k}
ONCE = {"queues_10k"}
