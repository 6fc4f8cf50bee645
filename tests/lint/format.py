"""lint.format: clang-format 14 would change nothing."""

import os
import shutil
import subprocess
import tempfile

import sources

TOOL = shutil.which("clang-format-14") or "clang-format-14"


def check(paths, cwd):
    """One line per file that the tool would change."""
    result = subprocess.run([TOOL, "--dry-run", "-Werror", "--style=file", *paths], cwd=cwd,
                            capture_output=True, text=True)
    changed = [line.split(":")[0] for line in result.stderr.splitlines() if ": error:" in line]
    problems = [f"{path}: run clang-format-14 -i on it" for path in dict.fromkeys(changed)]
    if result.returncode != 0 and not problems:
        problems = result.stderr.splitlines() or [f"{TOOL} failed"]
    return problems


def lint():
    listed = sources.files(".h", ".cc")
    problems = []
    for at in range(0, len(listed), 50):
        problems += check(listed[at:at + 50], sources.ROOT)
    return problems, len(listed)


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(os.path.join(sources.ROOT, ".clang-format"), folder)
        for name, text in (("bad.cc", "int  main( ){return 0 ;}\n"), ("good.cc", "int x = 0;\n")):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        sources.expect(check(["bad.cc"], folder), "a badly formatted file is not seen")
        sources.expect(not check(["good.cc"], folder), "a well formatted file is refused")


if __name__ == "__main__":
    sources.main("lint.format", lint, self_test)
