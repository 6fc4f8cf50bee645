"""lint.coroutines: an expression with co_await holds only names and calls.

g++ 12 destroys some temporaries of such an expression twice: aggregates made with braces, lambdas
with captures, a conditional operator. Also refused: asio::detached, which swallows exceptions.
"""

import re

import sources

CAPTURING = re.compile(r"(?:^|[(,={;&|!?:<>]|\breturn)\s*\[\s*[^\]\s][^\]]*\]\s*(?:\(|\{|mutable|<)")
STRUCTURED_BINDING = re.compile(r"\bauto\s*&{0,2}\s*\[[^\]]*\]\s*=")


def statements(text):
    """(start, statement) for every statement or condition; braces inside parentheses stay in it."""
    depth, start = 0, 0
    for at, char in enumerate(text):
        if char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
        elif depth <= 0 and char in ";{}":
            if char == "{" and _is_initialiser(text[start:at]):
                continue
            yield start, text[start:at]
            start, depth = at + 1, 0
    yield start, text[start:]


def _is_initialiser(before):
    """Whether a brace behind `before` makes a value (Agg{...}, = {...}) and not a block."""
    if "co_await" not in before and "co_return" not in before:
        return False
    return re.search(r"(?:[\w>]|=|,|\breturn)\s*$", before) is not None


def check(path, text):
    code = sources.blank(text)
    problems = []
    for match in re.finditer(r"\bdetached\b", code):
        problems.append(f"{path}:{sources.line_of(code, match.start())}: asio::detached swallows "
                        "exceptions: give co_spawn a handler")
    for start, statement in statements(code):
        found = re.search(r"\bco_await\b", statement)
        if not found:
            continue
        where = f"{path}:{sources.line_of(code, start + found.start())}"
        expression = STRUCTURED_BINDING.sub(" ", statement)
        if "{" in expression:
            problems.append(f"{where}: braces in an expression with co_await: name a local, move it")
        if "?" in expression:
            problems.append(f"{where}: ?: in an expression with co_await: use if")
        if CAPTURING.search(expression):
            problems.append(f"{where}: a capturing lambda in an expression with co_await")
    return problems


def lint():
    listed = sources.files(".h", ".cc")
    return [p for f in listed for p in check(f, sources.read(f))], len(listed)


def self_test():
    bad = {
        "an aggregate": "co_await Send(peer, Request{term, 1});",
        "an aggregate at the end": "auto x = co_await Request{term};",
        "a bare brace": "co_await Send(peer, {term, 1});",
        "a lambda": "co_await Run([this] { return 1; });",
        "a lambda by reference": "co_await Run(a, [&x](int y) { return x + y; });",
        "a conditional": "co_await Send(ok ? a : b);",
        "an assignment's conditional": "x = ok ? co_await A() : co_await B();",
        "a condition": "if ((co_await Get(Key{1})).ok()) { Go(); }",
        "several lines": "co_await Send(\n    peer,\n    Request{\n        term});",
        "detached": "asio::co_spawn(ex, Loop(), asio::detached);",
    }
    good = {
        "names and calls": "co_await Send(peer, std::move(request));",
        "a binding": "auto [error, n] = co_await socket.async_read_some(buffer, kToken);",
        "a block": "while (co_await Next()) { Use(Agg{1}); }",
        "a branch before": "if (a ? b : c) { co_await Send(d); }",
        "an index": "co_await Send(peers[i], table[3].x);",
        "a lambda without captures": "co_await Run([](int x) -> int);",
        "a comment": "co_await Send(a);  // Request{1} ?",
        "a text": 'co_await Say("{?");',
        "a function": "asio::awaitable<void> F() {\n  co_await G();\n}",
    }
    for name, text in bad.items():
        sources.expect(check("f.cc", text), f"not seen: {name}")
    for name, text in good.items():
        sources.expect(not check("f.cc", text), f"wrongly refused: {name}: {check('f.cc', text)}")


if __name__ == "__main__":
    sources.main("lint.coroutines", lint, self_test)
