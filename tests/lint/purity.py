"""lint.purity: the files that pure.txt names know no clock, thread, lock, socket, file or dice, and walk through no
table in the order of its hashes."""

import fnmatch
import re

import sources

TABLE = "tests/lint/pure.txt"
RULES = {
    "clock": r"_clock\s*::|\bSystemClock\b|\bgettimeofday\b|\bclock_gettime\b|\btime\s*\(\s*(?:NULL|nullptr|0)",
    "thread": r"#\s*include\s*<(?:thread|condition_variable|future|semaphore|latch|barrier)>|"
              r"\bstd::(?:jthread|thread|async)\b|\bthread_local\b|\bpthread_",
    "mutex": r"#\s*include\s*<(?:mutex|shared_mutex)>|\bstd::(?:recursive_|shared_)?mutex\b",
    "atomic": r"#\s*include\s*<atomic>|\bstd::atomic\b",
    "random": r"\brandom_device\b|\bs?rand\s*\(|\bgetrandom\b",
    "socket": r"#\s*include\s*<(?:sys/socket|netinet/|arpa/|netdb|asio)|\basio::",
    "file": r"#\s*include\s*<(?:fstream|filesystem|unistd|fcntl|sys/)|\bPosixFileSystem\b|\bfopen\b|"
            r"\bstd::[io]?fstream\b",
    "environment": r"\bgetenv\b|\bFLAGS_",
    "logging": r"\b(?:LOG|VLOG|DLOG|PLOG|LOG_IF|LOG_EVERY_N)\s*\(|\bstd::c(?:err|out|log)\b",
}
RULES = {name: re.compile(pattern) for name, pattern in RULES.items()}
# A name that some pure file gives to an unordered container: its declaration ends with it.
UNORDERED = re.compile(r"\bunordered_(?:multi)?(?:map|set)\s*<[^;{}]*>\s*&?\s*((?:\w+\s*,\s*)*\w+)\s*[;={(]")


def unordered_names(texts):
    names = set()
    for text in texts:
        for match in UNORDERED.finditer(sources.blank(text)):
            names.update(name.strip() for name in match.group(1).split(","))
    return names


def hash_order(names):
    """Matches a walk through one of them."""
    if not names:
        return re.compile(r"(?!)")
    name = r"(?:[\w.\[\]()]|->)*?\b(?:" + "|".join(sorted(names)) + r")\b"
    return re.compile(r"\bfor\s*\([^;]*?[^:]:\s*" + name + r"\s*\)|\berase_if\s*\(\s*" + name +
                      r"|\b(?:" + "|".join(sorted(names)) + r")\s*(?:\.|->)\s*c?begin\s*\(")


def parse(text):
    pure, impure, allowed = [], [], []
    for line in text.splitlines():
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        if words[0] == "allow":
            allowed.append((words[1], words[2]))
        elif words[0].startswith("!"):
            impure.append(words[0][1:])
        else:
            pure.append(words[0])
    return pure, impure, allowed


def is_pure(path, pure, impure):
    def matches(patterns):
        return any(fnmatch.fnmatch(path, p) for p in patterns)
    return matches(pure) and not matches(impure)


def check(path, text, allowed, names=frozenset()):
    code = sources.blank(text)
    problems = []
    for name, pattern in {**RULES, "order": hash_order(names)}.items():
        if any(rule == name and fnmatch.fnmatch(path, p) for rule, p in allowed):
            continue
        for match in pattern.finditer(code):
            problems.append(f"{path}:{sources.line_of(code, match.start())}: {' '.join(match.group(0).split())} "
                            f"({name}) has no place in a pure core")
    return problems


def lint():
    pure, impure, allowed = parse(sources.read(TABLE))
    listed = [f for f in sources.files(".h", ".cc") if is_pure(f, pure, impure)]
    texts = {f: sources.read(f) for f in listed}
    names = unordered_names(texts.values())
    problems = [p for f in listed for p in check(f, texts[f], allowed, names)]
    return problems, len(listed)


def self_test():
    pure, impure, allowed = parse("a/*\n!a/shell.*\nallow mutex a/table.cc\n")
    expect = sources.expect
    expect(is_pure("a/x.cc", pure, impure), "a pure file is not found")
    expect(not is_pure("a/shell.cc", pure, impure), "an exception is not honoured")
    expect(not is_pure("b/x.cc", pure, impure), "another folder is taken")
    bad = {
        "clock": "auto now = std::chrono::steady_clock::now();",
        "thread": "#include <thread>\n",
        "mutex": "std::mutex mutex_;",
        "atomic": "std::atomic<int> x;",
        "random": "std::random_device dice;",
        "socket": "#include <sys/socket.h>\n",
        "file": "std::ofstream out(name);",
        "environment": 'getenv("HOME");',
        "logging": "LOG(INFO) << 1;",
    }
    expect(set(bad) == set(RULES), "a rule has no bad sample")
    for name, text in bad.items():
        found = check("a/x.cc", text, allowed)
        expect(any(f"({name})" in problem for problem in found), f"not seen: {name}")
    names = unordered_names(["std::unordered_map<std::string, std::vector<int>> by_key_;  // x\n"
                             "std::unordered_set<std::string> taken, dead;\nstd::map<int, int> sorted_;"])
    expect(names == {"by_key_", "taken", "dead"}, f"unordered containers: {names}")
    for text in ("for (const auto& [key, value] : by_key_) {", "for (int x : tables->by_key_) f();",
                 "std::erase_if(by_key_, [](int) {", "auto it = by_key_.begin();", "for (auto& x :\n  a.dead) {"):
        expect(any("(order)" in p for p in check("a/x.cc", text, [], names)), f"not seen: {text}")
    for text in ("for (int x : sorted_) f();", "by_key_.find(k) == by_key_.end()", "for (int i = 0; i < by_key_.size();) {",
                 "std::erase_if(sorted_, f);", "for (int x : by_key) f();"):
        expect(not check("a/x.cc", text, [], names), f"refused: {text}")
    expect(not check("a/x.cc", "for (int x : by_key_) {", [("order", "a/*")], names), "an allowed walk is refused")
    expect(not check("a/table.cc", bad["mutex"], allowed), "an allowed mutex is refused")
    expect(not check("a/x.cc", "CHECK(x) << y;\nTimePoint now;  // std::mutex\n", allowed),
           "CHECK or a comment is refused")


if __name__ == "__main__":
    sources.main("lint.purity", lint, self_test)
