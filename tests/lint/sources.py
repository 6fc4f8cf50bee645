"""What every lint needs: our source files, and C++ text without comments and literals."""

import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def files(*suffixes):
    """Paths (from the root) of our files with these suffixes: tracked ones and new ones."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
            cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    except (OSError, subprocess.CalledProcessError):  # no git, or an unpacked archive
        listed = []
        for folder, folders, names in os.walk(ROOT):
            folders[:] = [f for f in folders if f not in ("build", ".git", ".cache")]
            listed += [os.path.relpath(os.path.join(folder, n), ROOT) for n in names]
    return sorted({f for f in listed
                   if f.endswith(suffixes) and os.path.isfile(os.path.join(ROOT, f))})


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as file:
        return file.read()


_TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<d>[^()\\ ]{0,16})\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'", re.S)


def blank(text, keep_strings=False):
    """`text` with comments (and literals) emptied; every line stays where it was."""
    def replace(match):
        token = match.group(0)
        newlines = "\n" * token.count("\n")
        if token[0] == "/":
            return " " + newlines
        if keep_strings:
            return token
        return ('""' if token[0] in '"R' else "' '") + newlines
    return _TOKEN.sub(replace, text)


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def report(name, problems, checked):
    """Prints the problems; the exit status of the lint."""
    for problem in problems:
        print(problem)
    if not checked:
        print(f"{name}: found nothing to check")
        return 1
    print(f"{name}: {len(problems)} problems in {checked} files")
    return 1 if problems else 0


def main(name, lint, self_test):
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        print(f"{name}: the self-test passes")
        sys.exit(0)
    problems, checked = lint()
    sys.exit(report(name, problems, checked))


def expect(condition, what):
    if not condition:
        print(f"self-test: {what}")
        sys.exit(1)
