"""Which loads there are, on which systems, and one round of them."""

import time

import machine
import special
from processes import Fault

MIB = 1 << 20
EVERYBODY = ("triad", "triad_async", "floor", "rocketmq", "rabbitmq", "nats")
IDLE_SECONDS = 2

# In this order: a backlog is what the publish before it left.
PUBLISH = {
    "publish_1": dict(inflight=1, size=1024, systems=EVERYBODY, quick=True),
    "publish_64": dict(inflight=64, size=1024, systems=EVERYBODY, quick=True),
    "publish_1024": dict(inflight=1024, size=1024, systems=EVERYBODY, quick=True),
    "backlog": dict(backlog_of="publish_1024", systems=("triad", "rocketmq", "rabbitmq", "nats"), quick=False),
    "publish_5k": dict(inflight=60000, size=1024, rate=5000, systems=("triad", "floor", "rabbitmq"), quick=True,
                       quick_systems=("triad", "floor")),
    "publish_20k": dict(inflight=60000, size=1024, rate=20000, systems=("triad", "nats"), quick=False),
    "big_1m": dict(inflight=4, size=MIB, systems=("triad", "floor"), quick=True),
    "big_64k": dict(inflight=64, size=65536, systems=("triad",), quick=False),
}
NAMES = ["memory_idle"] + list(PUBLISH) + list(special.LOADS)


def chosen(options):
    """name -> load, for this run."""
    only = set(options.only.split(",")) if options.only else None
    loads = {}
    if only is None or "memory_idle" in only:  # before anything was sent
        loads["memory_idle"] = dict(systems=("triad", "rocketmq"), idle=True)
    for name, load in PUBLISH.items():
        if only is not None and name not in only:
            continue
        if options.quick and only is None and not load["quick"]:
            continue
        who = load.get("quick_systems", load["systems"]) if options.quick else load["systems"]
        loads[name] = dict(load, systems=who)
    for name in special.LOADS:
        if (only is None and not options.quick) or (only is not None and name in only):
            loads[name] = dict(systems=("triad",), special=special.LOADS[name])
    return loads


def run_system(kind, where, loads, options, number, result):
    """One round of one system: its loads, then those that start a group of their own."""
    mine = {name: load for name, load in loads.items() if kind.name in load["systems"]}
    shared = {name: load for name, load in mine.items() if "special" not in load}
    if shared:
        system = kind(where)
        try:
            system.start()
            for name, load in shared.items():
                run_load(system, name, load, options.seconds, number, result)
        except Fault as fault:
            result["faults"].append("round %d: %s" % (number + 1, fault))
            print("fault: %s" % fault, flush=True)
        finally:
            system.stop()
    for name, load in mine.items():
        if "special" in load and number < (1 if name in special.ONCE else options.special_rounds):
            guarded(kind.name, name, number, result, lambda load=load: load["special"](where, options.seconds))


def run_load(system, name, load, seconds, number, result):
    if "idle" in load:
        time.sleep(IDLE_SECONDS)
        guarded(system.name, name, number, result, lambda: {"rss_anon_mib": round(system.memory_mib(), 1)})
    elif "backlog_of" in load:
        before = [c for c in result["cells"] if c["system"] == system.name and c["load"] == load["backlog_of"]]
        if before:
            messages = int(before[-1]["report"]["messages"])
            guarded(system.name, name, number, result, lambda: system.consume(load["backlog_of"], messages))
    else:
        timed = dict(load, seconds=seconds, warmup=max(0.5, seconds / 5))
        machine.warm_memory()
        guarded(system.name, name, number, result, lambda: system.publish(timed, name))


def guarded(system, name, number, result, run):
    """Adds what run() measured; a fault is noted and the comparison goes on."""
    began = time.monotonic()
    try:
        report = run()
    except Fault as fault:
        result["faults"].append("round %d, %s, %s: %s" % (number + 1, system, name, fault))
        print("fault: %s" % result["faults"][-1], flush=True)
        return
    result["cells"].append({"system": system, "load": name, "round": number, "report": report})
    print("round %d  %-11s %-13s %s  (%.0f s)" % (number + 1, system, name, short(report), time.monotonic() - began),
          flush=True)


def short(report):
    if "p50_ms" not in report:
        return "  ".join("%s %s" % item for item in report.items())
    text = "%9.0f msg/s  p50 %.3f  p99 %.3f  p99.9 %.3f ms  %6.0f flushes/s" % (
        report["msg_per_s"], report["p50_ms"], report["p99_ms"], report["p999_ms"], report["disk_flushes_per_s"])
    if report.get("errors"):
        text += "  errors %d (%s)" % (report["errors"], report.get("first_error", ""))
    return text

