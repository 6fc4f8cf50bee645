"""lint.layers: every #include goes along an edge of layers.txt."""

import fnmatch
import os
import re

import sources

TABLE = "tests/lint/layers.txt"
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|(<[^>]+>))', re.M)


def parse(text):
    """-> (folder -> allowed folders, [(header pattern, file patterns)])"""
    edges, only = {}, []
    for line in text.splitlines():
        line = line.split("#", 1)[0].strip()
        if not line:
            continue
        left, _, right = line.partition(":")
        if left.startswith("only "):
            only.append((left[5:].strip(), right.split()))
        else:
            edges[left.strip()] = set(right.split())
    return edges, only


def folder_of(path, edges):
    """The rule that counts: one for this very file (without its suffix), else its folder's."""
    folder = path.split(".")[0]
    while folder and folder not in edges:
        folder = os.path.dirname(folder)
    return folder or None


def resolve(header):
    """The path of an included header: the client's public headers have a root of their own."""
    return "client/include/" + header if header.startswith("triad/") else header


def uses(pattern, header, is_system):
    if pattern.startswith("<"):
        return is_system and header.startswith(pattern)
    return fnmatch.fnmatch(header, pattern)


def check(path, text, edges, only, private):
    """Problems of one file. `private`: headers that carry Asio; their folder only."""
    problems = []
    mine = folder_of(path, edges)
    if mine is None:
        return [f"{path}: its folder is not in {TABLE}"]
    for match in INCLUDE.finditer(sources.blank(text, keep_strings=True)):
        quoted, system = match.group(1), match.group(2)
        header = quoted or system
        where = f"{path}:{sources.line_of(text, match.start())}: #include {header}"
        for pattern, allowed in only:
            if uses(pattern, header, system is not None) and \
                    not any(fnmatch.fnmatch(path, a) for a in allowed):
                problems.append(f"{where}: {pattern} is for {' '.join(allowed)} only")
        if not quoted:
            continue
        if mine == "tests" and "/" not in quoted:  # a helper beside the test
            if not os.path.isfile(os.path.join(sources.ROOT, os.path.dirname(path), quoted)):
                problems.append(f"{where}: no such file beside the test")
            continue
        target_path = resolve(quoted)
        target = folder_of(target_path, edges)
        if target is None:
            problems.append(f"{where}: no folder of {TABLE} (a path from the root is expected)")
            continue
        if target != mine and target not in edges[mine] and "*" not in edges[mine]:
            problems.append(f"{where}: {mine}/ may not use {target}/")
        if target_path in private and target != mine and mine != "tests":
            problems.append(f"{where}: this header carries Asio and is private to {target}/")
    return problems


def lint():
    edges, only = parse(sources.read(TABLE))
    texts = {f: sources.read(f) for f in sources.files(".h", ".cc")}
    private = {f for f, t in texts.items() if f.endswith(".h") and "#include <asio" in t}
    problems = [p for f, t in texts.items() for p in check(f, t, edges, only, private)]
    return problems, len(texts)


def self_test():
    edges, only = parse("a:\nb/x: a\nb: b/x\ntests: *\nonly <asio : b/net.cc\nonly *.pb.h : *.cc\n")

    def fires(path, text, private=()):
        return len(check(path, text, edges, only, set(private)))
    expect = sources.expect
    expect(fires("b/x/f.cc", '#include "a/g.h"\n') == 0, "an allowed edge is refused")
    expect(fires("a/f.cc", '#include "b/g.h"\n') == 1, "an edge that points up is not seen")
    expect(fires("b/x/f.cc", '#include "b/g.h"\n') == 1, "a folder above its room is not seen")
    expect(fires("a/f.h", ' #  include "tests/g.h"\n') == 1, "an include of tests/ is not seen")
    expect(fires("tests/f.cc", '#include "b/x/g.h"\n') == 0, "tests may include everything")
    expect(fires("a/f.cc", "#include <asio.hpp>\n") == 1, "asio in a core is not seen")
    expect(fires("b/net.cc", "#include <asio.hpp>\n") == 0, "asio in its shell is refused")
    expect(fires("b/f.h", '#include "b/f.pb.h"\n') == 1, "a generated header in a header is not seen")
    expect(fires("b/f.cc", '#include "b/f.pb.h"\n') == 0, "a generated header in a .cc is refused")
    expect(fires("a/f.cc", '// #include "b/g.h"\n') == 0, "a comment is read as code")
    expect(fires("c/f.cc", "") == 1, "a folder without a rule is not seen")
    expect(fires("b/f.cc", '#include "b/x/n.h"\n', ["b/x/n.h"]) == 1, "a private header is not seen")
    one = parse("a:\na/low:\nb: a/low\n")[0]
    expect(not check("b/f.cc", '#include "a/low.h"\n', one, [], set()), "a file's rule is ignored")
    expect(check("b/f.cc", '#include "a/high.h"\n', one, [], set()), "a file's rule covers others")
    expect(fires("a/f.cc", '#include "g.h"\n') == 1, "a bare name is not seen")
    expect(fires("tests/f.cc", '#include "no_such.h"\n') == 1, "a missing neighbour is not seen")


if __name__ == "__main__":
    sources.main("lint.layers", lint, self_test)
