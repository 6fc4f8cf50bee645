#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/byte_order.h"
#include "remoting/codes.h"
#include "tests/unit/broker/message_harness.h"

namespace triad::broker {
namespace {

class QueryTest : public testing::Test {
 protected:
  QueryTest() { broker_.CreateTopic("T", 1); }
  void Send(const std::string& body) {
    ASSERT_EQ(broker_.Send(MessageHarness::SendHeader("T"), body).code, remoting::kSuccess);
  }
  remoting::Command Ask(std::int32_t code, const char* extra_key = nullptr,
                        std::string extra_value = {}) {
    remoting::Command command = remoting::Command::Request(code);
    command.ext.Add("topic", "T");
    command.ext.Add("queueId", "0");
    if (extra_key != nullptr) command.ext.Add(extra_key, std::move(extra_value));
    return broker_.Call(command);
  }
  std::int64_t Offset(const remoting::Command& response) {
    EXPECT_EQ(response.code, remoting::kSuccess) << response.remark;
    return remoting::OffsetResponse::Decode(response.ext).value().offset;
  }

  MessageHarness broker_;
};

TEST_F(QueryTest, AnEmptyQueueHasNoOffsetsAndNoTime) {
  EXPECT_EQ(Offset(Ask(remoting::kGetMaxOffset)), 0);
  EXPECT_EQ(Offset(Ask(remoting::kGetMinOffset)), 0);
  EXPECT_EQ(Offset(Ask(remoting::kSearchOffsetByTimestamp, "timestamp", "5")), 0);
  EXPECT_EQ(*Ask(remoting::kGetEarliestMsgStoreTime).ext.Find("timestamp"), "-1");
}

TEST_F(QueryTest, OFS_6_ATimeFindsTheFirstMessageOfABatch) {
  const auto at = [&](std::int64_t time_ms) {
    return Offset(Ask(remoting::kSearchOffsetByTimestamp, "timestamp", std::to_string(time_ms)));
  };
  EXPECT_EQ(at(0), 0) << "an empty queue";
  EXPECT_EQ(at(std::int64_t{1} << 60), 0) << "an empty queue";
  remoting::SendMessageRequest header = MessageHarness::SendHeader("T");
  header.queue_id = 0;
  header.batch = true;
  std::string body;
  for (int i = 0; i < 10; ++i) {
    AppendBe32(&body, 22 + 1);
    body.append(12, '\0');
    AppendBe32(&body, 1);
    body += 'm';
    AppendBe16(&body, 0);
  }
  ASSERT_EQ(broker_.Send(header, body).code, remoting::kSuccess);
  const auto messages = broker_.Messages("T", 0);
  ASSERT_EQ(messages.size(), 10u);
  const std::int64_t time_ms = messages.front().store_time_ms;
  EXPECT_EQ(messages.back().store_time_ms, time_ms);
  EXPECT_EQ(at(time_ms), 0);
  EXPECT_EQ(at(time_ms + 1), 10);
  EXPECT_EQ(at(std::int64_t{1} << 60), 10);
  EXPECT_EQ(at(0), 0);
}

TEST_F(QueryTest, OffsetsAndTimesFollowTheMessages) {
  Send("a");
  Send("b");
  const auto messages = broker_.Messages("T", 0);
  EXPECT_EQ(Offset(Ask(remoting::kGetMaxOffset)), 2);
  EXPECT_EQ(Offset(Ask(remoting::kGetMinOffset)), 0);
  EXPECT_EQ(*Ask(remoting::kGetEarliestMsgStoreTime).ext.Find("timestamp"),
            std::to_string(messages.at(0).store_time_ms));
  const auto at = [&](std::int64_t time_ms) {
    return Offset(Ask(remoting::kSearchOffsetByTimestamp, "timestamp", std::to_string(time_ms)));
  };
  EXPECT_EQ(at(0), 0);
  EXPECT_EQ(at(messages.at(1).store_time_ms + 1), 2);
}

// tests/data/spec/frame-missing-field.hex, as its expectation says.
TEST_F(QueryTest, AQueryByKeyWithoutItsTimesNamesTheMissingField) {
  remoting::Command command = remoting::Command::Request(remoting::kQueryMessage);
  for (const auto& [key, value] :
       {std::pair{"topic", "T"}, {"key", "k"}, {"maxNum", "32"}, {"begin", "0"}, {"end", "1"}}) {
    command.ext.Add(key, value);
  }
  const auto bad = broker_.Call(command);
  EXPECT_NE(bad.code, remoting::kSuccess);
  EXPECT_NE(bad.remark.find("beginTimestamp"), std::string::npos) << bad.remark;
  command.ext.Add("beginTimestamp", "0");
  command.ext.Add("endTimestamp", "1");
  EXPECT_EQ(broker_.Call(command).code, remoting::kQueryNotFound);
}

class KeyQueryTest : public QueryTest {
 protected:
  // Returns the message's store time.
  std::int64_t SendKeyed(const std::string& keys, const std::string& unique_key,
                         const std::string& body) {
    auto header = MessageHarness::SendHeader("T");
    header.properties = "KEYS\x01" + keys + "\x02UNIQ_KEY\x01" + unique_key + "\x02";
    EXPECT_EQ(broker_.Send(header, body).code, remoting::kSuccess);
    return broker_.Messages("T", 0).back().store_time_ms;
  }
  remoting::Command Query(const std::string& key, std::int32_t max = 64, bool unique = false,
                          std::int64_t begin = 0, std::int64_t end = INT64_MAX) {
    remoting::QueryMessageRequest header;
    header.topic = "T";
    header.key = key;
    header.max_num = max;
    header.begin_timestamp_ms = begin;
    header.end_timestamp_ms = end;
    header.unique_key_query = unique;
    remoting::Command command = remoting::Command::Request(remoting::kQueryMessage);
    header.Encode(&command.ext);
    return broker_.Call(command);
  }
  static std::vector<std::string> Bodies(const remoting::Command& response) {
    std::vector<std::string> bodies;
    std::string_view rest = response.body;
    while (!rest.empty()) {
      const auto message = ParseMessage(rest, true);
      CHECK(message.ok()) << message.status();
      bodies.emplace_back(message->body);
      rest.remove_prefix(message->record.size());
    }
    return bodies;
  }
};

TEST_F(KeyQueryTest, MessagesAreFoundByEachOfTheirKeysAndTheUniqueKey) {
  SendKeyed("k1 k2", "U1", "a");
  SendKeyed("k2", "U2", "b");
  EXPECT_THAT(Bodies(Query("k1")), testing::ElementsAre("a"));
  EXPECT_THAT(Bodies(Query("k2")), testing::ElementsAre("a", "b"));
  EXPECT_THAT(Bodies(Query("U2", 1, true)), testing::ElementsAre("b"));
  EXPECT_EQ(Query("k1", 64, true).code, remoting::kQueryNotFound) << "k1 is no unique key";
  const remoting::Command response = Query("k1");
  const auto header = remoting::QueryMessageResponse::Decode(response.ext).value();
  const MessageView last = broker_.Messages("T", 0).back();
  EXPECT_EQ(header.index_last_update_timestamp_ms, last.store_time_ms);
  EXPECT_EQ(header.index_last_update_phyoffset, last.physical_offset.value());
}

// admin.md §15, 14: the newest ones, oldest first; never more than 64; 32 for a unique key.
TEST_F(KeyQueryTest, OfManyMatchesTheNewestComeInAscendingOrder) {
  std::vector<std::string> sent;
  for (int i = 0; i < 70; ++i) {
    sent.push_back("body " + std::to_string(i));
    SendKeyed("k", "U", sent.back());
  }
  const auto newest = [&](std::size_t count) {
    return std::vector<std::string>(sent.end() - static_cast<std::ptrdiff_t>(count), sent.end());
  };
  EXPECT_EQ(Bodies(Query("k", 1000)), newest(64));
  EXPECT_EQ(Bodies(Query("k", 5)), newest(5));
  EXPECT_EQ(Bodies(Query("U", 1, true)), newest(32));
  EXPECT_EQ(Query("k", 0).code, remoting::kQueryNotFound);
}

// cases.md ADM-2: "Aa" and "BB" have one Java hash.
TEST_F(KeyQueryTest, ADM_2_AKeyQueryReturnsNoForeignMessage) {
  SendKeyed("Aa", "U1", "a");
  EXPECT_EQ(Query("BB").code, remoting::kQueryNotFound);
  EXPECT_EQ(Query("BB").remark, "can not find message, maybe time range not correct");
  EXPECT_THAT(Bodies(Query("Aa")), testing::ElementsAre("a"));
}

// cases.md ADM-3: the born time, an hour away here or for ever, does not matter.
TEST_F(KeyQueryTest, ADM_3_TheWindowIsComparedWithTheStoreTime) {
  const std::int64_t now_ms = SystemClock().WallNowMs();
  for (const std::int64_t born_ms : {now_ms - 3600000, now_ms + 3600000}) {
    auto header = MessageHarness::SendHeader("T");
    header.born_timestamp_ms = born_ms;
    header.properties = "KEYS\x01" + std::to_string(born_ms) + "\x02";
    ASSERT_EQ(broker_.Send(header, "x").code, remoting::kSuccess);
    const std::int64_t stored_ms = broker_.Messages("T", 0).back().store_time_ms;
    const auto at = [&](std::int64_t begin, std::int64_t end) {
      return Query(std::to_string(born_ms), 64, false, begin, end).code;
    };
    EXPECT_EQ(at(stored_ms - 60000, stored_ms + 60000), remoting::kSuccess);
    EXPECT_EQ(at(stored_ms, stored_ms), remoting::kSuccess) << "both ends are included";
    EXPECT_EQ(at(stored_ms + 1, INT64_MAX), remoting::kQueryNotFound);
    EXPECT_EQ(at(0, stored_ms - 1), remoting::kQueryNotFound);
  }
}

TEST_F(KeyQueryTest, KeysAreFoundAfterARestart) {
  SendKeyed("k", "U", "a");
  broker_.Restart();
  EXPECT_THAT(Bodies(Query("k")), testing::ElementsAre("a"));
}

TEST_F(KeyQueryTest, AnUnknownTopicHasNoMessages) {
  remoting::Command command = remoting::Command::Request(remoting::kQueryMessage);
  for (const auto& [key, value] : {std::pair{"topic", "nowhere"},
                                   {"key", "k"},
                                   {"maxNum", "32"},
                                   {"beginTimestamp", "0"},
                                   {"endTimestamp", "9"}}) {
    command.ext.Add(key, value);
  }
  EXPECT_EQ(broker_.Call(command).code, remoting::kQueryNotFound);
}

TEST_F(QueryTest, AMessageIsFoundByItsOffset) {
  Send("hello");
  const auto messages = broker_.Messages("T", 0);
  remoting::Command command = remoting::Command::Request(remoting::kViewMessageById);
  command.ext.Add("offset", std::to_string(messages.at(0).physical_offset.value()));
  const auto response = broker_.Call(command);
  ASSERT_EQ(response.code, remoting::kSuccess) << response.remark;
  EXPECT_EQ(response.body, messages.at(0).record);
}

TEST_F(QueryTest, WhereNoMessageBeginsNoneIsFound) {
  Send("hello");
  const auto messages = broker_.Messages("T", 0);
  remoting::Command command = remoting::Command::Request(remoting::kViewMessageById);
  command.ext.Add("offset", std::to_string(messages.at(0).physical_offset.value() + 1));
  EXPECT_EQ(broker_.Call(command).code, remoting::kSystemError);
}

TEST_F(QueryTest, AMissingFieldIsNamed) {
  remoting::Command command = remoting::Command::Request(remoting::kSearchOffsetByTimestamp);
  command.ext.Add("topic", "T");
  command.ext.Add("queueId", "0");
  const auto response = broker_.Call(command);
  EXPECT_EQ(response.code, remoting::kSystemError);
  EXPECT_EQ(response.remark, "missing required field timestamp");
}

}  // namespace
}  // namespace triad::broker
