"""lint.sleeps: tests wait for conditions with a deadline; they never sleep, skip or hide."""

import re

import sources

REFUSED = re.compile(
    # What the lint looks for, not a use of it; so are the examples below.
    r"\bsleep_(?:for|until)\b|\bu?sleep\s*\(|\bnanosleep\b|\bDISABLED_\w+|\bGTEST_SKIP\b|"
    r"\b(?:EXPECT|ASSERT)_TRUE\(\s*true\s*\)")


def check(path, text):
    code = sources.blank(text)
    return [f"{path}:{sources.line_of(code, m.start())}: {m.group(0)} has no place in a test"
            for m in REFUSED.finditer(code)]


def lint():
    listed = [f for f in sources.files(".h", ".cc") if f.startswith("tests/")]
    return [p for f in listed for p in check(f, sources.read(f))], len(listed)


def self_test():
    # Examples for the lint itself: text that it must refuse, then text that it must not.
    for text in ("std::this_thread::sleep_for(100ms);", "usleep(5);", "sleep (1);", "nanosleep(&a, &b);",
                 "TEST(A, DISABLED_B) {}", "GTEST_SKIP();", "EXPECT_TRUE( true );",
                 "std::this_thread::sleep_until(t);"):
        sources.expect(check("tests/f.cc", text), f"not seen: {text}")
    for text in ("// sleep_for", "Eventually(ready, 5s);", "Asleep(1);", "EXPECT_TRUE(true_value);"):
        sources.expect(not check("tests/f.cc", text), f"wrongly refused: {text}")


if __name__ == "__main__":
    sources.main("lint.sleeps", lint, self_test)
