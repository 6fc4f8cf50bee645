"""lint.cases: every test that tests/cases.txt names exists; cases of these areas have a test with their id in its name."""

import re

import sources

TABLE = "tests/cases.txt"
TEST = re.compile(r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)", re.M)
NAMED = [f"{area}-{number}" for area, last in {"CFG": 9, "NS": 5, "REP": 5, "ORD": 4, "DLQ": 4, "OFS": 6, "WIRE": 6, "DLY": 2,
                                               "ADM": 4, "GRP": 6}.items() for number in range(1, last + 1)]
NAMED += ["OPS-1", "OPS-2", "OPS-3", "OPS-4", "OPS-5", "UPG-1", "UPG-2"]
LINE = re.compile(r"([A-Z]+-\d+)(?:: (.+)| - .+)")


def check(table, tests, named=()):
    problems = []
    missing = set(named)
    for number, line in enumerate(table.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = LINE.fullmatch(line)
        if not match:
            problems.append(f"{TABLE}:{number}: expected 'ID: Suite.Test ...' or 'ID - what is missing'")
            continue
        for test in (match.group(2) or "").split():
            if match.group(1).lower().replace("-", "_") + "_" in test.lower():
                missing.discard(match.group(1))
            if test not in tests:
                problems.append(f"{TABLE}:{number}: {match.group(1)}: there is no test {test}")
    return problems + [f"{TABLE}: no test has {case} in its name" for case in sorted(missing)]


def lint():
    listed = [f for f in sources.files(".cc") if f.startswith("tests/")]
    tests = {f"{suite}.{name}" for f in listed for suite, name in TEST.findall(sources.read(f))}
    tests |= {f.removeprefix("tests/") for f in sources.files(".txt") if f.startswith("tests/sim/scripts/")}
    return check(sources.read(TABLE), tests, NAMED), len(tests)


def self_test():
    tests = {"Suite.Test"}
    for text in ("CFG-1: Suite.Gone", "CFG-1 Suite.Test", "CFG: Suite.Test", "CFG-1: Suite.Test Other.Gone"):
        sources.expect(check(text, tests), f"not seen: {text}")
    for text in ("# CFG-1: Suite.Gone", "CFG-1: Suite.Test", "CFG-1 - nothing yet", ""):
        sources.expect(not check(text, tests), f"wrongly refused: {text}")
    tests = {"Suite.CFG_1_Test", "Suite.CFG_11_Test", "sim/scripts/cfg_1_test.txt"}
    for text in ("CFG-1: Suite.CFG_1_Test", "CFG-1: sim/scripts/cfg_1_test.txt"):
        sources.expect(not check(text, tests, ["CFG-1"]), f"wrongly refused: {text}")
    sources.expect(check("CFG-1: Suite.CFG_11_Test", tests, ["CFG-1"]), "another id taken for CFG-1")


if __name__ == "__main__":
    sources.main("lint.cases", lint, self_test)
