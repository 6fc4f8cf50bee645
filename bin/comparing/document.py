"""Ratios with their targets, the measured part of docs/performance.md, and the last line of the output."""

from statistics import median

import charts
from charts import TITLES, values

BEGIN = "<!-- bin/compare writes from here -->"
END = "<!-- bin/compare writes to here; what stands below is written by hand -->"


def ratio(key, load, system, other, other_load=None):
    """Per round, triad's (or `system`'s) figure divided by another's."""
    def read(result):
        mine = by_round(result, system, load, key)
        yours = by_round(result, other, other_load or load, key)
        return [mine[n] / yours[n] for n in mine if yours.get(n)]
    return read


def inverse(key, load, system, other, other_load=None):
    forward = ratio(key, load, system, other, other_load)
    return lambda result: [1 / value for value in forward(result) if value]


def figure(load, key, system="triad"):
    return lambda result: values(result, system, load, key)


def by_round(result, system, load, key):
    return {cell["round"]: cell["report"][key] for cell in result["cells"]
            if cell["system"] == system and cell["load"] == load and key in cell["report"]}


def rows():
    """(name, what, how to read it, at least (+) or at most (-), target, aim)"""
    out = []
    for n, floor, aim in ((1, .7, .85), (64, .5, .7), (1024, .4, .6)):
        out.append(("floor_%d" % n, "publish, %d in flight, of the floor" % n,
                    ratio("msg_per_s", "publish_%d" % n, "triad", "floor"), "+", floor, aim))
    for peer, targets in (("rocketmq", ((1, 2, None), (64, 5, 10), (1024, 8, 15))),
                          ("rabbitmq", ((1, 2, 3), (64, 5, 8), (1024, 8, 12))),
                          ("nats", ((1, .65, .8), (64, 2.5, 4), (1024, 5, 9)))):
        for n, least, aim in targets:
            out.append(("%s_%d" % (peer, n), "publish, %d in flight, times %s" % (n, TITLES[peer]),
                        ratio("msg_per_s", "publish_%d" % n, "triad", peer), "+", least, aim))
    out += [
        ("cpu_1024", "server CPU s per million, 1024 in flight",
         figure("publish_1024", "server_cpu_s_per_million"), "-", 8, 6),
        ("cpu_64", "server CPU s per million, 64 in flight",
         figure("publish_64", "server_cpu_s_per_million"), "-", 20, 12),
        ("p99_5k", "p99 at 5,000/s, times the floor's", ratio("p99_ms", "publish_5k", "triad", "floor"), "-", 2.5, 1.7),
        ("p50_5k", "p50 at 5,000/s, times the floor's", ratio("p50_ms", "publish_5k", "triad", "floor"), "-", 1.6, 1.3),
        ("p999_5k", "p99.9 at 5,000/s, times the floor's", ratio("p999_ms", "publish_5k", "triad", "floor"), "-", 3, 2),
        ("big_1m", "1 MiB messages, 4 in flight, of the floor", ratio("msg_per_s", "big_1m", "triad", "floor"),
         "+", .5, .75),
        ("rss_idle_mib", "RssAnon of three idle peers, MiB", figure("memory_idle", "rss_anon_mib"), "-", 60, 40),
    ]
    for n, least, aim in ((1, 1.8, 2.5), (64, 4, 8), (1024, 7, 12)):
        out.append(("async_nats_%d" % n, "ASYNC_FLUSH, %d in flight, times NATS" % n,
                    ratio("msg_per_s", "publish_%d" % n, "triad_async", "nats"), "+", least, aim))
    out += [
        ("p99_20k_rabbitmq", "RabbitMQ's p99 at 5,000/s, times ours at 20,000/s",
         inverse("p99_ms", "publish_20k", "triad", "rabbitmq", "publish_5k"), "+", 10, 20),
        ("p99_20k_nats", "NATS' p99 at 20,000/s, times ours",
         inverse("p99_ms", "publish_20k", "triad", "nats"), "+", 10, 20),
        ("big_of_64k", "bytes/s of 1 MiB messages, of those of 64 KiB",
         ratio("mb_per_s", "big_1m", "triad", "triad", "big_64k"), "+", .9, 1),
        ("backlog_nats", "reading a backlog, times NATS", ratio("msg_per_s", "backlog", "triad", "nats"), "+", .8, 2),
        ("backlog_rabbitmq", "reading a backlog, times RabbitMQ",
         ratio("msg_per_s", "backlog", "triad", "rabbitmq"), "+", 3, 8),
        ("backlog_rocketmq", "reading a backlog, times RocketMQ",
         ratio("msg_per_s", "backlog", "triad", "rocketmq"), "+", 3, 6),
        ("cold_p99", "p99 of sends beside a cold backlog, times alone", figure("cold_backlog", "ratio"), "-", 2, 1.3),
        ("roll_ms", "slowest ack over rolls of the segment at 20,000/s, ms", figure("roll", "max_ms"), "-", 50, 20),
        ("beside_big_ms", "p99 of 1 KiB beside 50 MB/s of 1 MiB, ms", figure("beside_big", "p99_ms"), "-", 20, 10),
        ("queues_10k", "publish over 10,000 queues, of that over 8", figure("queues_10k", "ratio"), "+", .8, .9),
        ("queues_10k_mib", "memory added by 10,000 queues, MiB", figure("queues_10k", "added_mib"), "-", 100, None),
        ("queues_10k_restart", "restart of a peer with 10,000 queues, s", figure("queues_10k", "restart_s"),
         "-", 5, None),
        ("groups_1k", "1,000 groups on one topic, delivered/s", figure("groups_1k", "delivered_per_s"),
         "+", 200000, 400000),
        ("groups_1k_idle", "their idle long polls, cores", figure("groups_1k", "idle_cores"), "-", .05, None),
        ("orderly", "orderly consumption, of concurrent", figure("orderly", "ratio"), "+", .8, .95),
        ("rss_after_mib", "RssAnon of three peers after 1 M messages, MiB", figure("memory_after", "rss_anon_mib"),
         "-", 400, 250),
        ("java_producer", "the stock Java client in 64 threads, times RocketMQ", figure("java_producer", "ratio"),
         "+", 2.5, 3.5),
        ("follower_down", "throughput with one follower down", figure("follower_down", "ratio"), "+", .9, None),
        ("follower_down_p99", "p99 at 2,000/s with one follower down, times healthy",
         figure("follower_down", "p99_ratio"), "-", 2, None),
        ("follower_slow", "throughput with one slow follower", figure("follower_slow", "ratio"), "+", .9, None),
        ("follower_slow_p99", "p99 at 2,000/s with one slow follower, times healthy",
         figure("follower_slow", "p99_ratio"), "-", 2, None),
    ]
    return out


ALWAYS = 19  # the first rows: always on the last line


def ratios(result):
    """-> dictionaries: name, what, values, target, aim, reached (None = not measured)."""
    out = []
    for name, what, read, kind, target, aim in rows():
        measured = read(result)
        middle = median(measured) if measured else None
        reached = None
        if measured:
            reached = middle >= target if kind == "+" else middle <= target
        out.append(dict(name=name, what=what, values=measured, median=middle, kind=kind, target=target, aim=aim,
                        reached=reached))
    return out


def text(value):
    if value is None:
        return "–"
    if abs(value) >= 1000:
        return "{:,.0f}".format(value)
    return "%.4g" % value if abs(value) >= 100 else "%.3g" % value


def last_line(found):
    """Always the main cells, the others when they were measured."""
    words = []
    for i, row in enumerate(found):
        if row["median"] is not None:
            words.append("%s=%s" % (row["name"], text(row["median"]).replace(",", "")))
        elif i < ALWAYS:
            words.append(row["name"] + "=not_measured")
    return "compare: " + " ".join(words)


def print_table(found):
    print("\n%-56s %10s %10s   %s" % ("", "median", "target", ""))
    for row in found:
        if row["median"] is not None:
            print("%-56s %10s %s%9s   %s" % (row["what"], text(row["median"]), ">" if row["kind"] == "+" else "<",
                                             text(row["target"]), "reached" if row["reached"] else "NOT REACHED"))
    print()


def spread(found):
    if len(found) < 2:
        return ""
    return " (%s to %s)" % (text(min(found)), text(max(found)))


def load_table(result, load):
    lines = ["### %s" % load, "", "![%s](charts/%s.svg)" % (load, load), "",
             "| system | msg/s, median (range) | MB/s | p50 ms | p99 ms | p99.9 ms | server CPU s per million | "
             "disk flushes/s | errors |", "|---|---|---|---|---|---|---|---|---|"]
    for system, title in TITLES.items():
        rate = values(result, system, load, "msg_per_s")
        if not rate:
            continue

        def middle(key, system=system):
            found = values(result, system, load, key)
            return text(median(found)) if found else "–"
        lines.append("| %s | %s%s | %s | %s | %s | %s | %s | %s | %d |" % (
            title, text(median(rate)), spread(rate), middle("mb_per_s"), middle("p50_ms"), middle("p99_ms"),
            middle("p999_ms"), middle("server_cpu_s_per_million"), middle("disk_flushes_per_s"),
            sum(values(result, system, load, "errors"))))
    return lines + [""]


def own_table(result):
    """What was measured of Triad alone: every figure of every special load."""
    lines = []
    for load in dict.fromkeys(cell["load"] for cell in result["cells"]):
        cells = [c for c in result["cells"] if c["load"] == load and "p50_ms" not in c["report"]]
        for system in dict.fromkeys(c["system"] for c in cells):
            reports = [c["report"] for c in cells if c["system"] == system]
            parts = []
            for key in reports[0]:
                found = [r[key] for r in reports if isinstance(r.get(key), (int, float))]
                if found:
                    parts.append("%s %s%s" % (key, text(median(found)), spread(found)))
            if parts:
                lines.append("| %s | %s | %s |" % (load, system, "; ".join(parts)))
    if not lines:
        return []
    return ["### One system alone", "", "| load | system | medians (range) |", "|---|---|---|"] + lines + [""]


def measured_part(result, found):
    m = result["machine"]
    lines = [BEGIN, "",
             "Measured %s at commit %s by `bin/compare%s`: %d rounds of %g s per load, systems in alternating order, "
             "medians." % (m["date"], m["commit"], " --quick" if result["quick"] else "", result["rounds"],
                           result["seconds"]),
             "Machine: %s, %d cores shared by three nodes **and** the load, %d GiB, kernel %s, %s. Load average %.1f "
             "before, %.1f after%s." % (m["cpu"], m["cores"], m["memory_gib"], m["kernel"], m["file_system"],
                                        m["load_before"], m.get("load_after", 0), busy(m)), "",
             "| cell | median (range of the rounds) | wanted | aim | |", "|---|---|---|---|---|"]
    for row in found:
        if row["median"] is None:
            continue
        sign = "≥" if row["kind"] == "+" else "≤"
        lines.append("| `%s`: %s | %s%s | %s %s | %s | %s |" % (
            row["name"], row["what"], text(row["median"]), spread(row["values"]), sign, text(row["target"]),
            text(row["aim"]), "reached" if row["reached"] else "**not reached**"))
    lines.append("")
    absent = [row["name"] for row in found if row["median"] is None]
    if absent:
        lines += ["Not measured in this run: %s." % ", ".join(absent), ""]
    lines += ["%s was not measured: %s." % (TITLES[name], why) for name, why in result["missing"].items()]
    lines += ["Fault: %s." % " ".join(fault.split())[:300] for fault in result["faults"]]
    lines.append("")
    for load in charts.charted(result):
        lines += load_table(result, load)
    return "\n".join(lines + own_table(result) + [END])


def busy(machine):
    return "" if machine["load_before"] < 1 else \
        " (**others were at work on this machine**: ratios may be trusted more than figures, and neither much)"


def write(result, found, path):
    with open(path) as file:
        page = file.read()
    if BEGIN not in page or END not in page:
        raise SystemExit("compare: %s lacks the lines\n  %s\n  %s" % (path, BEGIN, END))
    head, rest = page.split(BEGIN, 1)
    tail = rest.split(END, 1)[1]
    with open(path, "w") as file:
        file.write(head + measured_part(result, found) + tail)
