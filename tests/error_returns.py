"""Which error returns of the stores were never taken, by the gcov data of a build directory.

An error return is a line of dledger/log, dledger/snapshot, broker/store or broker/state that hands on
or makes an error of the disk: TRIAD_RETURN_IF_ERROR, `if (!x.ok()) return ...`, `return
Status::IoError/Corruption/NoSpace(...)`. It was reached when every block of the line ran. Called by
bin/coverage; tests/coverage_floor.txt names those that may be missing, and why.
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


def excused():
    """{(path, text of the line): why no test takes it}"""
    reasons = {}
    key = None
    with open(FLOOR, encoding="utf-8") as file:
        for line in file:
            if line.startswith("#") or not line.strip():
                continue
            if line[0] != " ":
                path, text = line.strip().split(": ", 1)
                key = (path, text)
                reasons[key] = ""
            else:
                reasons[key] = (reasons[key] + " " + line.strip()).strip()
    return reasons


def main():
    build = sys.argv[1]
    ran = lines_run(build)
    if not ran:
        sys.exit(f"{build} holds no coverage data: run bin/coverage without --report first")
    total = collections.Counter()
    reached = collections.Counter()
    reasons = excused()
    used = set()
    bad = False
    for path in sorted(ran):
        folder = os.path.dirname(path)
        with open(path, encoding="utf-8") as file:
            for number, text in enumerate(file, 1):
                if number not in ran[path] or not ERROR_RETURN.search(text):
                    continue
                total[folder] += 1
                if ran[path][number]:
                    reached[folder] += 1
                    continue
                key = (path, text.strip())
                used.add(key)
                bad = bad or key not in reasons
                print(f"{path}:{number}: {text.strip()}\n    {reasons.get(key, 'NOT REACHED')}")
    for path, text in sorted(set(reasons) - used):
        bad = True
        print(f"{FLOOR}: {path}: {text}\n    IS REACHED, or gone: remove it from that file")
    for folder in FOLDERS:
        print(f"{folder}: {reached[folder]} of {total[folder]} error returns reached")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
