// What the processors of messages refuse, and how: a request that lacks a field, what
// brokerPermission, topics and groups forbid, names that are too long (issue 5; admin.md §11.2).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "remoting/codes.h"
#include "tests/unit/broker/message_harness.h"
#include "tests/unit/required_fields.h"

namespace triad::broker {
namespace {

using remoting::Command;
using test::RequiredFields;
using testing::HasSubstr;

RequiredFields WithQueue(RequiredFields more = {}) {
  RequiredFields fields = {{"topic", "T"}, {"queueId", "0"}};
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}

const std::map<std::int32_t, RequiredFields>& Needs() {
  static const RequiredFields short_send = {{"a", "p"}, {"b", "T"}, {"c", "TBW102"}, {"d", "4"},
                                            {"e", "0"}, {"f", "0"}, {"g", "1"},      {"h", "0"}};
  static const RequiredFields pull = {{"consumerGroup", "g"}, {"topic", "T"},
                                      {"queueId", "0"},       {"queueOffset", "0"},
                                      {"maxMsgNums", "1"},    {"sysFlag", "4"},
                                      {"commitOffset", "0"},  {"suspendTimeoutMillis", "0"},
                                      {"subVersion", "0"}};
  static const std::map<std::int32_t, RequiredFields> needs = {
      {remoting::kSendMessage,
       {{"producerGroup", "p"},
        {"topic", "T"},
        {"defaultTopic", "TBW102"},
        {"defaultTopicQueueNums", "4"},
        {"queueId", "0"},
        {"sysFlag", "0"},
        {"bornTimestamp", "1"},
        {"flag", "0"}}},
      {remoting::kSendMessageV2, short_send},
      {remoting::kSendBatchMessage, short_send},
      {remoting::kPullMessage, pull},
      {remoting::kLitePullMessage, pull},
      {remoting::kQueryMessage,
       {{"topic", "T"},
        {"key", "k"},
        {"maxNum", "1"},
        {"beginTimestamp", "0"},
        {"endTimestamp", "1"}}},
      {remoting::kSearchOffsetByTimestamp, WithQueue({{"timestamp", "0"}})},
      {remoting::kGetMaxOffset, WithQueue()},
      {remoting::kGetMinOffset, WithQueue()},
      {remoting::kGetEarliestMsgStoreTime, WithQueue()},
      {remoting::kViewMessageById, {{"offset", "0"}}},
      {remoting::kConsumerSendMsgBack, {{"offset", "0"}, {"group", "g"}, {"delayLevel", "0"}}},
  };
  return needs;
}

// Codes of our own, of peers and of our tools.
bool IsPrivate(std::int32_t code) {
  return code >= 60000 && code < 70000;
}

TEST(Messages, EveryRegisteredCodeHasALineInTheTable) {
  MessageHarness broker;
  for (const std::int32_t code : broker.dispatcher().codes()) {
    if (IsPrivate(code)) continue;
    EXPECT_TRUE(Needs().contains(code)) << code << " " << remoting::RequestCodeName(code);
  }
  for (const auto& [code, fields] : Needs()) {
    EXPECT_THAT(broker.dispatcher().codes(), testing::Contains(code));
  }
}

TEST(Messages, WIRE_3_ARequestIsRefusedByEachFieldItLacks) {
  MessageHarness broker;
  broker.CreateTopic("T", 1);
  for (const auto& [code, fields] : Needs()) {
    SCOPED_TRACE(std::string(remoting::RequestCodeName(code)));
    const std::int32_t asked = code;
    test::ExpectEachFieldIsRequired(fields, remoting::kSystemError,
                                    [&](const RequiredFields& given) {
                                      Command request = Command::Request(asked);
                                      for (const auto& [key, value] : given) {
                                        request.ext.Set(key, value);
                                      }
                                      return broker.Call(std::move(request));
                                    });
  }
}

// Version 0, another language, nothing but the required fields, in the oldest and the usual code.
TEST(Messages, UPG_2_OldAndForeignClientsAreServedWithTheDefaults) {
  MessageHarness broker;
  broker.CreateTopic("T", 1);
  const auto ask = [&](std::int32_t code, std::string body) {
    Command request = Command::Request(code);
    request.version = 0;
    request.language = "OTHER";
    for (const auto& [key, value] : Needs().at(code)) request.ext.Set(key, value);
    request.body = std::move(body);
    const Command answer = broker.Call(std::move(request));
    EXPECT_EQ(answer.code, remoting::kSuccess) << answer.remark;
    EXPECT_GE(answer.version, 401) << "clients look at it";
    return answer;
  };
  ask(remoting::kSendMessage, "first");
  ask(remoting::kSendMessageV2, "second");
  const auto stored = broker.Messages("T", 0);
  ASSERT_EQ(stored.size(), 2u);
  EXPECT_EQ(stored[0].body, "first");
  EXPECT_EQ(stored[1].body, "second");
  EXPECT_FALSE(ask(remoting::kPullMessage, "").body.empty());
}

// ---- permissions --------------------------------------------------------------------------------

void ExpectForbidden(const Command& answer, const std::string& remark, const char* type) {
  EXPECT_EQ(answer.code, remoting::kNoPermission);
  EXPECT_THAT(answer.remark, HasSubstr(remark));
  EXPECT_EQ(answer.ext.Find("forbiddenType").value_or(""), type);
}

TEST(Permissions, ABrokerThatIsNotWritableRefusesOrderedTopicsAndSendBacks) {
  MessageHarness broker([](BrokerConfig* config) { config->broker_permission = kPermRead; });
  broker.CreateTopic("Plain", 1);
  TopicConfig ordered;
  ordered.name = Topic("Ordered");
  ordered.order = true;
  StateCommand command;
  command.put_topics.push_back(ordered);
  broker.Propose(std::move(command));
  for (const std::int32_t code : {remoting::kSendMessageV2, remoting::kSendBatchMessage}) {
    Command send = broker.SendCommand(MessageHarness::SendHeader("Ordered"), "x");
    send.code = code;
    ExpectForbidden(broker.Call(std::move(send)), "sending message is forbidden", "");
  }
  // Only the route takes ordinary topics away, as in the original.
  EXPECT_EQ(broker.Send(MessageHarness::SendHeader("Plain"), "x").code, remoting::kSuccess);
  Command back = Command::Request(remoting::kConsumerSendMsgBack);
  for (const auto& [key, value] :
       RequiredFields{{"offset", "0"}, {"group", "g"}, {"delayLevel", "0"}}) {
    back.ext.Set(key, value);
  }
  ExpectForbidden(broker.Call(std::move(back)), "sending message is forbidden", "");
}

TEST(Permissions, AForbiddenPullSaysWhatForbidsIt) {
  MessageHarness broker;
  broker.CreateTopic("T", 1);
  broker.CreateTopic("WriteOnly", 1, kPermWrite);
  GroupConfig closed;
  closed.name = GroupName("closed");
  closed.consume_enable = false;
  broker.CreateGroup(closed);
  for (const std::int32_t code : {remoting::kPullMessage, remoting::kLitePullMessage}) {
    const auto pull = [&](auto change) {
      auto header = MessageHarness::PullHeader("T", 0, 0);
      change(&header);
      Command request = MessageHarness::PullCommand(header);
      request.code = code;
      return broker.Call(std::move(request));
    };
    using Header = remoting::PullMessageRequest;
    ExpectForbidden(pull([](Header* h) { h->consumer_group = "closed"; }),
                    "subscription group no permission, closed", "2");
    ExpectForbidden(pull([](Header* h) { h->topic = "WriteOnly"; }),
                    "the topic[WriteOnly] pulling message is forbidden", "3");
    EXPECT_EQ(pull([](Header*) {}).code, remoting::kPullNotFound);
  }
}

TEST(Permissions, ABrokerThatIsNotReadableRefusesEveryPull) {
  MessageHarness broker([](BrokerConfig* config) { config->broker_permission = kPermWrite; });
  broker.CreateTopic("T", 1);
  EXPECT_EQ(broker.Send(MessageHarness::SendHeader("T"), "x").code, remoting::kSuccess);
  for (const std::int32_t code : {remoting::kPullMessage, remoting::kLitePullMessage}) {
    Command pull = MessageHarness::PullCommand(MessageHarness::PullHeader("T", 0, 0));
    pull.code = code;
    ExpectForbidden(broker.Call(std::move(pull)), "] pulling message is forbidden", "1");
  }
}

TEST(Permissions, AGroupThatMayNotBroadcastIsRefused) {
  MessageHarness broker;
  broker.CreateTopic("T", 1);
  GroupConfig group;
  group.name = GroupName("g");
  group.consume_broadcast_enable = false;
  broker.CreateGroup(group);
  remoting::ConsumerData consumer;
  consumer.group_name = "g";
  consumer.message_model = remoting::MessageModel::kBroadcasting;
  consumer.subscriptions.emplace_back();
  consumer.subscriptions[0].topic = "T";
  consumer.subscriptions[0].sub_string = "*";
  ASSERT_TRUE(broker.context()
                  .consumers
                  .Heartbeat(broker.connection(), ClientInfo{ClientId("c"), "JAVA", 479}, consumer,
                             false, SystemClock().MonoNow())
                  .ok());
  auto header = MessageHarness::PullHeader("T", 0, 0);
  header.consumer_group = "g";
  header.sys_flag = 0;  // the subscription is the heartbeat's
  ExpectForbidden(broker.Call(MessageHarness::PullCommand(header)),
                  "the consumer group[g] can not consume by broadcast way", "4");
  group.consume_broadcast_enable = true;
  broker.CreateGroup(group);
  EXPECT_EQ(broker.Call(MessageHarness::PullCommand(header)).code, remoting::kPullNotFound);
}

// ---- limits -------------------------------------------------------------------------------------

TEST(Messages, ATopicNameAboveMaxTopicLengthIsRefused) {
  MessageHarness broker([](BrokerConfig* config) { config->max_topic_bytes = 4; });
  EXPECT_EQ(broker.Send(MessageHarness::SendHeader("Four"), "x").code, remoting::kSuccess);
  const Command answer = broker.Send(MessageHarness::SendHeader("Fives"), "x");
  EXPECT_EQ(answer.code, remoting::kInvalidParameter);
  EXPECT_THAT(answer.remark, HasSubstr("topic max length 4"));
  // Names that the broker makes itself are not meant.
  EXPECT_EQ(broker.Send(MessageHarness::SendHeader("%RETRY%group"), "x").code, remoting::kSuccess);
}

// Behind accessMessageInMemoryMaxRatio of the memory an answer holds less.
TEST(Messages, WhatLiesFarBackComesInSmallerAnswers) {
  MessageHarness broker([](BrokerConfig* config) {
    config->max_transfer_count_on_disk = 3;
    config->max_transfer_bytes_on_disk = 5000;
  });
  broker.CreateTopic("Small", 1);
  broker.CreateTopic("Large", 1);
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(broker.Send(MessageHarness::SendHeader("Small"), "x").code, remoting::kSuccess);
    ASSERT_EQ(broker.Send(MessageHarness::SendHeader("Large"), std::string(2000, 'x')).code,
              remoting::kSuccess);
  }
  const auto next = [&](const char* topic) {
    const Command answer =
        broker.Call(MessageHarness::PullCommand(MessageHarness::PullHeader(topic, 0, 0)));
    EXPECT_EQ(answer.code, remoting::kSuccess);
    return remoting::PullMessageResponse::Decode(answer.ext)->next_begin_offset;
  };
  broker.context().memory_bytes = std::int64_t{1} << 34;
  EXPECT_EQ(next("Small"), 8);
  EXPECT_EQ(next("Large"), 8);
  broker.context().memory_bytes = 200;
  EXPECT_EQ(next("Small"), 3);
  EXPECT_EQ(next("Large"), 2) << "a third one would be more than 5000 bytes";
}

}  // namespace
}  // namespace triad::broker
