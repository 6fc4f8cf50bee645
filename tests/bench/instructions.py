"""bench.instructions: how many instructions a send and a pulled message take, against the recorded figures.

  instructions.py PROGRAM RECORD             exit 1 when a figure differs by more than 5 %
  instructions.py PROGRAM RECORD --record    writes the figures of now

PROGRAM is hot_paths, run under callgrind. Counted is what happens inside these functions, on whatever thread: no clock,
no waiting, no background work, so the figures are the same on a loaded machine.
"""

import re
import shutil
import subprocess
import sys
import tempfile

ROUNDS = "30"
TOLERANCE = 0.05
# Of every send: making the entry and its checksum; applying it; telling the waiters, with the answer's encoding.
EVERY_SEND = ["triad::broker::Appender::Build(*", "triad::dledger::MakeEntryFrom(*",
              "triad::broker::EntryDispatcher::Apply(*", "triad::broker::Appender::OnApplied(*"]
# In front of it: decoding, checks and submission, the long way and the short one of plain sends.
SEND = ["triad::broker::HotSends(*", *EVERY_SEND]
PLAIN = ["triad::broker::HotPlainSends(*", *EVERY_SEND]
PULL = ["triad::broker::HotPull(*"]
HOW = "bin/build release record_instructions"


def count(program, way, functions, which):
    """-> instructions per message"""
    with tempfile.TemporaryDirectory() as directory:
        out = directory + "/callgrind.out"
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=" + out, "--fair-sched=yes",
                   *("--toggle-collect=" + function for function in functions), program, ROUNDS, way]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit("%s\n%s\nexit %d" % (done.stdout, done.stderr[-3000:], done.returncode))
        with open(out) as file:
            totals = re.findall(r"^totals: (\d+)", file.read(), re.M)
    messages = int(re.search(which + r" (\d+)", done.stdout)[1])
    return sum(map(int, totals)) / messages


def read(path):
    with open(path) as file:
        return {name: float(figure) for name, figure in re.findall(r"^(\w+) (\d+)$", file.read(), re.M)}


def record(path, figures):
    with open(path) as file:
        text = file.read()
    for name, figure in figures.items():
        text = re.sub(r"^%s \d+$" % name, "%s %d" % (name, round(figure)), text, flags=re.M)
    with open(path, "w") as file:
        file.write(text)


def main():
    program, path = sys.argv[1:3]
    if not shutil.which("valgrind"):
        sys.exit("valgrind is not installed; bin/setup installs it")
    figures = {"send": count(program, "long", SEND, "sent"), "plain": count(program, "plain", PLAIN, "sent"),
               "pull": count(program, "long", PULL, "pulled")}
    if "--record" in sys.argv:
        record(path, figures)
    recorded = read(path)
    failed = False
    for name, figure in figures.items():
        change = figure / recorded[name] - 1 if recorded.get(name) else float("inf")
        print("%s: %.0f instructions per message, recorded %.0f (%+.1f %%)"
              % (name, figure, recorded.get(name, 0), 100 * change))
        failed = failed or abs(change) > TOLERANCE
    if failed:
        print("More than %.0f %% off. Slower: look for the reason in what changed. On purpose, or faster: record the new "
              "figures with\n  %s\nand say in the commit what changed them." % (100 * TOLERANCE, HOW))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
