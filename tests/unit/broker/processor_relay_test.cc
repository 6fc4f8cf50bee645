// What only a client can answer (307, 309, 223), figures (303, 315, 317, 321, 907) and pending
// resets, as tools see them (admin.md §2.6, §2.7, §2.10, §6).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "remoting/bodies.h"
#include "remoting/codes.h"
#include "tests/unit/broker/relay_fixture.h"

namespace triad::broker {
namespace {

using testing::HasSubstr;

TEST_F(RelayTest, RunningInfoIsTheClientsOwnAnswer) {
  Command seen;
  const auto client = Consumer("c1");
  client->answer_call = [&](const Command& request, std::chrono::milliseconds timeout) {
    EXPECT_EQ(timeout, kRelayTimeout);
    seen = request;
    Command answer = Command::ResponseTo(request, 0, "fine");
    answer.body = "{any: 'bytes'}";
    return answer;
  };
  const Command answer = RunningInfo("c1");
  EXPECT_EQ(answer.code, 0);
  EXPECT_EQ(answer.remark, "fine");
  EXPECT_EQ(answer.body, "{any: 'bytes'}");
  EXPECT_EQ(seen.code, remoting::kGetConsumerRunningInfo);
  EXPECT_EQ(*seen.ext.Find("jstackEnable"), "true");
}

TEST_F(RelayTest, AClientThatCannotAnswerIsNamed) {
  const auto late = Consumer("late");
  late->answer_call = [](const Command&, std::chrono::milliseconds) {
    return Status::TimedOut("no answer in 10000 ms");
  };
  Consumer("broken");  // its connection takes no calls
  Consumer("old", 61);
  struct Case {
    const char* client;
    std::int32_t code;
    const char* remark;
  };
  for (const Case& c : {Case{"nobody", 1, "The Consumer <g> <nobody> not online"},
                        Case{"late", 207, "consumer <g> <late> Timeout: no answer in 10000 ms"},
                        Case{"broken", 1, "consumer <g> <broken> cannot be asked"},
                        Case{"old", 1,
                             "The Consumer <old> Version <61> too low to finish, please upgrade "
                             "it to V3_1_8_SNAPSHOT"}}) {
    SCOPED_TRACE(c.client);
    const Command answer = RunningInfo(c.client);
    EXPECT_EQ(answer.code, c.code);
    EXPECT_THAT(answer.remark, HasSubstr(c.remark));
  }
}

TEST_F(RelayTest, AMessageIsConsumedDirectlyByTheNamedClient) {
  Send(1);
  const auto unit = broker_.peer().store().queues().ReadNow(Queue("T", 0), QueueOffset{0}, 1);
  const auto record = broker_.peer().store().ReadMessage(unit->at(0)).value();
  Command seen;
  const auto client = Consumer("c1");
  client->answer_call = [&](const Command& request, std::chrono::milliseconds) {
    seen = request;
    Command answer = Command::ResponseTo(request, 0);
    answer.body = R"({"consumeResult":"CR_SUCCESS"})";
    return answer;
  };
  const auto ask = [&](const std::string& id) {
    return broker_.Ask(remoting::kConsumeMessageDirectly,
                       {{"consumerGroup", "g"}, {"clientId", "c1"}, {"topic", "T"}, {"msgId", id}});
  };
  const std::string id = OffsetMessageId(Host("127.0.0.1:10911"), unit->at(0).position);
  const Command answer = ask(id);
  EXPECT_EQ(answer.body, R"({"consumeResult":"CR_SUCCESS"})") << answer.remark;
  EXPECT_EQ(seen.code, remoting::kConsumeMessageDirectly);
  EXPECT_EQ(seen.body, record.record);
  EXPECT_EQ(*seen.ext.Find("brokerName"), "b0");
  EXPECT_EQ(*seen.ext.Find("msgId"), id);
  EXPECT_EQ(QueryOffset(), "0") << "offsets do not move";

  EXPECT_EQ(ask("no id").code, remoting::kInvalidParameter);
  const Command absent = ask(OffsetMessageId(Host("127.0.0.1:10911"), unit->at(0).position + 1));
  EXPECT_EQ(absent.code, 1);
  EXPECT_THAT(absent.remark, HasSubstr("can not find message by the offset"));
}

TEST_F(RelayTest, TheStatusOfAGroupIsGatheredFromItsClients) {
  EXPECT_EQ(broker_
                .Ask(remoting::kInvokeBrokerToGetConsumerStatus,
                     {{"topic", "T"}, {"group", "g"}, {"clientAddr", ""}})
                .code,
            1);
  const char table[] = R"({{"brokerName":"b0","queueId":0,"topic":"T"}:7})";
  for (const char* id : {"c1", "c2"}) {
    Consumer(id)->answer_call = [&](const Command& request, std::chrono::milliseconds) {
      EXPECT_EQ(request.code, remoting::kGetConsumerStatusFromClient);
      Command answer = Command::ResponseTo(request, 0);
      answer.body = std::string(R"({"consumerTable":{},"messageQueueTable":)") + table + "}";
      return answer;
    };
  }
  Consumer("silent");
  const Command answer = broker_.Ask(remoting::kInvokeBrokerToGetConsumerStatus,
                                     {{"topic", "T"}, {"group", "g"}, {"clientAddr", ""}});
  EXPECT_EQ(answer.body, std::string(R"({"consumerTable":{"c1":)") + table + R"(,"c2":)" + table +
                             R"(},"messageQueueTable":{}})");
}

// ---- resets ------------------------------------------------------------------------------------

TEST_F(RelayTest, AfterAResetOldCommitsAreIgnoredUntilTheNextPull) {
  Consumer("c1");
  Send(9);
  ASSERT_EQ(UpdateOffset(7).code, 0);
  ASSERT_EQ(QueryOffset(), "7");
  const Command reset =
      broker_.Ask(remoting::kInvokeBrokerToResetOffset,
                  {{"topic", "T"}, {"group", "g"}, {"timestamp", "0"}, {"isForce", "true"}});
  ASSERT_EQ(reset.code, 0) << reset.remark;
  const Command late = UpdateOffset(8);
  EXPECT_EQ(late.code, 0);
  EXPECT_EQ(late.remark, "Offset has been previously reset");
  EXPECT_EQ(QueryOffset(), "0");
  EXPECT_EQ(broker_.context().resets->Take(GroupName("g"), Queue("T", 0), SystemClock().MonoNow()),
            QueueOffset{0});
  EXPECT_EQ(UpdateOffset(3).code, 0);
  EXPECT_EQ(QueryOffset(), "3");
}

class PendingResetsTest : public testing::Test {
 protected:
  static std::vector<OffsetCommit> Commits(std::size_t count, std::int64_t offset = 0) {
    std::vector<OffsetCommit> many(count);
    for (std::size_t i = 0; i < count; ++i) {
      many[i].key = {GroupName("g"), Queue("T", static_cast<std::int32_t>(i))};
      many[i].offset = QueueOffset{offset};
    }
    return many;
  }
  bool Pending(std::int32_t queue, const std::string& group = "g") {
    return resets_.Pending(GroupName(group), Queue("T", queue), clock_.MonoNow());
  }
  std::optional<QueueOffset> Take(std::int32_t queue) {
    return resets_.Take(GroupName("g"), Queue("T", queue), clock_.MonoNow());
  }

  ManualClock clock_;
  PendingResets resets_;
};

TEST_F(PendingResetsTest, AreBoundedAndWholeOrNotAtAll) {
  const auto too_many = resets_.Mark(Commits(PendingResets::kPendingMax + 1), clock_.MonoNow());
  EXPECT_EQ(too_many.status().code(), StatusCode::kBusy);
  EXPECT_FALSE(Pending(0));
  const auto id = resets_.Mark(Commits(2), clock_.MonoNow());
  ASSERT_TRUE(id.ok());
  EXPECT_TRUE(Pending(1));
  EXPECT_FALSE(Pending(1, "h"));
  resets_.Unmark(Commits(1), *id);
  EXPECT_FALSE(Pending(0));
  resets_.Clear();
  EXPECT_EQ(Take(1), std::nullopt);
}

TEST_F(PendingResetsTest, OnlyItsOwnMarksAreTakenBack) {
  const auto first = resets_.Mark(Commits(2, 1), clock_.MonoNow());
  const auto second = resets_.Mark(Commits(1, 2), clock_.MonoNow());
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(second.ok());
  resets_.Unmark(Commits(2), *first);
  EXPECT_TRUE(Pending(0)) << "it is the second one's";
  EXPECT_FALSE(Pending(1));
  EXPECT_EQ(Take(0), QueueOffset{2});
}

TEST_F(PendingResetsTest, AMarkEndsWhenNobodyPullsForTenMinutes) {
  ASSERT_TRUE(resets_.Mark(Commits(PendingResets::kPendingMax), clock_.MonoNow()).ok());
  clock_.Advance(std::chrono::minutes(10) - std::chrono::milliseconds(1));
  EXPECT_TRUE(Pending(0));
  EXPECT_FALSE(resets_.Mark(Commits(1), clock_.MonoNow()).ok());
  clock_.Advance(std::chrono::milliseconds(1));
  EXPECT_FALSE(Pending(0));
  EXPECT_EQ(Take(0), std::nullopt);
  EXPECT_TRUE(resets_.Mark(Commits(1), clock_.MonoNow()).ok()) << "old marks make room";
}

// ---- figures -----------------------------------------------------------------------------------

TEST_F(RelayTest, ADM_1_StatisticsOfAnIdleTopicAreZeroAndOfAnUnknownOneAnError) {
  const auto ask = [&](const char* name, const char* key) {
    return broker_.Ask(remoting::kViewBrokerStatsData, {{"statsName", name}, {"statsKey", key}});
  };
  const Command idle = ask("TOPIC_PUT_NUMS", "T");
  ASSERT_EQ(idle.code, 0) << idle.remark;
  EXPECT_EQ(remoting::BrokerStatsData::Decode(idle.body).value(), remoting::BrokerStatsData());
  const Command unknown = ask("TOPIC_PUT_NUMS", "U");
  EXPECT_EQ(unknown.code, 1);
  EXPECT_EQ(unknown.remark, "The stats <TOPIC_PUT_NUMS> <U> not exist");
  EXPECT_EQ(ask("NO_SUCH_NUMS", "T").code, 1);
  Consumer("c1");  // makes the group
  EXPECT_EQ(ask("GROUP_GET_NUMS", "T@g").code, 0);
  EXPECT_EQ(ask("GROUP_GET_NUMS", "T@h").code, 1);
  EXPECT_EQ(ask("GROUP_GET_NUMS", "T").code, 1);
  EXPECT_EQ(ask("BROKER_PUT_NUMS", "DefaultCluster").code, 0);
}

TEST(BrokerStats, WindowsMove) {
  TimePoint now{std::chrono::hours(1)};
  BrokerStats stats("c", now);
  stats.Sample(now);
  stats.NotePut(Topic("T"), 10, 1000);
  for (int i = 0; i < 60; ++i) stats.Sample(now += std::chrono::seconds(1));
  auto data = stats.Find("TOPIC_PUT_NUMS", "T", now).value();
  EXPECT_EQ(data.minute.sum, 10);
  EXPECT_NEAR(data.minute.tps, 10.0 / 60, 0.01);
  EXPECT_EQ(data.minute.average_time, 10.0);
  EXPECT_EQ(data.day.sum, 10);
  EXPECT_EQ(stats.Find("TOPIC_PUT_SIZE", "T", now)->minute.sum, 1000);
  EXPECT_EQ(stats.Find("BROKER_PUT_NUMS", "c", now)->minute.sum, 10);
  for (int i = 0; i < 20; ++i) stats.Sample(now += std::chrono::seconds(1));
  data = stats.Find("TOPIC_PUT_NUMS", "T", now).value();
  EXPECT_EQ(data.minute.sum, 0) << "it has left the minute";
  EXPECT_EQ(data.hour.sum, 10);
  for (int i = 0; i < 26; ++i) stats.Sample(now += std::chrono::hours(1));
  EXPECT_FALSE(stats.Find("TOPIC_PUT_NUMS", "T", now).has_value()) << "its day is over";
}

// What came just now is told as if the sample's time had passed, not as if it came all the time;
// and the time before the process counted is no part of it.
TEST(BrokerStats, TheFirstWindowIsOneSampleLong) {
  const TimePoint boot{std::chrono::hours(1000)};
  BrokerStats stats("c", boot);
  stats.NotePut(Topic("T"), 60, 6000);
  TimePoint now = boot + std::chrono::milliseconds(100);
  const auto data = stats.Find("TOPIC_PUT_NUMS", "T", now).value();
  EXPECT_DOUBLE_EQ(data.minute.tps, 6);
  EXPECT_DOUBLE_EQ(data.hour.tps, 0.1);
  EXPECT_DOUBLE_EQ(data.day.tps, 60.0 / 3600);
  now = boot + std::chrono::seconds(30);
  EXPECT_DOUBLE_EQ(stats.MinuteRate("TOPIC_PUT_NUMS", "T", now), 2);
}

TEST(BrokerStats, FetchesAndSendBacksAreCountedByTopicAndGroup) {
  const TimePoint now{std::chrono::hours(1)};
  BrokerStats stats("c", now);
  stats.NoteGet(Topic("T"), "g", 3, 300);
  stats.NoteSendBack(Topic("T"), "g");
  EXPECT_EQ(stats.Find("GROUP_GET_NUMS", "T@g", now)->day.sum, 3);
  EXPECT_EQ(stats.Find("GROUP_GET_SIZE", "T@g", now)->day.sum, 300);
  EXPECT_EQ(stats.Find("BROKER_GET_NUMS", "c", now)->day.sum, 3);
  EXPECT_EQ(stats.Find("SNDBCK_PUT_NUMS", "T@g", now)->day.sum, 1);
}

// 1000 s have passed since the figures began.
TEST_F(RelayTest, RatesOfATopicAndOfAGroupAreTold) {
  BrokerStats& stats = *broker_.context().stats;
  stats.Sample(broker_.context().clock.MonoNow() - std::chrono::seconds(1000));
  StateCommand command;
  TopicConfig& other = command.put_topics.emplace_back();
  other.name = Topic("U");
  other.read_queues = other.write_queues = 1;
  command.offsets.push_back({{GroupName("g"), Queue("T", 0)}, QueueOffset{0}, 0});
  command.offsets.push_back({{GroupName("g"), Queue("U", 0)}, QueueOffset{0}, 0});
  broker_.peer().Apply(command);
  stats.NotePut(Topic("T"), 7000, 1);
  stats.NoteGet(Topic("T"), "g", 3000, 1);
  stats.NoteGet(Topic("U"), "g", 2000, 1);
  stats.NoteGet(Topic("U"), "other", 9000, 1);

  const auto topic = remoting::TopicStatsTable::Decode(
      broker_.Ask(remoting::kGetTopicStatsInfo, {{"topic", "T"}}).body);
  EXPECT_NEAR(topic.value().topic_put_tps, 7, 0.3);
  const auto progress = [&](const char* of) {
    const Command answer =
        broker_.Ask(remoting::kGetConsumeStats, {{"consumerGroup", "g"}, {"topic", of}});
    return remoting::ConsumeStats::Decode(answer.body).value().consume_tps;
  };
  EXPECT_NEAR(progress(""), 5, 0.3) << "the sum over its topics";
  EXPECT_NEAR(progress("U"), 2, 0.3);
}

TEST_F(RelayTest, ADM_4_TimesOfAGroupsQueuesAreKnown) {
  Consumer("c1");
  const auto ask = [&] {
    const Command answer =
        broker_.Ask(remoting::kQueryConsumeTimeSpan, {{"topic", "T"}, {"group", "g"}});
    EXPECT_EQ(answer.code, 0) << answer.remark;
    return remoting::Json::Parse(answer.body).value()["consumeTimeSpanSet"].items().at(0);
  };
  EXPECT_EQ(ask()["minTimeStamp"].AsInt64(), -1) << "an empty queue";
  Send(1);
  Send(1);
  ASSERT_EQ(UpdateOffset(1).code, 0);
  ASSERT_EQ(QueryOffset(), "1");
  const remoting::Json span = ask();
  EXPECT_GT(span["minTimeStamp"].AsInt64(), 0);
  EXPECT_GE(span["maxTimeStamp"].AsInt64(), span["minTimeStamp"].AsInt64());
  EXPECT_EQ(span["consumeTimeStamp"].AsInt64(), span["minTimeStamp"].AsInt64());
  EXPECT_LT(span["delayTime"].AsInt64(), 60000);
  EXPECT_EQ(broker_.Ask(remoting::kQueryConsumeTimeSpan, {{"topic", "U"}, {"group", "g"}}).code,
            17);
}

TEST_F(RelayTest, ProgressOfAllGroupsComesInOneAnswer) {
  Consumer("c1");
  Send(5);
  ASSERT_EQ(UpdateOffset(2).code, 0);
  ASSERT_EQ(QueryOffset(), "2");
  const Command all = broker_.Ask(remoting::kGetBrokerConsumeStats, {{"isOrder", "false"}});
  EXPECT_THAT(all.body,
              HasSubstr(R"({"g":[{"consumeTps":0.0,"offsetTable":{{"brokerName":"b0","queueId":0,)"
                        R"("topic":"T"}:{"brokerOffset":5,"consumerOffset":2,)"));
  EXPECT_THAT(all.body, HasSubstr(R"("totalDiff":3,)"));
  EXPECT_THAT(broker_.Ask(remoting::kGetBrokerConsumeStats, {{"isOrder", "true"}}).body,
              HasSubstr(R"({"g":[]})"));
}

TEST_F(RelayTest, TheRateOfAGroupIsToldWithAllGroups) {
  Consumer("c1");
  Send(1);
  ASSERT_EQ(UpdateOffset(1).code, 0);
  ASSERT_EQ(QueryOffset(), "1");
  BrokerStats& stats = *broker_.context().stats;
  stats.Sample(broker_.context().clock.MonoNow() - std::chrono::seconds(1000));
  stats.NoteGet(Topic("T"), "g", 3000, 1);
  const Command all = broker_.Ask(remoting::kGetBrokerConsumeStats, {{"isOrder", "false"}});
  const remoting::Json body = remoting::Json::Parse(all.body).value();
  for (const remoting::Json& group : body["consumeStatsList"].items()) {
    for (const remoting::Json& figures : group["g"].items()) {
      EXPECT_NEAR(figures["consumeTps"].AsDouble(), 3, 0.3);
      return;
    }
  }
  FAIL() << all.body;
}

TEST_F(RelayTest, UnitsOfAConsumeQueueAreListed) {
  Send(3);
  const auto ask = [&](const char* queue, const char* index) {
    return broker_.Ask(remoting::kQueryConsumeQueue,
                       {{"topic", "T"}, {"queueId", queue}, {"index", index}, {"count", "2"}});
  };
  const auto json = remoting::Json::Parse(ask("0", "1").body).value();
  EXPECT_EQ(json["queueData"].items().size(), 2u);
  EXPECT_EQ(json["minQueueIndex"].AsInt64(), 0);
  EXPECT_EQ(json["maxQueueIndex"].AsInt64(), 3);
  const auto unit = broker_.peer().store().queues().ReadNow(Queue("T", 0), QueueOffset{1}, 1);
  EXPECT_EQ(json["queueData"].items().at(0)["physicOffset"].AsInt64(),
            unit->at(0).position.value());
  const Command outside = ask("0", "3");
  EXPECT_EQ(outside.code, 0);
  EXPECT_EQ(outside.body, "");
  EXPECT_EQ(ask("7", "0").remark, "7@T is not exist!");
}

TEST_F(RelayTest, ReplicationStatusSaysWhoLeads) {
  const auto json = remoting::Json::Parse(broker_.Ask(remoting::kGetBrokerHaStatus, {}).body);
  EXPECT_TRUE((*json)["master"].AsBool());
  EXPECT_GT((*json)["masterCommitLogMaxOffset"].AsInt64(), 0);
  EXPECT_TRUE((*json)["haConnectionInfo"].is_array());
}

}  // namespace
}  // namespace triad::broker
