// Request-reply (324, 325), old segments (329), offsets of one group for another (308, 314), how a
// group consumes (353, 401), timers (61): admin.md §2.5 to §2.7, §6.8.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "remoting/send_header.h"
#include "tests/unit/broker/relay_fixture.h"

namespace triad::broker {
namespace {

using testing::HasSubstr;

// ---- request-reply (324, 325) -------------------------------------------------------------------

class ReplyTest : public RelayTest {
 protected:
  std::shared_ptr<RecordingConnection> Requester(const std::string& id) {
    const auto connection = broker_.Connect();
    EXPECT_TRUE(broker_.producers()
                    .Heartbeat(connection, {ClientId(id), "JAVA", kVersion}, "pg", TimePoint{})
                    .ok());
    return connection;
  }
  Command SendReply(std::int32_t code, const std::string& properties) {
    remoting::SendMessageRequest header;
    header.producer_group = "repliers";
    header.topic = "DefaultCluster_REPLY_TOPIC";
    header.default_topic = "TBW102";
    header.queue_id = 3;
    header.properties = properties;
    Command request = Command::Request(code);
    code == remoting::kSendReplyMessage ? header.EncodeV1(&request.ext)
                                        : header.EncodeV2(&request.ext);
    request.body = "the answer";
    const auto connection = broker_.Connect();
    broker_.dispatcher().OnRequest(connection, std::move(request));
    return connection->Next();
  }
  static std::string To(const std::string& client) {
    return "CORRELATION_ID\x01" + std::string("7\x02REPLY_TO_CLIENT\x01") + client;
  }
};

TEST_F(ReplyTest, AReplyGoesToTheClientThatAsked) {
  Command seen;
  const auto requester = Requester("c1");
  requester->answer_call = [&](const Command& request, std::chrono::milliseconds) {
    seen = request;
    return Command::ResponseTo(request, 0);
  };
  Requester("c2");  // would refuse calls
  for (const std::int32_t code : {remoting::kSendReplyMessage, remoting::kSendReplyMessageV2}) {
    SCOPED_TRACE(code);
    const Command answer = SendReply(code, To("c1"));
    EXPECT_EQ(answer.code, 0) << answer.remark;
    EXPECT_EQ(answer.ext.StringOr("msgId", ""), "0");
    EXPECT_EQ(answer.ext.StringOr("queueId", ""), "3");
    EXPECT_EQ(answer.ext.StringOr("queueOffset", ""), "0");
    EXPECT_EQ(seen.code, remoting::kPushReplyMessageToClient);
    EXPECT_EQ(seen.body, "the answer");
    EXPECT_EQ(seen.ext.StringOr("topic", ""), "DefaultCluster_REPLY_TOPIC");
    EXPECT_THAT(seen.ext.StringOr("properties", ""), HasSubstr("CORRELATION_ID\x01"
                                                               "7\x02"));
    EXPECT_THAT(seen.ext.StringOr("properties", ""), HasSubstr("PUSH_REPLY_TIME\x01"));
    EXPECT_THAT(seen.ext.StringOr("bornHost", ""), HasSubstr("10.0.0.9:"));
    seen = {};
  }
}

TEST_F(ReplyTest, AReplyThatReachesNobodyIsAnErrorInTheOriginalsWords) {
  Requester("broken");  // takes no calls
  struct Case {
    std::string properties;
    const char* remark;
  };
  for (const Case& c : {Case{"CORRELATION_ID\x01"
                             "7\x02",
                             "reply message properties[REPLY_TO_CLIENT] is null"},
                        Case{To("gone"), "push reply message fail, channel of <gone> not found."},
                        Case{To("broken"), "push reply message to <broken>fail."}}) {
    SCOPED_TRACE(c.remark);
    const Command answer = SendReply(remoting::kSendReplyMessageV2, c.properties);
    EXPECT_EQ(answer.code, 1);
    EXPECT_THAT(answer.remark, HasSubstr(c.remark));
  }
}

// ---- what is past its time (329) ----------------------------------------------------------------

// Retention has no hour of its own here.
TEST_F(RelayTest, OldSegmentsAreDeletedAtAnyHourWhenAsked) {
  dledger::Node& node = broker_.peer().store().node();
  dledger::RetentionOptions rules;
  rules.age = std::chrono::milliseconds(1);
  rules.expired_percent = 101;
  node.SetRetention(rules);
  for (int i = 0; i < 6; ++i) {  // more than a segment
    broker_.peer().Send({Draft("T", 0, std::string(1u << 20, 'm'))});
  }
  EXPECT_EQ(node.begin_position(), PhysicalOffset(0));
  const TimePoint deadline = SystemClock().MonoNow() + 3 * kPatience;
  while (node.begin_position() == PhysicalOffset(0)) {  // until queues and state are durable
    ASSERT_LT(SystemClock().MonoNow(), deadline);
    ASSERT_EQ(broker_.Ask(remoting::kDeleteExpiredCommitLog, {}).code, 0);
  }
}

// ---- offsets of one group for another (308, 314), and small ones --------------------------------

class OffsetCopyTest : public RelayTest {
 protected:
  OffsetCopyTest() {
    Send(5);
    StateCommand command;
    for (const char* name : {"g", "h"}) {
      command.put_groups.emplace_back().name = GroupName(name);
    }
    broker_.peer().Apply(command);
    EXPECT_EQ(UpdateOffset(3).code, 0);
    EXPECT_EQ(QueryOffset(), "3");  // committed and applied
  }
};

TEST_F(OffsetCopyTest, AGroupGetsTheOffsetsOfAnother) {
  const auto clone = [&](const char* from, const char* to, const char* topic) {
    return broker_.Ask(
        remoting::kCloneGroupOffset,
        {{"srcGroup", from}, {"destGroup", to}, {"topic", topic}, {"offline", "true"}});
  };
  EXPECT_EQ(clone("g", "h", "Other").code, 0);
  EXPECT_EQ(broker_.state().FindOffset({GroupName("h"), Queue("T", 0)}), std::nullopt);
  for (const char* topic : {"T", ""}) {
    SCOPED_TRACE(topic);
    const Command answer = clone("g", "h", topic);
    EXPECT_EQ(answer.code, 0) << answer.remark;
    EXPECT_EQ(broker_.state().FindOffset({GroupName("h"), Queue("T", 0)}), QueueOffset{3});
  }
  EXPECT_EQ(clone("nobody", "h", "T").code, remoting::kSubscriptionGroupNotExist);
  EXPECT_THAT(clone("g", "nobody", "T").remark, HasSubstr("nobody"));
}

TEST_F(OffsetCopyTest, CorrectionsAreTheSmallestOffsetsOfTheOtherGroups) {
  const auto correct = [&](const char* group, const char* left_out) {
    const Command answer =
        broker_.Ask(remoting::kQueryCorrectionOffset,
                    {{"topic", "T"}, {"compareGroup", group}, {"filterGroups", left_out}});
    EXPECT_EQ(answer.code, 0) << answer.remark;
    return answer.body;
  };
  EXPECT_EQ(correct("h", ""), R"({"correctionOffsets":{"0":3}})");
  EXPECT_EQ(correct("h", "g"), R"({"correctionOffsets":{}})");
  StateCommand command;
  command.offsets.push_back({{GroupName("h"), Queue("T", 0)}, QueueOffset{1}, 0});
  broker_.peer().Apply(command);
  EXPECT_EQ(correct("g", ""), R"({"correctionOffsets":{"0":1}})");
  EXPECT_EQ(correct("h", "h"), R"({"correctionOffsets":{"0":9223372036854775807}})");
}

TEST_F(OffsetCopyTest, EveryGroupPullsAndMayReadEveryTopic) {
  const auto mode = [&](const char* topic, const char* group, const char* wanted) {
    return broker_
        .Ask(remoting::kSetMessageRequestMode, {},
             std::string(R"({"consumerGroup":")") + group + R"(","mode":")" + wanted +
                 R"(","popShareQueueNum":0,"topic":")" + topic + "\"}")
        .code;
  };
  EXPECT_EQ(mode("T", "g", "PULL"), 0);
  EXPECT_EQ(mode("T", "g", "POP"), remoting::kRequestCodeNotSupported);
  EXPECT_EQ(mode("%RETRY%g", "g", "PULL"), remoting::kNoPermission);
  EXPECT_EQ(mode("Nowhere", "g", "PULL"), remoting::kTopicNotExist);
  EXPECT_EQ(mode("T", "nobody", "PULL"), remoting::kSubscriptionGroupNotExist);
  const auto forbidden = [&](const char* readable) {
    return broker_.Ask(remoting::kUpdateAndGetGroupForbidden,
                       {{"group", "g"}, {"topic", "T"}, {"readable", readable}});
  };
  EXPECT_EQ(forbidden("").body, R"({"group":"g","readable":true,"topic":"T"})");
  EXPECT_EQ(forbidden("false").code, remoting::kRequestCodeNotSupported);
  EXPECT_THAT(broker_.Ask(remoting::kGetTimerMetrics, {}).body, HasSubstr(R"("timingCount":{})"));
}

}  // namespace
}  // namespace triad::broker
