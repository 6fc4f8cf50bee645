// Every request code that a broker serves, and some that it does not: a request that cannot be read
// gets the original's code and a remark that names the field or what is wrong with the body; the
// connection stays (issue 5; wire.md §2, admin.md §1.4).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "remoting/codes.h"
#include "tests/unit/broker/one_broker.h"

namespace triad::broker {
namespace {

using remoting::Command;
using testing::HasSubstr;

// What a code's smallest good request lacks when it comes empty.
struct Need {
  const char* field = "";   // the first required header field; "" = none
  const char* body = "";    // how the remark names a body that must be there; "" = none
  std::int32_t answer = 1;  // the code of the refusal
};

const std::map<std::int32_t, Need>& Needs() {
  static const std::map<std::int32_t, Need> needs = {
      {remoting::kQueryConsumerOffset, {.field = "consumerGroup"}},
      {remoting::kUpdateConsumerOffset, {.field = "consumerGroup", .answer = 29}},
      {remoting::kUpdateAndCreateTopic, {.field = "topic"}},
      {remoting::kUpdateAndCreateTopicList, {.body = "CreateTopicListRequestBody"}},
      {remoting::kGetAllTopicConfig, {}},
      {remoting::kUpdateBrokerConfig, {}},
      {remoting::kGetBrokerConfig, {}},
      {remoting::kGetBrokerRuntimeInfo, {}},
      {remoting::kHeartBeat, {.body = "HeartbeatData"}},
      {remoting::kUnregisterClient, {.field = "clientID"}},
      {remoting::kGetConsumerListByGroup, {.field = "consumerGroup"}},
      {remoting::kLockBatchMq, {.body = "LockBatchRequest"}},
      {remoting::kUnlockBatchMq, {.body = "LockBatchRequest"}},
      {remoting::kGetAllConsumerOffset, {}},
      {remoting::kGetAllDelayOffset, {}},
      {remoting::kCheckClientConfig, {.body = "CheckClientConfig"}},
      {remoting::kUpdateAndCreateSubscriptionGroup, {.body = "SubscriptionGroupConfig"}},
      {remoting::kGetAllSubscriptionGroupConfig, {}},
      {remoting::kGetTopicStatsInfo, {.field = "topic"}},
      {remoting::kGetConsumerConnectionList, {.field = "consumerGroup"}},
      {remoting::kGetProducerConnectionList, {.field = "producerGroup"}},
      {remoting::kDeleteSubscriptionGroup, {.field = "groupName"}},
      {remoting::kGetConsumeStats, {.field = "consumerGroup"}},
      {remoting::kDeleteTopicInBroker, {.field = "topic"}},
      {remoting::kInvokeBrokerToResetOffset, {.field = "topic"}},
      {remoting::kInvokeBrokerToGetConsumerStatus, {.field = "topic"}},
      {remoting::kUpdateAndCreateSubscriptionGroupList, {.body = "SubscriptionGroupList"}},
      {remoting::kQueryTopicConsumeByWho, {.field = "topic"}},
      {remoting::kQueryConsumeTimeSpan, {.field = "topic"}},
      {remoting::kGetSystemTopicListFromBroker, {}},
      {remoting::kCleanExpiredConsumeQueue, {}},
      {remoting::kGetConsumerRunningInfo, {.field = "consumerGroup"}},
      {remoting::kConsumeMessageDirectly, {.field = "consumerGroup"}},
      {remoting::kViewBrokerStatsData, {.field = "statsName"}},
      {remoting::kCleanUnusedTopic, {}},
      {remoting::kDeleteExpiredCommitLog, {}},
      {remoting::kGetBrokerConsumeStats, {}},
      {remoting::kQueryConsumeQueue, {.field = "topic"}},
      {remoting::kGetAllProducerInfo, {}},
      {remoting::kQueryTopicsByConsumer, {.field = "group"}},
      {remoting::kQuerySubscriptionByConsumer, {.field = "topic"}},
      {remoting::kGetTopicConfig, {.field = "topic"}},
      {remoting::kGetSubscriptionGroupConfig, {.field = "group"}},
      {remoting::kGetBrokerHaStatus, {}},
      {remoting::kGetTimerMetrics, {}},
      {remoting::kQueryCorrectionOffset, {.field = "topic"}},
      {remoting::kCloneGroupOffset, {.field = "srcGroup"}},
      {remoting::kSendReplyMessage, {.field = "producerGroup"}},
      {remoting::kSendReplyMessageV2, {.field = "a"}},
      {remoting::kUpdateAndGetGroupForbidden, {.field = "group"}},
      {remoting::kSetMessageRequestMode, {.body = "SetMessageRequestModeRequestBody"}},
  };
  return needs;
}

// Codes that peers use among themselves, and that one_broker.h leaves to message_harness.h.
bool IsPrivate(std::int32_t code) {
  return code >= 60000 && code < 70000;
}

TEST(Codes, EveryRegisteredCodeHasALineInTheTable) {
  OneBroker broker;
  for (const std::int32_t code : broker.dispatcher().codes()) {
    if (IsPrivate(code)) continue;
    EXPECT_TRUE(Needs().contains(code)) << code << " " << remoting::RequestCodeName(code);
  }
  for (const auto& [code, need] : Needs()) {
    EXPECT_THAT(broker.dispatcher().codes(), testing::Contains(code))
        << remoting::RequestCodeName(code);
  }
}

TEST(Codes, AnEmptyRequestIsRefusedByTheFieldOrBodyItLacks) {
  OneBroker broker;
  const auto connection = broker.Connect();
  for (const auto& [code, need] : Needs()) {
    SCOPED_TRACE(std::string(remoting::RequestCodeName(code)));
    const Command answer = broker.AskOn(connection, code, {});
    const std::string wanted = *need.field != '\0' ? need.field : need.body;
    if (wanted.empty()) {
      EXPECT_EQ(answer.code, 0) << answer.remark;
      continue;
    }
    EXPECT_EQ(answer.code, need.answer) << answer.remark;
    EXPECT_THAT(answer.remark, HasSubstr(wanted));
  }
  EXPECT_FALSE(connection->closed());
}

TEST(Codes, ABodyThatIsNotWhatItShouldBeIsRefusedAndNamed) {
  OneBroker broker;
  const auto connection = broker.Connect();
  for (const auto& [code, need] : Needs()) {
    if (*need.body == '\0') continue;
    SCOPED_TRACE(std::string(remoting::RequestCodeName(code)));
    for (const char* body : {"[1,2]", "{\"a\":", "\x01\x02", "12"}) {
      const Command answer = broker.AskOn(connection, code, {}, body);
      EXPECT_EQ(answer.code, 1) << body;
      EXPECT_THAT(answer.remark, HasSubstr(need.body)) << body;
    }
  }
  EXPECT_FALSE(connection->closed());
}

TEST(Codes, AFieldThatIsNoNumberIsNamed) {
  OneBroker broker;
  const Command answer =
      broker.Ask(remoting::kQueryConsumeQueue,
                 {{"topic", "T"}, {"queueId", "one"}, {"index", "0"}, {"count", "1"}});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.remark, HasSubstr("queueId"));
}

// Unused, of other servers, of later issues, or never heard of: 3, in the original's words.
TEST(Codes, WhatIsNotServedIsNotSupported) {
  OneBroker broker;
  const auto connection = broker.Connect();
  for (const std::int32_t code :
       {remoting::kQueryBrokerOffset, remoting::kGetTopicConfigList, remoting::kTriggerDeleteFiles,
        remoting::kGetClientConfig, remoting::kRegisterBroker, 3000, 3011, 99999, -1}) {
    SCOPED_TRACE(code);
    const Command answer = broker.AskOn(connection, code, {});
    EXPECT_EQ(answer.code, remoting::kRequestCodeNotSupported);
    EXPECT_EQ(answer.remark, " request type " + std::to_string(code) + " not supported");
  }
  // What the original has and this broker has not yet is said.
  for (const auto& [code, why] :
       std::map<std::int32_t, const char*>{{remoting::kEndTransaction, "transactions"},
                                           {remoting::kResumeCheckHalfMessage, "transactions"},
                                           {remoting::kRecallMessage, "timer"},
                                           {remoting::kQueryAssignment, "POP"},
                                           {remoting::kPopMessage, "POP"},
                                           {remoting::kAckMessage, "POP"},
                                           {remoting::kBatchAckMessage, "POP"},
                                           {remoting::kChangeMessageInvisibleTime, "POP"},
                                           {3001, "access rules"},
                                           {3010, "access rules"}}) {
    SCOPED_TRACE(code);
    const Command answer = broker.AskOn(connection, code, {});
    EXPECT_EQ(answer.code, remoting::kRequestCodeNotSupported);
    EXPECT_THAT(answer.remark,
                HasSubstr(" request type " + std::to_string(code) + " not supported: "));
    EXPECT_THAT(answer.remark, HasSubstr(why));
  }
  EXPECT_FALSE(connection->closed());
  EXPECT_EQ(broker.AskOn(connection, remoting::kGetBrokerRuntimeInfo, {}).code, 0);
}

}  // namespace
}  // namespace triad::broker
