// Property strings, tag codes, addresses and ids.

#include <gtest/gtest.h>

#include "broker/store/message.h"
#include "common/file_system.h"
#include "remoting/json.h"
#include "tests/unit/broker/store_support.h"

namespace triad::broker {
namespace {

TEST(Properties, ReadersSeeWhatTheVectorsSay) {
  const std::string path = std::string(TRIAD_TEST_DATA) + "/spec/message-properties.json";
  const std::string text = ReadFile(PosixFileSystem(), path).value();
  const remoting::Json document = remoting::Json::Parse(text).value();
  ASSERT_GE(document["vectors"].items().size(), 7u);
  for (const remoting::Json& vector : document["vectors"].items()) {
    SCOPED_TRACE(vector["note"].AsString());
    const std::string stored = vector["in"].AsString();
    std::map<std::string, std::string> expected;
    for (const auto& member : vector["out"].members()) {
      expected[member.key] = member.value.AsString();
    }
    EXPECT_EQ(ParseProperties(stored), expected);
    for (const auto& [name, value] : expected) EXPECT_EQ(FindProperty(stored, name), value);
  }
}

TEST(Properties, TheLastDuplicateWins) {
  const std::string stored =
      "A\x01"
      "1\x02"
      "B\x01x\x02"
      "A\x01"
      "2\x02";
  EXPECT_EQ(FindProperty(stored, "A"), "2");
  EXPECT_EQ(ParseProperties(stored).at("A"), "2");
}

TEST(Properties, TheFirstSeparatorEndsTheName) {
  EXPECT_EQ(FindProperty("A\x01x\x01y\x02", "A"), "x\x01y");
}

TEST(Properties, FindIsExact) {
  const std::string stored = "TAGSX\x01no\x02XTAGS\x01no\x02";
  EXPECT_EQ(FindProperty(stored, "TAGS"), "");
  EXPECT_EQ(FindProperty("", "TAGS"), "");
}

TEST(Properties, SetReplacesOrAppendsWithASeparator) {
  std::string stored;
  SetProperty(&stored, "A", "1");
  EXPECT_EQ(stored,
            "A\x01"
            "1\x02");
  stored =
      "A\x01"
      "1\x02"
      "B\x01"
      "2";  // no final separator
  SetProperty(&stored, "C", "3");
  EXPECT_EQ(stored,
            "A\x01"
            "1\x02"
            "B\x01"
            "2\x02"
            "C\x01"
            "3\x02");
  SetProperty(&stored, "A", "9");
  EXPECT_EQ(ParseProperties(stored),
            (std::map<std::string, std::string>{{"A", "9"}, {"B", "2"}, {"C", "3"}}));
}

TEST(Properties, AValueCannotSmuggleInAnotherProperty) {
  std::string stored;
  SetProperty(&stored, "A",
              "1\x02"
              "B\x01"
              "2");
  EXPECT_EQ(FindProperty(stored, "B"), "");
  EXPECT_EQ(ParseProperties(stored).size(), 1u);
}

TEST(Properties, RemoveTakesEveryDuplicateAndNothingElse) {
  std::string stored =
      "A\x01"
      "1\x02"
      "B\x01"
      "2\x02"
      "A\x01"
      "3";
  RemoveProperty(&stored, "A");
  EXPECT_EQ(stored,
            "B\x01"
            "2\x02");
  RemoveProperty(&stored, "absent");
  EXPECT_EQ(stored,
            "B\x01"
            "2\x02");
  SetProperty(&stored, "B", "");
  EXPECT_EQ(stored, "");
}

TEST(TagCode, IsJavasStringHash) {
  EXPECT_EQ(TagCode(""), 0);
  EXPECT_EQ(TagCode("TagA"), 2598919);  // wire.md §14.7
  EXPECT_EQ(TagCode("Aa"), 2112);
  EXPECT_EQ(TagCode("BB"), 2112);
  EXPECT_EQ(TagCode("polygenelubricants"), -2147483648LL);  // sign-extended
  EXPECT_EQ(TagCode("\xC3\xA9"), 233);                      // U+00E9
  EXPECT_EQ(TagCode("\xE4\xB8\xAD\xE6\x96\x87"), 20013 * 31 + 25991);
}

TEST(TagCode, CountsCharactersBeyondTheBasicPlaneAsTwo) {
  EXPECT_EQ(TagCode("\xF0\x9F\x98\x80"), 0xD83D * 31 + 0xDE00);  // U+1F600
  EXPECT_EQ(TagCode("\xF4\x8F\xBF\xBF"), 0xDBFF * 31 + 0xDFFF);  // U+10FFFF
}

TEST(TagCode, ReadsIllFormedTextAsJavaDoes) {
  constexpr std::int64_t kBad = 0xFFFD;
  EXPECT_EQ(TagCode("\xFF"), kBad);
  EXPECT_EQ(TagCode("\xC3"), kBad);      // cut off
  EXPECT_EQ(TagCode("\xE4\xB8"), kBad);  // cut off after two
  EXPECT_EQ(TagCode("\xC3"
                    "A"),
            kBad * 31 + 'A');                        // resumes at the next
  EXPECT_EQ(TagCode("\xC0\x80"), kBad * 31 + kBad);  // overlong
  EXPECT_EQ(TagCode("\x80"), kBad);                  // a lone continuation
  const auto three = static_cast<std::int32_t>((kBad * 31 + kBad) * 31 + kBad);
  EXPECT_EQ(TagCode("\xED\xA0\x80"), three);  // a surrogate
}

TEST(HostPort, ReadsBothFamilies) {
  EXPECT_EQ(ParseHostPort("1.2.3.4:5").value(), (HostPort{std::string("\x01\x02\x03\x04"), 5}));
  EXPECT_EQ(ParseHostPort("[::1]:65535").value().ip, std::string(15, '\0') + "\x01");
  EXPECT_EQ(FormatHostPort(Host("1.2.3.4:5")), "1.2.3.4:5");
  EXPECT_EQ(FormatHostPort(Host("[2001:db8::1]:5")), "[2001:db8::1]:5");
  EXPECT_EQ(FormatHostPort(HostPort{}), "0.0.0.0:0");
}

TEST(HostPort, AMappedAddressIsIpv4) {
  EXPECT_EQ(Host("[::ffff:10.0.0.9]:50000"), Host("10.0.0.9:50000"));
}

TEST(HostPort, RefusesWhatIsNoAddressAndPort) {
  for (const char* text :
       {"", ":", "1.2.3.4", "1.2.3.4:", ":5", "1.2.3.4:-1", "1.2.3.4:65536", "1.2.3.4:5x",
        "1.2.3:5", "host:5", "::1:5", "[::1:5", "[]:5", "[1.2.3.4]:5", "1.2.3.4: 5"}) {
    EXPECT_EQ(ParseHostPort(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
}

TEST(OffsetMessageId, IsAddressPortAndOffsetInHex) {
  EXPECT_EQ(OffsetMessageId(Host("10.0.0.1:10911"), PhysicalOffset{65536}),
            "0A00000100002A9F0000000000010000");
  const std::string long_id = OffsetMessageId(Host("[2001:db8::1]:10911"), PhysicalOffset{1});
  EXPECT_EQ(long_id, "20010DB800000000000000000000000100002A9F0000000000000001");
  for (const std::string& id : {std::string("0a00000100002a9f0000000000010000"), long_id}) {
    const auto parsed = ParseOffsetMessageId(id).value();
    EXPECT_EQ(ParseOffsetMessageId(OffsetMessageId(parsed.first, parsed.second)).value(), parsed);
  }
  EXPECT_EQ(ParseOffsetMessageId("0A00000100002A9F0000000000010000").value(),
            std::make_pair(Host("10.0.0.1:10911"), PhysicalOffset{65536}));
}

TEST(OffsetMessageId, RefusesOtherText) {
  for (const char* id : {"", "0A", "0A00000100002A9F000000000001000",
                         "0A00000100002A9F00000000000100000", "0G00000100002A9F0000000000010000",
                         "0A00000100002A9F8000000000010000", "0A000001FFFFFFFF0000000000010000"}) {
    EXPECT_EQ(ParseOffsetMessageId(id).status().code(), StatusCode::kInvalidArgument) << id;
  }
}

TEST(UniqueKey, HasTheShapeOfAJavaClients) {
  // 2023-11-14T22:13:20Z: 13 days, 22:13:20 into its month.
  const std::string key = MakeUniqueKey(Host("10.0.0.9:1"), 0x1234, 1700000000000, 7);
  ASSERT_EQ(key.size(), 32u);
  EXPECT_EQ(key.substr(0, 8), "0A000009");
  EXPECT_EQ(key.substr(8, 4), "1234");
  const std::int64_t into_month = ((13 * 24 + 22) * 60 + 13) * 60000LL + 20000;
  EXPECT_EQ(std::stoll(key.substr(20, 8), nullptr, 16), into_month);
  EXPECT_EQ(key.substr(28), "0007");
  EXPECT_EQ(MakeUniqueKey(Host("[::1]:1"), 1, 1700000000000, 7).size(), 56u);
}

TEST(UniqueKey, DiffersByCounterBeyondItsOwnField) {
  const HostPort host = Host("10.0.0.9:1");
  EXPECT_NE(MakeUniqueKey(host, 1, 1700000000000, 1), MakeUniqueKey(host, 1, 1700000000000, 2));
  EXPECT_NE(MakeUniqueKey(host, 1, 1700000000000, 1),
            MakeUniqueKey(host, 1, 1700000000000, 1 + 65536));
}

}  // namespace
}  // namespace triad::broker
