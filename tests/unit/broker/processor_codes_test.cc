// Every request code that a broker serves, and some that it does not: a request that cannot be read
// gets the original's code and a remark that names the field or what is wrong with the body; the
// connection stays (issue 5; wire.md §2, admin.md §1.4).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "remoting/codes.h"
#include "tests/unit/broker/one_broker.h"
#include "tests/unit/required_fields.h"

namespace triad::broker {
namespace {

using remoting::Command;
using test::RequiredFields;
using testing::HasSubstr;

RequiredFields SendFields() {
  return {{"producerGroup", "p"},         {"topic", "T"},   {"defaultTopic", "TBW102"},
          {"defaultTopicQueueNums", "4"}, {"queueId", "0"}, {"sysFlag", "0"},
          {"bornTimestamp", "1"},         {"flag", "0"}};
}
RequiredFields ShortSendFields() {
  return {{"a", "p"}, {"b", "T"}, {"c", "TBW102"}, {"d", "4"},
          {"e", "0"}, {"f", "0"}, {"g", "1"},      {"h", "0"}};
}

// What a code's smallest good request lacks when it comes empty.
struct Need {
  RequiredFields fields = {};
  const char* body = "";    // how the remark names a body that must be there; "" = none
  std::int32_t answer = 1;  // the code of the refusal
};

const std::map<std::int32_t, Need>& Needs() {
  static const std::map<std::int32_t, Need> needs = {
      {remoting::kQueryConsumerOffset,
       {.fields = {{"consumerGroup", "g"}, {"topic", "T"}, {"queueId", "0"}}}},
      {remoting::kUpdateConsumerOffset,
       {.fields = {{"consumerGroup", "g"}, {"topic", "T"}, {"queueId", "0"}, {"commitOffset", "0"}},
        .answer = 29}},
      {remoting::kUpdateAndCreateTopic,
       {.fields =
            {{"topic", "T"}, {"readQueueNums", "1"}, {"writeQueueNums", "1"}, {"perm", "6"}}}},
      {remoting::kUpdateAndCreateTopicList, {.body = "CreateTopicListRequestBody"}},
      {remoting::kGetAllTopicConfig, {}},
      {remoting::kUpdateBrokerConfig, {}},
      {remoting::kGetBrokerConfig, {}},
      {remoting::kGetBrokerRuntimeInfo, {}},
      {remoting::kHeartBeat, {.body = "HeartbeatData"}},
      {remoting::kUnregisterClient, {.fields = {{"clientID", "c"}}}},
      {remoting::kGetConsumerListByGroup, {.fields = {{"consumerGroup", "g"}}}},
      {remoting::kLockBatchMq, {.body = "LockBatchRequest"}},
      {remoting::kUnlockBatchMq, {.body = "LockBatchRequest"}},
      {remoting::kGetAllConsumerOffset, {}},
      {remoting::kGetAllDelayOffset, {}},
      {remoting::kCheckClientConfig, {.body = "CheckClientConfig"}},
      {remoting::kUpdateAndCreateSubscriptionGroup, {.body = "SubscriptionGroupConfig"}},
      {remoting::kGetAllSubscriptionGroupConfig, {}},
      {remoting::kGetTopicStatsInfo, {.fields = {{"topic", "T"}}}},
      {remoting::kGetConsumerConnectionList, {.fields = {{"consumerGroup", "g"}}}},
      {remoting::kGetProducerConnectionList, {.fields = {{"producerGroup", "p"}}}},
      {remoting::kDeleteSubscriptionGroup, {.fields = {{"groupName", "g"}}}},
      {remoting::kGetConsumeStats, {.fields = {{"consumerGroup", "g"}}}},
      {remoting::kDeleteTopicInBroker, {.fields = {{"topic", "T"}}}},
      {remoting::kInvokeBrokerToResetOffset,
       {.fields = {{"topic", "T"}, {"group", "g"}, {"timestamp", "0"}, {"isForce", "true"}}}},
      {remoting::kInvokeBrokerToGetConsumerStatus, {.fields = {{"topic", "T"}, {"group", "g"}}}},
      {remoting::kUpdateAndCreateSubscriptionGroupList, {.body = "SubscriptionGroupList"}},
      {remoting::kQueryTopicConsumeByWho, {.fields = {{"topic", "T"}}}},
      {remoting::kQueryConsumeTimeSpan, {.fields = {{"topic", "T"}, {"group", "g"}}}},
      {remoting::kGetSystemTopicListFromBroker, {}},
      {remoting::kCleanExpiredConsumeQueue, {}},
      {remoting::kGetConsumerRunningInfo, {.fields = {{"consumerGroup", "g"}, {"clientId", "c"}}}},
      {remoting::kConsumeMessageDirectly, {.fields = {{"consumerGroup", "g"}, {"clientId", "c"}}}},
      {remoting::kViewBrokerStatsData, {.fields = {{"statsName", "S"}, {"statsKey", "K"}}}},
      {remoting::kCleanUnusedTopic, {}},
      {remoting::kDeleteExpiredCommitLog, {}},
      {remoting::kGetBrokerConsumeStats, {}},
      {remoting::kQueryConsumeQueue,
       {.fields = {{"topic", "T"}, {"queueId", "0"}, {"index", "0"}, {"count", "1"}}}},
      {remoting::kGetAllProducerInfo, {}},
      {remoting::kQueryTopicsByConsumer, {.fields = {{"group", "g"}}}},
      {remoting::kQuerySubscriptionByConsumer, {.fields = {{"topic", "T"}, {"group", "g"}}}},
      {remoting::kGetTopicConfig, {.fields = {{"topic", "T"}}}},
      {remoting::kGetSubscriptionGroupConfig, {.fields = {{"group", "g"}}}},
      {remoting::kGetBrokerHaStatus, {}},
      {remoting::kGetTimerMetrics, {}},
      {remoting::kQueryCorrectionOffset, {.fields = {{"topic", "T"}, {"compareGroup", "g"}}}},
      {remoting::kCloneGroupOffset, {.fields = {{"srcGroup", "g"}, {"destGroup", "h"}}}},
      {remoting::kSendReplyMessage, {.fields = SendFields()}},
      {remoting::kSendReplyMessageV2, {.fields = ShortSendFields()}},
      {remoting::kUpdateAndGetGroupForbidden, {.fields = {{"group", "g"}, {"topic", "T"}}}},
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

TEST(Codes, ARequestIsRefusedByEachFieldOrTheBodyItLacks) {
  OneBroker broker;
  const auto connection = broker.Connect();
  for (const auto& [code, need] : Needs()) {
    SCOPED_TRACE(std::string(remoting::RequestCodeName(code)));
    const std::int32_t asked = code;
    test::ExpectEachFieldIsRequired(need.fields, need.answer, [&](const RequiredFields& fields) {
      return broker.AskOn(connection, asked, fields);
    });
    if (!need.fields.empty()) continue;
    const Command answer = broker.AskOn(connection, code, {});
    EXPECT_EQ(answer.code, *need.body == '\0' ? 0 : need.answer) << answer.remark;
    EXPECT_THAT(answer.remark, HasSubstr(need.body));
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

// A member that is not what it must be was written by somebody who meant something: it is named
// instead of being read as its default. (What the original 5.3.3 answers to them: 1.)
TEST(Codes, AMemberOfABodyThatIsNotWhatItShouldBeIsNamed) {
  OneBroker broker;
  const auto connection = broker.Connect();
  struct Case {
    std::int32_t code;
    const char* body;
    const char* member;
  };
  for (const Case& c : std::vector<Case>{
           {remoting::kHeartBeat, R"({"clientID":"c","consumerDataSet":"no"})", "consumerDataSet"},
           {remoting::kHeartBeat, R"({"clientID":"c","producerDataSet":5})", "producerDataSet"},
           {remoting::kLockBatchMq, R"({"clientId":"c","consumerGroup":"g","mqSet":"q"})", "mqSet"},
           {remoting::kUpdateAndCreateSubscriptionGroup,
            R"({"groupName":"g","retryMaxTimes":"abc"})", "retryMaxTimes"},
           {remoting::kUpdateAndCreateSubscriptionGroup,
            R"({"groupName":"g","retryMaxTimes":3000000000})", "retryMaxTimes"},
           {remoting::kUpdateAndCreateSubscriptionGroup,
            R"({"groupName":"g","consumeEnable":"no"})", "consumeEnable"},
           {remoting::kUpdateAndCreateSubscriptionGroup, R"({"groupName":"g","brokerId":[]})",
            "brokerId"},
           {remoting::kUpdateAndCreateSubscriptionGroupList, "{}", "groupConfigList"},
           {remoting::kUpdateAndCreateSubscriptionGroupList,
            R"({"groupConfigList":[{"groupName":"g","retryQueueNums":{}}]})", "retryQueueNums"},
           {remoting::kUpdateAndCreateTopicList, "{}", "topicConfigList"},
           {remoting::kUpdateAndCreateTopicList, R"({"topicConfigList":[5]})", "topicConfigList"},
           {remoting::kUpdateAndCreateTopicList,
            R"({"topicConfigList":[{"topicName":"New","readQueueNums":"many"}]})",
            "readQueueNums"}}) {
    SCOPED_TRACE(c.body);
    const Command answer = broker.AskOn(connection, c.code, {}, c.body);
    EXPECT_EQ(answer.code, 1);
    EXPECT_THAT(answer.remark, HasSubstr(std::string(c.member) + " is not "));
  }
  EXPECT_FALSE(broker.state().FindGroup(GroupName("g")));
  EXPECT_FALSE(broker.state().FindTopic(Topic("New")));
  // A number may be a string, and null is nothing at all, as in the original's reader.
  EXPECT_EQ(broker
                .AskOn(connection, remoting::kUpdateAndCreateSubscriptionGroup, {},
                       R"({"groupName":"g","retryMaxTimes":"3","consumeEnable":null})")
                .code,
            0);
  EXPECT_EQ(broker.state().FindGroup(GroupName("g"))->retry_max_times, 3);
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
                                           {50, "access rules"},
                                           {54, "access rules"},
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

// Of every request that comes it notes whether it may be sent to another leader again.
class NotingGate final : public LeaderGate {
 public:
  bool leads() const override { return false; }
  void Route(RequestPtr request, Reply /*reply*/, Policy policy, Handler /*local*/) override {
    repeatable[request->command.code] = policy.repeatable;
  }
  std::map<std::int32_t, bool> repeatable;
};

// A request whose leader died before it answered may have been done. What others may have changed
// since then is not changed back by doing it again.
TEST(Repeats, OnlyWhatDoesNoHarmTheSecondTimeIsSentAgain) {
  OneBroker broker;
  NotingGate gate;
  Dispatcher dispatcher(SystemClock(), gate);
  OffsetProcessor offsets(broker.context(), 0);
  LockProcessor locks(broker.context());
  TopicProcessor topics(broker.context());
  GroupProcessor groups(broker.context());
  offsets.Register(&dispatcher);
  locks.Register(&dispatcher);
  topics.Register(&dispatcher);
  groups.Register(&dispatcher);
  const std::map<std::int32_t, bool> wanted = {
      {remoting::kQueryConsumerOffset, true},
      {remoting::kUpdateConsumerOffset, false},
      {remoting::kLockBatchMq, true},
      {remoting::kUnlockBatchMq, false},
      {remoting::kUpdateAndCreateTopic, false},
      {remoting::kUpdateAndCreateTopicList, false},
      {remoting::kDeleteTopicInBroker, false},
      {remoting::kUpdateAndCreateSubscriptionGroup, false},
      {remoting::kUpdateAndCreateSubscriptionGroupList, false},
      {remoting::kDeleteSubscriptionGroup, false},
  };
  const auto connection = std::make_shared<RecordingConnection>(1, "10.0.0.9:5000");
  for (const auto& [code, repeatable] : wanted) {
    dispatcher.OnRequest(connection, Command::Request(code));
    ASSERT_TRUE(gate.repeatable.contains(code)) << code;
    EXPECT_EQ(gate.repeatable[code], repeatable) << code;
  }
}

}  // namespace
}  // namespace triad::broker
