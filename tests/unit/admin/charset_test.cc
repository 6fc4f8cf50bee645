#include "bin/admin/charset.h"

#include <gtest/gtest.h>

namespace triad::admin {
namespace {

std::string Utf8(const std::string& text, const std::string& charset) {
  const auto converted = ToUtf8(text, charset);
  EXPECT_TRUE(converted.ok()) << converted.status();
  return converted.ok() ? *converted : "";
}

TEST(Charset, TextBecomesUtf8) {
  EXPECT_EQ(Utf8("\xC4\xE3\xBA\xC3", "GBK"), "你好");
  EXPECT_EQ(Utf8("caf\xE9", "ISO-8859-1"), "café");
  EXPECT_EQ(Utf8("", "GBK"), "");
}

TEST(Charset, ManyCharactersAreConvertedAsOne) {
  std::string text, wanted;
  for (int i = 0; i < 3000; ++i) {
    text += "a\xC4\xE3";
    wanted += "a你";
  }
  EXPECT_EQ(Utf8(text, "gbk"), wanted);
}

TEST(Charset, Utf8StaysAsItIsAlsoWhenItIsNone) {
  for (const char* name : {"", "UTF-8", "utf8"}) EXPECT_EQ(Utf8("\xFF\x00x", name), "\xFF") << name;
}

TEST(Charset, WhatIsNoCharacterIsReplaced) {
  EXPECT_EQ(Utf8("a\xFF"
                 "b",
                 "GBK"),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(Utf8("a\xC4", "GBK"), "a\xEF\xBF\xBD") << "it ends within a character";
}

TEST(Charset, TheOrderOfUtf16IsThatOfItsMark) {
  using std::string_literals::operator""s;
  EXPECT_EQ(Utf8("\0a"s, "UTF-16"), "a");
  EXPECT_EQ(Utf8("\xFE\xFF\0a"s, "utf-16"), "a");
  EXPECT_EQ(Utf8("\xFF\xFE"
                 "a\0"s,
                 "UTF-16"),
            "a");
  EXPECT_EQ(Utf8("a\0"s, "UTF-16LE"), "a");
}

TEST(Charset, AnUnknownOneIsRefusedByName) {
  const auto converted = ToUtf8("a", "NoSet");
  ASSERT_FALSE(converted.ok());
  EXPECT_EQ(converted.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(converted.status().message()).find("NoSet"), std::string::npos);
}

}  // namespace
}  // namespace triad::admin
