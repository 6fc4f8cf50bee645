"""Which error returns of the stores were never taken, by the gcov data of a build directory.

An error return is a line of dledger/log, dledger/snapshot, broker/store or broker/state that hands on
or makes an error of the disk: TRIAD_RETURN_IF_ERROR, `if (!x.ok()) return ...`, `return
Status::IoError/Corruption/NoSpace(...)`. It was reached when every block of the line ran. Called by
bin/coverage; tests/coverage_floor.txt holds, per folder, how many may be missing.
"""

import collections
import json
import os
import re
import subprocess
import sys

FOLDERS = ("dledger/log", "dledger/snapshot", "broker/store", "broker/state")
ERROR_RETURN = re.compile(
    r"TRIAD_RETURN_IF_ERROR\(|if \(![\w>().*-]+\.?ok\(\)\) return\b"
    r"|return Status::(IoError|Corruption|NoSpace)\(|return Broken\(")
FLOOR = "tests/coverage_floor.txt"


def gcov(data_file):
    """The gcov documents of one object file."""
    out = subprocess.run(["gcov", "--json-format", "--stdout", "--branch-probabilities", data_file],
                         check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


def lines_run(build):
    """{file: {line: whether all of it ran}} of the folders' sources."""
    ran = collections.defaultdict(dict)
    root = os.getcwd() + "/"
    for folder in FOLDERS:
        for where, _, names in os.walk(os.path.join(build, folder)):
            for name in names:
                if not name.endswith(".gcno"):
                    continue
                data = os.path.join(where, name)
                for document in gcov(data):
                    for source in document["files"]:
                        path = os.path.normpath(os.path.join(
                            document["current_working_directory"], source["file"]))
                        path = path[len(root):] if path.startswith(root) else path
                        if not path.startswith(folder) or not path.endswith(".cc"):
                            continue
                        for line in source["lines"]:
                            number = line["line_number"]
                            whole = line["count"] > 0 and not line["unexecuted_block"]
                            ran[path][number] = ran[path].get(number, False) or whole
    return ran


def floors():
    """{folder: how many may be missing}"""
    with open(FLOOR, encoding="utf-8") as file:
        pairs = [line.split() for line in file if line.strip() and not line.startswith("#")]
    return {folder: int(count) for folder, count in pairs}


def main():
    build = sys.argv[1]
    ran = lines_run(build)
    if not ran:
        sys.exit(f"{build} holds no coverage data: run bin/coverage without --report first")
    total = collections.Counter()
    missing = collections.Counter()
    for path in sorted(ran):
        folder = os.path.dirname(path)
        with open(path, encoding="utf-8") as file:
            for number, text in enumerate(file, 1):
                if number not in ran[path] or not ERROR_RETURN.search(text):
                    continue
                total[folder] += 1
                if not ran[path][number]:
                    missing[folder] += 1
                    print(f"{path}:{number}: {text.strip()}")
    allowed = floors()
    bad = False
    for folder in FOLDERS:
        over = missing[folder] > allowed[folder]
        bad = bad or over
        print(f"{folder}: {total[folder] - missing[folder]} of {total[folder]} error returns reached, "
              f"{allowed[folder]} may be missing{' - TOO MANY' if over else ''}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
