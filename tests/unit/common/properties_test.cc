// Properties against what java.util.Properties.load gives for the same bytes (tests/data/spec).

#include "common/properties.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "common/file_system.h"
#include "remoting/json.h"

namespace triad {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

std::map<std::string, std::string> Parse(const std::string& text) {
  const Properties properties = Properties::Parse(text).value();
  std::map<std::string, std::string> map;
  for (const auto& [key, entry] : properties.entries()) map[key] = entry.value;
  return map;
}

std::string Load(const std::string& name) {
  return ReadFile(PosixFileSystem(), std::string(TRIAD_TEST_DATA) + "/spec/" + name).value();
}

TEST(Properties, CFG_6_CFG_7_ReadsEverySpecFileAsJavaDoes) {
  int files = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(std::string(TRIAD_TEST_DATA) + "/spec")) {
    const std::string name = file.path().filename().string();
    if (file.path().extension() != ".conf") continue;
    SCOPED_TRACE(name);
    ++files;
    const auto document = remoting::Json::Parse(Load(name + ".expected.json"));
    ASSERT_TRUE(document.ok()) << document.status();
    const remoting::Json& java = (*document)["java"];
    const auto properties = Properties::Parse(Load(name));
    ASSERT_EQ(properties.ok(), java["ok"].AsBool()) << properties.status();
    if (!properties.ok()) continue;
    std::map<std::string, std::string> expected;
    for (const auto& member : java["properties"].members()) {
      std::string key = member.key;
      // Java reads the byte order mark as three Latin-1 characters of the first key; we skip it.
      const std::string mark = "\u00ef\u00bb\u00bf";
      if (key.compare(0, mark.size(), mark) == 0) key = key.substr(mark.size());
      expected[key] = member.value.AsString();
    }
    std::map<std::string, std::string> got;
    for (const auto& [key, entry] : properties->entries()) got[key] = entry.value;
    EXPECT_EQ(got, expected);
    EXPECT_EQ(properties->had_bom(), name == "bom-utf8.conf");
  }
  EXPECT_GE(files, 20);
}

TEST(Properties, EverySeparatorMeansTheSame) {
  for (const char* text : {"k=v", "k:v", "k v", "k = v", "  k\t:\fv", "k\\\n=v", "k=\\\n  v"}) {
    EXPECT_THAT(Parse(text), ElementsAre(Pair("k", "v"))) << text;
  }
  EXPECT_THAT(Parse("k==v"), ElementsAre(Pair("k", "=v")));
  EXPECT_THAT(Parse("k"), ElementsAre(Pair("k", "")));
  EXPECT_THAT(Parse("=v"), ElementsAre(Pair("", "v")));
}

TEST(Properties, CommentsAreWholeLinesAndNeverContinue) {
  EXPECT_THAT(Parse("# a\\\nb=1\n  ! c=2\nd=3 # e\n"),
              ElementsAre(Pair("b", "1"), Pair("d", "3 # e")));
}

TEST(Properties, AnOddNumberOfBackslashesContinues) {
  EXPECT_THAT(Parse("a=1\\\n   2\nb=3\\\\\nc=4\\\\\\\n5"),
              ElementsAre(Pair("a", "12"), Pair("b", "3\\"), Pair("c", "4\\5")));
  EXPECT_THAT(Parse("a=1\\\n#2"), ElementsAre(Pair("a", "1#2")));
  EXPECT_THAT(Parse("a=1\\\n\nb=2"), ElementsAre(Pair("a", "1"), Pair("b", "2")));
  EXPECT_THAT(Parse("a=1\\"), ElementsAre(Pair("a", "1")));
}

TEST(Properties, KeepsTrailingBlanksOfAValue) {
  EXPECT_THAT(Parse("a=1 \t\r\nb= \r"), ElementsAre(Pair("a", "1 \t"), Pair("b", "")));
}

TEST(Properties, Utf8PassesThroughAndEscapesBecomeUtf8) {
  EXPECT_THAT(Parse("a=\xe6\xb6\x88\\u606f\nb=\\ud83d\\ude80"),
              ElementsAre(Pair("a", "\xe6\xb6\x88\xe6\x81\xaf"), Pair("b", "\xf0\x9f\x9a\x80")));
  EXPECT_THAT(Parse("a=\\ud83dx"), ElementsAre(Pair("a", "\xef\xbf\xbdx")));
}

TEST(Properties, ABadUnicodeEscapeIsRefusedWithItsLine) {
  for (const char* bad :
       {"a=1\r\n\r\nb=\\u12", "a=1\n\nb=\\u12g4", "a=1\n\n\\u=", "a=1\n\nb\\u00zz=1"}) {
    const auto result = Properties::Parse(bad);
    ASSERT_FALSE(result.ok()) << bad;
    EXPECT_EQ(result.status().message().substr(0, 7), "line 3:") << bad;
  }
}

TEST(Properties, RemembersLinesAndOverwrittenKeys) {
  const Properties p = Properties::Parse("# c\na=1\r\n\rb=\\\n2\na=3\n").value();
  EXPECT_EQ(p.Find("a")->line, 6);
  EXPECT_EQ(p.Find("b")->line, 4);
  EXPECT_EQ(p.Find("c"), nullptr);
  ASSERT_EQ(p.overwritten().size(), 1u);
  EXPECT_EQ(p.overwritten()[0].key, "a");
  EXPECT_EQ(p.overwritten()[0].old_line, 2);
  EXPECT_EQ(p.overwritten()[0].new_line, 6);
}

TEST(SetInPropertiesText, ReplacesTheLineInForceAndKeepsEverythingElse) {
  const std::string text = "# port\r\nlistenPort=1\r\na = 1\\\n  2\nb=3\nlistenPort=2";
  EXPECT_EQ(SetInPropertiesText(text, {{"listenPort", "3"}}).value(),
            "# port\r\nlistenPort=1\r\na = 1\\\n  2\nb=3\nlistenPort=3\n");
  EXPECT_EQ(SetInPropertiesText(text, {{"a", "x"}, {"new", "y"}}).value(),
            "# port\r\nlistenPort=1\r\na=x\nb=3\nlistenPort=2\nnew=y\n");
}

TEST(SetInPropertiesText, WhatItWritesIsReadBack) {
  const std::map<std::string, std::string> changes = {
      {"a key", " lead\\ing\t= # !"}, {"b", ""}, {"c:d", "x y"}};
  EXPECT_EQ(Parse(SetInPropertiesText("b=1\n", changes).value()), changes);
}

// Found by fuzz_properties, twice: the new key became the rest of the last line. Every short text
// of the characters that matter to lines, so every way for a text to end.
TEST(SetInPropertiesText, WhatIsAppendedIsALineOfItsOwnBehindEveryText) {
  constexpr std::string_view kAlphabet = "a=#\\\n\r ";
  std::vector<std::string> texts = {""};
  for (std::size_t at = 0; at < texts.size(); ++at) {
    const std::string text = texts[at];
    SCOPED_TRACE(testing::PrintToString(text));
    std::map<std::string, std::string> expected = Parse(text);
    expected["b"] = "2";
    ASSERT_EQ(Parse(SetInPropertiesText(text, {{"b", "2"}}).value()), expected);
    if (const auto a = expected.find("a"); a != expected.end()) {
      a->second = "3";
      ASSERT_EQ(Parse(SetInPropertiesText(text, {{"a", "3"}, {"b", "2"}}).value()), expected);
    }
    if (text.size() == 5) continue;
    for (const char c : kAlphabet) texts.push_back(text + c);
  }
}

TEST(Properties, AnEmptyFileIsEmpty) {
  EXPECT_THAT(Parse(""), IsEmpty());
  EXPECT_THAT(Parse("\n \t\n\\\n\n"), IsEmpty());
}

}  // namespace
}  // namespace triad
