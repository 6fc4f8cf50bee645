#include "client/message_codec.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/unit/client/fake_cluster.h"
#include "tests/unit/remoting/hex_file.h"

namespace triad::client {
namespace {

// wire.md §14.7.
std::string WorkedExample() {
  return test::FromHex(
      "0000007f daa320a7 3610a686 00000003 00000000 0000000000000080 0000000000010000 00000000"
      "0000018bcfe56800 0a000009 0000c350 0000018bcfe56805 0a000001 00002a9f 00000000"
      "0000000000000000 00000005 68656c6c6f 02 5431 001d"
      "54414753015461674102 4b455953016b3102 434c5553544552016331 02");
}

TEST(DecodeMessages, ReadsTheWorkedExample) {
  const auto messages = DecodeMessages(WorkedExample(), "broker-a");
  ASSERT_TRUE(messages.ok()) << messages.status();
  ASSERT_EQ(messages->size(), 1u);
  const ReceivedMessage& m = messages->front();
  EXPECT_EQ(m.topic, "T1");
  EXPECT_EQ(m.body, "hello");
  EXPECT_EQ(m.tag, "TagA");
  EXPECT_EQ(m.keys, std::vector<std::string>{"k1"});
  EXPECT_EQ(m.queue, (MessageQueue{"T1", "broker-a", 3}));
  EXPECT_EQ(m.queue_offset, 128);
  EXPECT_EQ(m.physical_offset, 65536);
  EXPECT_EQ(m.born_time_ms, 1700000000000);
  EXPECT_EQ(m.store_time_ms, 1700000000005);
  EXPECT_EQ(m.born_host, "10.0.0.9:50000");
  EXPECT_EQ(m.store_host, "10.0.0.1:10911");
  EXPECT_EQ(m.offset_message_id, "0A00000100002A9F0000000000010000");
  EXPECT_EQ(m.message_id, m.offset_message_id);
  EXPECT_EQ(m.properties.at("CLUSTER"), "c1");
}

TEST(DecodeMessages, AcceptsNoTruncationOfARecord) {
  const std::string whole = WorkedExample();
  for (std::size_t size = 1; size < whole.size(); ++size) {
    EXPECT_EQ(DecodeMessages(whole.substr(0, size), "a").status().code(), StatusCode::kCorruption)
        << size;
  }
}

TEST(DecodeMessages, RefusesTheWholeAnswerWhenOneRecordIsBad) {
  const std::string good = WorkedExample();
  for (const std::size_t at : {std::size_t{4}, std::size_t{90}, std::size_t{86}, std::size_t{93}}) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x40);
    EXPECT_EQ(DecodeMessages(good + bad, "a").status().code(), StatusCode::kCorruption) << at;
  }
}

TEST(DecodeMessages, PrefersTheUniqueKeyAndShowsARetriedMessageUnderItsFirstTopic) {
  StoredMessage stored;
  stored.topic = "%RETRY%g";
  stored.body = "b";
  stored.reconsume_times = 2;
  stored.properties = "RETRY_TOPIC\x01T1\x02UNIQ_KEY\x01U1";
  const auto messages = DecodeMessages(EncodeRecord(stored), "a");
  ASSERT_TRUE(messages.ok()) << messages.status();
  EXPECT_EQ(messages->front().topic, "T1");
  EXPECT_EQ(messages->front().queue.topic, "%RETRY%g");
  EXPECT_EQ(messages->front().message_id, "U1");
  EXPECT_EQ(messages->front().reconsume_times, 2);
}

TEST(Properties, SurviveTheirText) {
  const Properties properties{{"KEYS", "a b"}, {"TAGS", "x"}, {"UNIQ_KEY", "1"}};
  EXPECT_EQ(ParseProperties(JoinProperties(properties)), properties);
}

TEST(Properties, AreReadAsBrokersReadThem) {
  struct Case {
    const char* name;
    std::string text;
    Properties expected;
  };
  const Case cases[] = {
      {"no last separator",
       "a\x01"
       "1\x02"
       "b\x01"
       "2",
       {{"a", "1"}, {"b", "2"}}},
      {"later ones win",
       "a\x01"
       "1\x02"
       "a\x01"
       "2\x02",
       {{"a", "2"}}},
      {"empty name or value", "\x01v\x02n\x01\x02x\x02\x02", {}},
      {"separator in the value", "a\x01x\x01y\x02", {{"a", "x\x01y"}}},
      {"nothing", "", {}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(ParseProperties(c.text), c.expected);
  }
}

TEST(CheckMessage, SaysWhatABrokerWouldNotTake) {
  struct Case {
    const char* name;
    Message message;
    const char* complaint;  // null: fine
  };
  Message good;
  good.topic = "T-1_%|";
  good.body = "b";
  const auto with = [&](auto change) {
    Message message = good;
    change(&message);
    return message;
  };
  const Case cases[] = {
      {"good", good, nullptr},
      {"no topic", with([](Message* m) { m->topic = ""; }), "empty"},
      {"blank in topic", with([](Message* m) { m->topic = "a b"; }), "a b"},
      {"long topic", with([](Message* m) { m->topic.assign(128, 't'); }), "longer"},
      {"longest topic", with([](Message* m) { m->topic.assign(127, 't'); }), nullptr},
      {"no body", with([](Message* m) { m->body = ""; }), "body"},
      {"largest body", with([](Message* m) { m->body.assign(100, 'b'); }), nullptr},
      {"large body", with([](Message* m) { m->body.assign(101, 'b'); }), "101"},
      {"blank in key", with([](Message* m) { m->keys = {"a b"}; }), "blank"},
      {"control character", with([](Message* m) { m->tag = "a\x02"; }), "U+0002"},
      {"nameless property", with([](Message* m) { m->properties[""] = "x"; }), "name"},
      {"many properties", with([](Message* m) { m->properties["p"].assign(32768, 'p'); }), "32767"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const Status status = CheckMessage(c.message, 100);
    if (c.complaint == nullptr) {
      EXPECT_TRUE(status.ok()) << status;
    } else {
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
      EXPECT_NE(status.message().find(c.complaint), std::string_view::npos) << status;
    }
  }
}

// wire.md §14.8.
TEST(AppendBatchItem, WritesTheWorkedExample) {
  Message message;
  message.body = "a";
  std::string out;
  AppendBatchItem(message, "TAGS\x01x\x02", &out);
  EXPECT_EQ(
      out, test::FromHex("0000001e 00000000 00000000 00000000 00000001 61 0007 54414753 01 78 02"));
}

TEST(OffsetMessageId, IsReadBack) {
  const std::string id = OffsetMessageId(std::string("\x0A\0\0\x01", 4), 10911, 65536);
  EXPECT_EQ(id, "0A00000100002A9F0000000000010000");
  const auto place = ParseOffsetMessageId(id);
  ASSERT_TRUE(place.ok()) << place.status();
  EXPECT_EQ(place->first, "10.0.0.1:10911");
  EXPECT_EQ(place->second, 65536);
  for (const char* bad : {"", "0A", "0A00000100002A9F000000000001000G"}) {
    EXPECT_EQ(ParseOffsetMessageId(bad).status().code(), StatusCode::kInvalidArgument) << bad;
  }
}

TEST(JavaHash, IsJavas) {
  EXPECT_EQ(JavaHash("TagA"), 2598919);
  EXPECT_EQ(JavaHash("TagB"), 2598920);
  EXPECT_EQ(JavaHash("Aa"), JavaHash("BB"));
  EXPECT_EQ(JavaHash(""), 0);
  EXPECT_EQ(JavaHash("\xC3\xA9"), 233);              // e acute, one UTF-16 unit
  EXPECT_EQ(JavaHash("\xF0\x9F\x98\x80"), 1772899);  // U+1F600, a surrogate pair
  EXPECT_EQ(JavaHash("polygenelubricants"), -2147483647 - 1);
}

TEST(ParseTags, SplitsAtDoubleBars) {
  EXPECT_EQ(*ParseTags("A || B"), (std::vector<std::string>{"A", "B"}));
  EXPECT_EQ(*ParseTags(" A||  ||B "), (std::vector<std::string>{"A", "B"}));
  EXPECT_TRUE(ParseTags("*")->empty());
  EXPECT_TRUE(ParseTags("")->empty());
  EXPECT_EQ(ParseTags("||").status().code(), StatusCode::kInvalidArgument);
}

TEST(NewUniqueKey, IsThirtyTwoHexDigitsAndNeverTheSame) {
  std::set<std::string> seen;
  for (int i = 0; i < 70000; ++i) {
    const std::string key = NewUniqueKey();
    ASSERT_EQ(key.size(), 32u);
    ASSERT_EQ(key.find_first_not_of("0123456789ABCDEF"), std::string::npos);
    ASSERT_TRUE(seen.insert(key).second);
  }
}

}  // namespace
}  // namespace triad::client
