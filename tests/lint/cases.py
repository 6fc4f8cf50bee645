"""lint.cases: every test that tests/cases.txt names exists."""

import re

import sources

TABLE = "tests/cases.txt"
TEST = re.compile(r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)", re.M)
LINE = re.compile(r"([A-Z]+-\d+)(?:: (.+)| - .+)")


def check(table, tests):
    problems = []
    for number, line in enumerate(table.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = LINE.fullmatch(line)
        if not match:
            problems.append(f"{TABLE}:{number}: expected 'ID: Suite.Test ...' or 'ID - what is missing'")
            continue
        for test in (match.group(2) or "").split():
            if test not in tests:
                problems.append(f"{TABLE}:{number}: {match.group(1)}: there is no test {test}")
    return problems


def lint():
    listed = [f for f in sources.files(".cc") if f.startswith("tests/")]
    tests = {f"{suite}.{name}" for f in listed for suite, name in TEST.findall(sources.read(f))}
    return check(sources.read(TABLE), tests), len(tests)


def self_test():
    tests = {"Suite.Test"}
    for text in ("CFG-1: Suite.Gone", "CFG-1 Suite.Test", "CFG: Suite.Test", "CFG-1: Suite.Test Other.Gone"):
        sources.expect(check(text, tests), f"not seen: {text}")
    for text in ("# CFG-1: Suite.Gone", "CFG-1: Suite.Test", "CFG-1 - nothing yet", ""):
        sources.expect(not check(text, tests), f"wrongly refused: {text}")


if __name__ == "__main__":
    sources.main("lint.cases", lint, self_test)
