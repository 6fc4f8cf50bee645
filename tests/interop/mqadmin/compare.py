#!/usr/bin/env python3
"""Compares what the original's mqadmin printed of the original server and of ours, line by line, and its verbs and
options with those of our own mqadmin.

  compare.py ROOT OUTPUTS PROGRAM VERSION      prints "case NAME: PASS|FAIL counts" lines and every difference
  compare.py --page ROOT OUTPUTS VERSION...    writes the section "mqadmin" of docs/compatibility.md

OUTPUTS holds theirs-VERSION/, ours-VERSION/ and options-VERSION.txt; PROGRAM is our mqadmin. Counts, offsets, differences,
queue numbers, permissions and sizes of messages must agree, and so must how often a line comes and, where the output
has one, the order. Masked: addresses, times, ids, positions in the log. Of rates, and of sizes of a server's own files,
it is compared whether they are zero, the rates in the verbs that run under traffic (".traffic"): elsewhere they depend on
when the verb was run. Each difference that stays is explained by a line of explained.txt or fails the run.
"""

import collections
import difflib
import json
import pathlib
import re
import subprocess
import sys

MASKS = [
    (r"\b[0-9A-F]{32}([0-9A-F]{24})?\b", "ID"),
    (r"(originalMsgId=)[0-9A-F]{32}", r"\1ID "),
    (r"^\s*(at |\.\.\. \d+ more).*", ""),  # a stack
    (r"\d+\.\d+\.\d+\.\d+(@[\w-]+)*@\d+(#\d+)?(@\w+)*", "CLIENT"),
    (r"\d+\.\d+\.\d+\.\d+:\d+", "ADDRESS"),
    (r"\d{4}-\d\d-\d\d[ T#]\d\d:\d\d:\d\d([,.:]\d{1,3})?", "TIME"),
    (r"\b1[6-9]\d{11}\b", "TIME"),
    (r"\(\d+,[\d.]+ms(\|\d+,[\d.]+ms)?\)", "(WAITING)"),  # clusterList: of the queue of requests
    (r"\d+-\d+\([\d.]+w, [\d.]+, [\d.]+\)", "TIMERS"),
    (r"\b\d+ms\b", "MILLISECONDS"),
    (r"(?i)(cost|spend|rt)[ =:]*\d+ ?(ms)?", r"\1=MILLISECONDS"),
    (r"(?i)(CommitLog ?Offset|physicOffset|#MasterCommitLogMaxOffset)([\"=: \t]+)\d+", r"\1\2POSITION"),
    (r"\b(true|false)\s+\d+\s*$", r"\1 MILLISECONDS"),
    (r"[ \t]+", " "),
]
# Rates and milliseconds are written with a point; nothing else is.
RATE = re.compile(r"-?\b\d+(\.\d+)?E-?\d+\b|-?\b\d+\.\d+\b")

# What comes out of a hash table.
UNORDERED = re.compile(r"topicList(\..*)?|get(Broker|Namesrv)Config|producer|statsAll(\..*)?|consumerConnection")

# Values of brokerStatus. Others must be equal.
OWN_STATUS = re.compile(r"bootTimestamp|runtime|commitLogDirCapacity|(commitLog|consumeQueue)DiskRatio.*|.*HeadWaitTimeMills"
                        r"|put(Latency\d+|MessageDistributeTime|MessageEntireTimeMax)|getMessageEntireTimeMax|triad\w+")
RATE_STATUS = re.compile(r"(put|get\w+)Tps")
SIZE_STATUS = re.compile(r"\w*Capacity|commitLogMaxOffset|putMessage(SizeTotal|AverageSize)|earliestMessageTimeStamp")
# Under traffic they grow while they are compared.
COUNT_STATUS = re.compile(r"msg(Put|Get)TotalTodayNow|putMessageTimesTotal|dispatchBehindBytes|remainHowManyDataToFlush"
                          r"|\w+QueueSize")


# The names that scripts, exportConfigs and exportMetrics read; the original prints every key it has.
READ_NAMES = """brokerName brokerClusterName brokerId brokerIP1 listenPort namesrvAddr brokerRole flushDiskType
    fileReservedTime deleteWhen brokerPermission autoCreateTopicEnable autoCreateSubscriptionGroup defaultTopicQueueNums
    maxMessageSize messageDelayLevel storePathRootDir storePathCommitLog transactionTimeOut transactionCheckMax
    transactionCheckInterval enablePropertyFilter traceTopicEnable msgTraceTopicName traceOn slaveReadEnable useTLS
    rocketmqHome kvConfigPath configStorePath orderMessageEnable returnOrderTopicConfigToBroker enableAllTopicList
    enableTopicList deleteTopicWithBrokerRegistration bindAddress scanNotActiveBrokerInterval""".split()


def zero_or_not(value):
    """The first number of the value, as a word."""
    number = re.search(r"-?\d+(\.\d+)?(E-?\d+)?", value)
    return "NOTHING" if not number else "ZERO" if float(number[0]) == 0 else "MORE"


def lines_of(text):
    """Exported files are laid out alike first."""
    try:
        return json.dumps(json.loads(text), indent=1, sort_keys=True).splitlines()
    except ValueError:
        return text.splitlines()


def masked(verb, text):
    lines = []
    for line in lines_of(text):
        for pattern, replacement in MASKS:
            line = re.sub(pattern, replacement, line)
        line = re.sub(r'("(counter|stateVersion)": )\d+', r"\1VERSION", line)  # of exported tables, each server's own
        if verb.endswith(".traffic"):  # everything grows while it is compared
            line = re.sub(r"(?<![\w.-])\d+(\.\d+)?(E-?\d+)?(?![\w.-])", lambda number: zero_or_not(number[0]), line)
        line = RATE.sub("RATE", line).strip()
        if line:
            lines.append(line)
    return lines


def split(line):
    """"key = value" and "key : value" lines."""
    key, _, value = line.partition("=" if re.match(r"\S+ *=", line) else ":")
    return key.strip(), value.strip()


def status_lines(verb, text):
    traffic = verb.endswith(".traffic")
    lines = []
    for line in text.splitlines():
        key, value = split(line)
        if OWN_STATUS.fullmatch(key) or (RATE_STATUS.fullmatch(key) and not traffic) or (
            COUNT_STATUS.fullmatch(key) and traffic):
            value = "ITS OWN"
        elif RATE_STATUS.fullmatch(key) or SIZE_STATUS.fullmatch(key):
            value = zero_or_not(value)
        if key:
            lines.append(f"{key} {value}")
    return lines


def config_lines(text):
    """Of the names that somebody reads."""
    pairs = (split(line) for line in text.splitlines())
    lines = [f"{key} {value}" for key, value in pairs if key in READ_NAMES]
    return [re.sub(r"(listenPort|storePath\w+|kvConfigPath|configStorePath|namesrvAddr) .*", r"\1", line) for line in lines]


def explanations(path):
    """[(pattern of "version verb", line pattern, reason)] of lines "verb | line | reason" and "version verb | ..."."""
    found = []
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            verb, pattern, reason = (part.strip() for part in line.split(" | "))
            if not re.match(r"\d+\.\d+\.\d+ ", verb):
                verb = r"\S+ (" + verb + ")"
            found.append((re.compile(verb), re.compile(pattern), reason))
    return found


def differences(theirs, ours, is_unordered):
    """Lines of one alone, with - or + in front."""
    if is_unordered:
        theirs_count, ours_count = collections.Counter(theirs), collections.Counter(ours)
        return ([f"- {line}" for line in (theirs_count - ours_count).elements()]
                + [f"+ {line}" for line in (ours_count - theirs_count).elements()])
    found = []
    for what, a, b, c, d in difflib.SequenceMatcher(None, theirs, ours, autojunk=False).get_opcodes():
        if what != "equal":
            found += [f"- {line}" for line in theirs[a:b]] + [f"+ {line}" for line in ours[c:d]]
    return found


def compare(version, verb, theirs, ours, explained):
    """(lines without a reason, reasons)."""
    both = []
    for text in (theirs, ours):
        if verb.startswith("brokerStatus"):
            both.append(status_lines(verb, text))
        elif verb in ("getBrokerConfig", "getNamesrvConfig"):
            both.append(config_lines(text))
        else:
            both.append([line for line in masked(verb, text)
                         if verb != "dashboard.config" or line.removeprefix("config is ") in READ_NAMES])
    different = differences(*both, UNORDERED.fullmatch(verb))
    left, reasons = [], []
    for line in different:
        for verb_pattern, line_pattern, reason in explained:
            if verb_pattern.fullmatch(f"{version} {verb}") and line_pattern.search(line):
                if reason not in reasons:
                    reasons.append(reason)
                break
        else:
            left.append(line)
    return left, reasons


def compare_version(outputs, version, explained):
    """verb -> (lines without a reason, reasons)."""
    results = {}
    for file in sorted((outputs / f"theirs-{version}").glob("*.txt")):
        ours = (outputs / f"ours-{version}" / file.name).read_text()
        results[file.stem] = compare(version, file.stem, file.read_text(), ours, explained)
    return results


def verdict(results):
    return "DIFFERS" if results[0] else "explained" if results[1] else "="


def case_of(name):
    """The case that counts a row."""
    return name.split(".")[0] if name.startswith(("dashboard.", "exporter.")) else "mqadmin"


def report(case, left, counts):
    """Did it pass?"""
    for line in left:
        print(line)
    print(f"case {case}: {'FAIL' if left else 'PASS'} {counts}")
    return not left


def report_outputs(results):
    ok = True
    for case in ("mqadmin", "dashboard", "exporter"):
        rows = {name: row for name, row in results.items() if case_of(name) == case}
        if not rows and case != "mqadmin":
            continue  # the short form; bin/interop misses it
        verdicts = [verdict(row) for row in rows.values()]
        left = [f"---- {name}\n" + "\n".join(row[0]) for name, row in rows.items() if row[0]]
        ok &= report(case, left or ([] if rows else ["nothing was compared"]),
                     f"same={verdicts.count('=')} explained={verdicts.count('explained')} different={verdicts.count('DIFFERS')}")
    return ok


# ---- Verbs and options --------------------------------------------------------------------------


def options_of_theirs(path):
    """verb -> {(short, long)}; a long name alone has no short one."""
    verbs = {}
    for line in path.read_text().splitlines():
        kind, verb, *option = line.split()
        verbs.setdefault(verb, set())
        if kind == "option":
            # "machine room" cannot be typed: ours have a dash there.
            verbs[verb].add(("" if option[0] == "null" else option[0], "-".join(option[1:])))
    return verbs


def options_of_ours(program, verb):
    """None: no such verb."""
    done = subprocess.run([program, "help", verb], capture_output=True, text=True, check=False)
    if done.returncode:
        return None
    lines = re.findall(r"^\s+(?:-(\w+),)?((?:--[\w-]+,?)+)", done.stdout, re.M)
    return {(short, name) for short, names in lines for name in re.findall(r"--([\w-]+)", names)}


def compare_options(program, path, explained):
    """(missing things that nothing explains, number of verbs, of options, {thing: reason})."""
    left, reasons, options, verbs = [], {}, 0, options_of_theirs(path)
    for verb, wanted in verbs.items():
        have = options_of_ours(program, verb)
        missing = [verb] if have is None else [f"{verb} -{short or '-' + name}" for short, name in sorted(wanted - have)]
        options += len(wanted) if have is not None else 0
        for thing in missing:
            reason = next((why for what, why in explained if what.fullmatch(thing)), None)
            if reason:
                reasons[thing] = reason
            else:
                left.append(f"not in ours: {thing}")
    return left, len(verbs), options, reasons


def option_explanations(root):
    lines = (root / "tests" / "interop" / "mqadmin" / "options.txt").read_text().splitlines()
    pairs = [line.split(" | ") for line in lines if line.strip() and not line.startswith("#")]
    return [(re.compile(what.strip()), why.strip()) for what, why in pairs]


def report_options(root, program, outputs, version):
    left, verbs, options, reasons = compare_options(program, outputs / f"options-{version}.txt", option_explanations(root))
    return report("mqadmin_options", left, f"verbs={verbs} options={options} explained={len(reasons)} missing={len(left)}")


# ---- The page -----------------------------------------------------------------------------------


def write_section(root, outputs, versions):
    explained = explanations(root / "tests" / "interop" / "mqadmin" / "explained.txt")
    rows = {}
    for version in versions:
        for name, row in compare_version(outputs, version, explained).items():
            rows.setdefault(name, {})[version] = row
    section = ["## mqadmin, dashboard, exporter", "",
               "What the original's `mqadmin` prints of a group of one peer of ours, compared with what it prints of the original server",
               "with the same content: mqadmin 5.3.3 with the server 5.3.3; mqadmin 4.9.8 with the server 4.9.7, the nearest in Maven.",
               "`dashboard.*` and `exporter.*` are the calls that the pages of rocketmq-dashboard and the metrics of rocketmq-exporter",
               "are made of, by the same admin library (`Pages.java`), since neither is in Maven. Counts, offsets, differences, queue",
               "numbers, permissions and sizes of messages must agree, as must the order where there is one; addresses, times, ids and",
               "positions in the log are masked; of rates and of sizes of a server's files it is compared whether they are zero, of rates",
               "in the rows `.traffic`, which run while messages come and go. `=`: no other difference; explained: with the reasons",
               "beside it. By `tests/interop/mqadmin/run.sh`.", "",
               "| verb | " + " | ".join(versions) + " | why |", "|---" * (len(versions) + 2) + "|"]
    for name, cells in sorted(rows.items()):
        why = []
        for version in versions:
            why += [reason for reason in cells.get(version, ([], []))[1] if reason not in why]
        words = [verdict(cells[version]) if version in cells else "" for version in versions]
        section.append(f"| {name} | " + " | ".join(words) + " | " + "; ".join(why) + " |")
    section += ["", "Our own `mqadmin` has every verb and option of these two versions but:", ""]
    section += [f"- `{what.pattern}`: {why}" for what, why in option_explanations(root)]
    path = root / "docs" / "compatibility.md"
    text = path.read_text()
    block = "<!-- mqadmin -->\n" + "\n".join(section) + "\n<!-- /mqadmin -->\n"
    path.write_text(re.sub(r"<!-- mqadmin -->.*<!-- /mqadmin -->\n", lambda _: block, text, flags=re.S))


def main():
    page = sys.argv[1] == "--page"
    root, outputs, *rest = sys.argv[2 if page else 1:]
    root, outputs = pathlib.Path(root), pathlib.Path(outputs)
    if page:
        write_section(root, outputs, rest)
        return 0
    program, version = rest
    results = compare_version(outputs, version, explanations(root / "tests" / "interop" / "mqadmin" / "explained.txt"))
    same = report_outputs(results)
    complete = report_options(root, program, outputs, version)
    return 0 if same and complete else 1


if __name__ == "__main__":
    sys.exit(main())
