#include <gtest/gtest.h>

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
  EXPECT_EQ(broker_.Call(command).code, remoting::kRequestCodeNotSupported);
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
