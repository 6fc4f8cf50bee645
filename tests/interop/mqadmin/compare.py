#!/usr/bin/env python3
"""Compares what the original's mqadmin printed of the original server and of ours, line by line.

Masked: addresses, times, sizes, ids, rates. Each difference that stays is explained by a line of explained.txt or
fails the run. Writes the section "mqadmin" of docs/compatibility.md.
"""

import pathlib
import re
import sys

MASKS = [
    (r"\b[0-9A-F]{32}([0-9A-F]{24})?\b", "ID"),
    (r"^\s*(at |\.\.\. \d+ more).*", ""),  # a stack
    (r"\d+\.\d+\.\d+\.\d+(@[\w-]+)*@\d+(#\d+)?(@\w+)*", "CLIENT"),
    (r"\d+\.\d+\.\d+\.\d+:\d+", "ADDRESS"),
    (r"\d{4}-\d\d-\d\d[ T#]\d\d:\d\d:\d\d([,.:]\d{1,3})?", "TIME"),
    (r"\b1[6-9]\d{11}\b", "TIME"),
    (r"\b\d+(\.\d+)?E-?\d+\b", "NUMBER"),
    (r"-?\b\d+\.\d+(%|ms)?", "NUMBER"),
    (r"\((\d+),NUMBERms\)|\(\d+,NUMBERms\|.*?\)", "(LOAD)"),
    (r"(?i)(cost|spend|rt)[ =:]*\d+ ?(ms)?", r"\1=NUMBER"),
    (r"(?i)(CommitLog ?Offset|physicOffset|physicSize|storeSize)([\"=: ]+)\d+", r"\1\2NUMBER"),
    (r"\b\d+ms\b", "NUMBERms"),
    (r"\b(true|false)\s+\d+\s*$", r"\1 NUMBER"),
    (r"(#MasterCommitLogMaxOffset|commitLogOffset=)\s*\d+", r"\1 NUMBER"),
    (r"CRC[=:]\s*-?\d+", "CRC"),
    (r"[ \t]+", " "),
]


# The names that scripts, exportConfigs and exportMetrics read; the original prints every key it has.
READ_NAMES = """brokerName brokerClusterName brokerId brokerIP1 listenPort namesrvAddr brokerRole flushDiskType
    fileReservedTime deleteWhen brokerPermission autoCreateTopicEnable autoCreateSubscriptionGroup defaultTopicQueueNums
    maxMessageSize messageDelayLevel storePathRootDir storePathCommitLog transactionTimeOut transactionCheckMax
    transactionCheckInterval enablePropertyFilter traceTopicEnable msgTraceTopicName traceOn slaveReadEnable useTLS
    rocketmqHome kvConfigPath configStorePath orderMessageEnable returnOrderTopicConfigToBroker enableAllTopicList
    enableTopicList deleteTopicWithBrokerRegistration bindAddress scanNotActiveBrokerInterval""".split()


PAGE = "# Compatibility\n\nWhat was seen working, as the commands that tried it wrote it down.\n"


def masked(text):
    lines = []
    for line in text.splitlines():
        for pattern, replacement in MASKS:
            line = re.sub(pattern, replacement, line)
        line = line.strip()
        if line and line not in lines:
            lines.append(line)
    return lines


def keys_only(lines):
    """Of "key = value" and "key : value" lines the keys: the values are each server's own."""
    return [re.split(r"\s*[=:]\s*", line)[0] for line in lines]


def explanations(path):
    """[(verb pattern, line pattern, reason)] of lines "verb | line | reason"."""
    found = []
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            verb, pattern, reason = (part.strip() for part in line.split(" | "))
            found.append((re.compile(verb), re.compile(pattern), reason))
    return found


def compare(verb, theirs, ours, explained):
    """(lines without a reason, reasons)."""
    theirs, ours = masked(theirs), masked(ours)
    if verb in ("brokerStatus", "getBrokerConfig", "getNamesrvConfig"):
        theirs, ours = keys_only(theirs), keys_only(ours)
    if verb in ("getBrokerConfig", "getNamesrvConfig"):
        theirs = [key for key in theirs if key in READ_NAMES]
        ours = [key for key in ours if key in READ_NAMES]
    different = [f"- {line}" for line in theirs if line not in ours]
    different += [f"+ {line}" for line in ours if line not in theirs]
    left, reasons = [], []
    for line in different:
        for verb_pattern, line_pattern, reason in explained:
            if verb_pattern.fullmatch(verb) and line_pattern.search(line):
                if reason not in reasons:
                    reasons.append(reason)
                break
        else:
            left.append(line)
    return left, reasons


def write_section(root, versions, table):
    path = root / "docs" / "compatibility.md"
    text = path.read_text() if path.exists() else PAGE
    section = ["## mqadmin", "",
               "What the original's `mqadmin` prints of a group of one peer of ours, compared with what it prints of the original server",
               "(5.3.3) with the same content. Addresses, times, sizes, ids and rates are masked; `=`: no other difference.",
               "`+`: only of ours, `-`: only of the original. Made by `tests/interop/mqadmin/run.sh`.", "",
               "| verb | " + " | ".join(versions) + " | why |", "|---" * (len(versions) + 2) + "|"]
    for verb, cells, reasons in table:
        section.append(f"| {verb} | " + " | ".join(cells) + " | " + "; ".join(reasons) + " |")
    block = "<!-- mqadmin -->\n" + "\n".join(section) + "\n<!-- /mqadmin -->\n"
    if "<!-- mqadmin -->" in text:
        text = re.sub(r"<!-- mqadmin -->.*<!-- /mqadmin -->\n", lambda _: block, text, flags=re.S)
    else:
        text = text.rstrip("\n") + "\n\n" + block
    path.write_text(text)


def main():
    root, target, versions = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]
    explained = explanations(root / "tests" / "interop" / "mqadmin" / "explained.txt")
    results, failed = {}, 0
    for version in versions:
        for file in sorted((target / f"theirs-{version}").glob("*.txt")):
            verb = file.stem
            ours = (target / f"ours-{version}" / file.name).read_text()
            left, reasons = compare(verb, file.read_text(), ours, explained)
            cells, why = results.setdefault(verb, ({}, []))
            cells[version] = "DIFFERS" if left else ("explained" if reasons else "=")
            why += [reason for reason in reasons if reason not in why]
            failed += bool(left)
            if left:
                print(f"---- {verb} ({version})")
                print("\n".join(left))
    table = [(verb, [cells.get(version, "") for version in versions], why)
             for verb, (cells, why) in sorted(results.items())]
    write_section(root, versions, table)
    total = sum(len(cells) for cells, _ in results.values())
    print(f"{total - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
