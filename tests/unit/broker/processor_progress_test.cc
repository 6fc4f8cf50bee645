// Offsets, progress and resets as clients and tools see them (wire.md §4.1; admin.md §2.7, §6.2).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "remoting/bodies.h"
#include "remoting/codes.h"
#include "tests/unit/broker/admin_fixture.h"

namespace triad::broker {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

TEST_F(AdminTest, OFS_3_OffsetsOfANewGroup) {
  CreateTopic("T", 2);
  CreateGroup("g");
  const Command never_written = QueryOffset("g", "T", 0);
  EXPECT_EQ(never_written.code, 0);
  EXPECT_EQ(*never_written.ext.Find("offset"), "0");
  Send("T", 0, 5);
  const Command in_memory = QueryOffset("g", "T", 0);
  EXPECT_EQ(in_memory.code, 0);
  EXPECT_EQ(*in_memory.ext.Find("offset"), "0");
  EXPECT_EQ(QueryOffset("g", "T", 0, {{"setZeroIfNotFound", "false"}}).code, 22);
  EXPECT_EQ(UpdateOffset("g", "T", 0, 3).code, 0);
  EXPECT_EQ(*QueryOffset("g", "T", 0).ext.Find("offset"), "3");
  EXPECT_EQ(UpdateOffset("g", "T", 0, 0).code, 0);
  const Command committed_zero = QueryOffset("g", "T", 0);
  EXPECT_EQ(committed_zero.code, 0);
  EXPECT_EQ(*committed_zero.ext.Find("offset"), "0");
}

TEST_F(AdminTest, OFS_3_AFirstMessageTooFarBackDoesNotStartANewGroup) {
  OneBroker small(OneBroker::DefaultConfig(), /*memory_bytes=*/100);
  small.peer().Apply([] {
    StateCommand command;
    TopicConfig& topic = command.put_topics.emplace_back();
    topic.name = Topic("T");
    topic.read_queues = topic.write_queues = 1;
    command.put_groups.emplace_back().name = GroupName("g");
    return command;
  }());
  small.peer().Send({Draft("T", 0, "first"), Draft("T", 0, "second")});
  EXPECT_EQ(small
                .Ask(remoting::kQueryConsumerOffset,
                     {{"consumerGroup", "g"}, {"topic", "T"}, {"queueId", "0"}})
                .code,
            22);
}

TEST_F(AdminTest, AnOffsetQueryWaitsWhileNobodyLeads) {
  CreateTopic("T", 1);
  broker_.gate().OnLeaderChange(dledger::LeaderInfo{});
  const auto connection = broker_.Connect();
  broker_.Start(connection, remoting::kQueryConsumerOffset,
                {{"consumerGroup", "g"}, {"topic", "T"}, {"queueId", "0"}});
  EXPECT_EQ(connection->sent(), 0u);
  broker_.gate().OnLeaderChange(broker_.peer().store().node().leader_info());
  EXPECT_EQ(connection->Next().code, 0);
}

TEST_F(AdminTest, ACommitBeforeTheFirstHeartbeatCreatesItsGroup) {
  CreateTopic("T", 1);
  EXPECT_EQ(UpdateOffset("early", "T", 0, 1).code, 0);
  const Command answer =
      broker_.Ask(remoting::kQueryConsumerOffset,
                  {{"consumerGroup", "early"}, {"topic", "T"}, {"queueId", "0"}});
  EXPECT_EQ(answer.ext.StringOr("offset", ""), "1");
  EXPECT_TRUE(broker_.state().FindGroup(GroupName("early")).has_value());

  BrokerConfig config = OneBroker::DefaultConfig();
  config.auto_create_group = false;
  OneBroker strict(config);
  strict.peer().Apply([] {
    StateCommand command;
    TopicConfig& topic = command.put_topics.emplace_back();
    topic.name = Topic("T");
    topic.read_queues = topic.write_queues = 1;
    return command;
  }());
  EXPECT_EQ(
      strict
          .Ask(
              remoting::kUpdateConsumerOffset,
              {{"consumerGroup", "early"}, {"topic", "T"}, {"queueId", "0"}, {"commitOffset", "1"}})
          .code,
      26);
}

TEST_F(AdminTest, CommitsAreCheckedLikeTheOriginalDoes) {
  CreateTopic("T", 1);
  EXPECT_EQ(UpdateOffset("no group", "T", 0, 1).code, 26);
  CreateGroup("g");
  EXPECT_EQ(UpdateOffset("g", "NoTopic", 0, 1).code, 17);
  EXPECT_EQ(UpdateOffset("g", "T", 0, -1).code, 29);
  EXPECT_EQ(UpdateOffset("g", "T", -1, 1).code, 29);
  EXPECT_EQ(broker_.Ask(remoting::kUpdateConsumerOffset, {{"topic", "T"}}).code, 29);
}

// Offsets of queues that never were would fill the table; a queue that was is known by what is left
// of it.
TEST_F(AdminTest, AnOffsetIsKeptForQueuesThatAreOrWereOnly) {
  CreateTopic("T", 4);
  CreateGroup("g");
  const auto commit = [&](int queue, const char* token = "0") {
    return broker_.Ask(remoting::kUpdateConsumerOffset, {{"consumerGroup", "g"},
                                                         {"topic", "T"},
                                                         {"queueId", std::to_string(queue)},
                                                         {"commitOffset", "1"},
                                                         {"fenceToken", token}});
  };
  Send("T", 3, 1);
  EXPECT_EQ(commit(2).code, 0);
  const Command never = commit(4);
  EXPECT_EQ(never.code, remoting::kInvalidParameter);
  EXPECT_THAT(never.remark, HasSubstr("queueId[4] is illegal, topic[T] has 4 read"));
  CreateTopic("T", 1);
  EXPECT_EQ(commit(3).code, 0) << "it was written to";
  EXPECT_EQ(commit(2).code, 0) << "its offset is kept";
  EXPECT_EQ(commit(1).code, remoting::kInvalidParameter) << "nothing is left of it";
  EXPECT_EQ(commit(0, "-1").code, remoting::kInvalidParameter);
}

TEST_F(AdminTest, ProgressShowsWhereAGroupStands) {
  CreateTopic("T", 2);
  CreateGroup("g");
  Send("T", 0, 9);
  ASSERT_EQ(UpdateOffset("g", "T", 0, 7).code, 0);
  const Command answer = broker_.Ask(remoting::kGetConsumeStats, {{"consumerGroup", "g"}});
  const auto table = remoting::ConsumeStats::Decode(answer.body).value().offset_table;
  ASSERT_EQ(table.size(), 2u);
  EXPECT_EQ(table.at({"T", "b0", 0}).broker_offset, 9);
  EXPECT_EQ(table.at({"T", "b0", 0}).consumer_offset, 7);
  EXPECT_GT(table.at({"T", "b0", 0}).last_timestamp_ms, 0);
  const auto groups = remoting::GroupList::Decode(
      broker_.Ask(remoting::kQueryTopicConsumeByWho, {{"topic", "T"}}).body);
  EXPECT_THAT(groups.value().groups, UnorderedElementsAre("g"));
  const auto topics = remoting::TopicList::Decode(
      broker_.Ask(remoting::kQueryTopicsByConsumer, {{"group", "g"}}).body);
  EXPECT_THAT(topics.value().topic_list, UnorderedElementsAre("T"));
}

TEST_F(AdminTest, ProgressCountsWhatWasCommittedAMomentAgo) {
  BrokerConfig config = OneBroker::DefaultConfig();
  config.offset_commit_interval = std::chrono::hours(1);
  OneBroker broker(config);
  StateCommand command;
  TopicConfig& topic = command.put_topics.emplace_back();
  topic.name = Topic("T");
  topic.read_queues = topic.write_queues = 1;
  command.put_groups.emplace_back().name = GroupName("g");
  broker.peer().Apply(command);
  const auto commits = broker.Connect();
  broker.Start(commits, remoting::kUpdateConsumerOffset,
               {{"consumerGroup", "g"}, {"topic", "T"}, {"queueId", "0"}, {"commitOffset", "7"}});
  const Command answer = broker.Ask(remoting::kGetConsumeStats, {{"consumerGroup", "g"}});
  const auto table = remoting::ConsumeStats::Decode(answer.body).value().offset_table;
  ASSERT_EQ(table.size(), 1u);
  EXPECT_EQ(table.at({"T", "b0", 0}).consumer_offset, 7);
  EXPECT_EQ(commits->Next().code, 0);
}

TEST_F(AdminTest, WhatIsInFlightIsToldUntilItIsGone) {
  const Topic t("T");
  const auto note = [&](const char* group, std::int64_t next) {
    broker_.context().pulled->Note(group, {t, QueueId(0)}, QueueOffset(next),
                                   broker_.peer().term());
  };
  const auto pulled = [&] {
    const Command answer = broker_.Ask(remoting::kGetConsumeStats, {{"consumerGroup", "g"}});
    return remoting::ConsumeStats::Decode(answer.body)
        .value()
        .offset_table[{"T", "b0", 0}]
        .pull_offset;
  };
  const auto known = [&](const char* group) {
    return broker_.context().pulled->Find(group, {t, QueueId(0)}, broker_.peer().term());
  };
  CreateTopic("T", 1);
  for (const char* group : {"g", "h"}) CreateGroup(group);
  Send("T", 0, 9);
  ASSERT_EQ(UpdateOffset("g", "T", 0, 4).code, 0);
  ASSERT_EQ(QueryOffset("g", "T", 0).code, 0);  // committed
  EXPECT_EQ(pulled(), 4) << "nothing was handed out";
  note("g", 7);
  EXPECT_EQ(pulled(), 7);
  const Command all = broker_.Ask(remoting::kGetBrokerConsumeStats, {{"isOrder", "false"}});
  EXPECT_THAT(all.body, HasSubstr(R"("totalDiff":5,"totalInflightDiff":3)"));
  note("g", 2);
  EXPECT_EQ(pulled(), 4) << "never in front of what is consumed";
  note("g", 100);
  EXPECT_EQ(pulled(), 9) << "never behind what there is";

  ASSERT_EQ(broker_
                .Ask(remoting::kInvokeBrokerToResetOffset,
                     {{"topic", "T"}, {"group", "g"}, {"timestamp", "-1"}, {"isForce", "true"}})
                .code,
            0);
  EXPECT_EQ(known("g"), std::nullopt) << "reset";
  note("g", 7);
  note("h", 7);
  broker_.Ask(remoting::kDeleteSubscriptionGroup, {{"groupName", "g"}});
  EXPECT_EQ(known("g"), std::nullopt) << "deleted";
  EXPECT_EQ(known("h"), QueueOffset(7));
  broker_.Ask(remoting::kDeleteTopicInBroker, {{"topic", "T"}});
  EXPECT_EQ(known("h"), std::nullopt) << "with its topic";
}

TEST_F(AdminTest, AnOnlineGroupShowsOnlyWhatItSubscribesTo) {
  CreateTopic("T", 1);
  CreateTopic("Old", 1);
  CreateGroup("g");
  ASSERT_EQ(UpdateOffset("g", "T", 0, 0).code, 0);
  ASSERT_EQ(UpdateOffset("g", "Old", 0, 0).code, 0);
  broker_.Ask(remoting::kHeartBeat, {}, Heartbeat("c1", "g", "T"));
  const auto table = remoting::ConsumeStats::Decode(
      broker_.Ask(remoting::kGetConsumeStats, {{"consumerGroup", "g"}}).body);
  EXPECT_EQ(table.value().offset_table.size(), 1u);
}

TEST_F(AdminTest, AResetCommitsAndIsPushedToTheMembers) {
  CreateTopic("T", 1);
  CreateGroup("g");
  Send("T", 0, 9);
  ASSERT_EQ(UpdateOffset("g", "T", 0, 7).code, 0);
  const auto member = broker_.Connect();
  broker_.AskOn(member, remoting::kHeartBeat, {}, Heartbeat("c1", "g", "T"));
  const Command answer =
      broker_.Ask(remoting::kInvokeBrokerToResetOffset,
                  {{"topic", "T"}, {"group", "g"}, {"timestamp", "0"}, {"isForce", "true"}});
  ASSERT_EQ(answer.code, 0) << answer.remark;
  EXPECT_EQ(answer.body,
            "{\"offsetTable\":{{\"brokerName\":\"b0\",\"queueId\":0,\"topic\":\"T\"}:0}}");
  EXPECT_EQ(*QueryOffset("g", "T", 0).ext.Find("offset"), "0");
  const Command push = member->Next();
  EXPECT_EQ(push.code, remoting::kResetConsumerClientOffset);
  EXPECT_TRUE(push.is_oneway());
  EXPECT_EQ(push.body, answer.body);
}

TEST_F(AdminTest, AResetWithoutForceOnlyGoesBack) {
  CreateTopic("T", 1);
  CreateGroup("g");
  Send("T", 0, 9);
  ASSERT_EQ(UpdateOffset("g", "T", 0, 4).code, 0);
  const auto reset = [&](const char* timestamp, const char* force) {
    return broker_.Ask(
        remoting::kInvokeBrokerToResetOffset,
        {{"topic", "T"}, {"group", "g"}, {"timestamp", timestamp}, {"isForce", force}});
  };
  EXPECT_EQ(reset("-1", "false").code, 0);
  EXPECT_EQ(*QueryOffset("g", "T", 0).ext.Find("offset"), "4");
  EXPECT_EQ(reset("-1", "true").code, 0);
  EXPECT_EQ(*QueryOffset("g", "T", 0).ext.Find("offset"), "9");
}

TEST_F(AdminTest, ResetsOfWhatDoesNotExistAreRefused) {
  CreateTopic("T", 1);
  const auto reset = [&](const char* topic, const char* group) {
    return broker_
        .Ask(remoting::kInvokeBrokerToResetOffset,
             {{"topic", topic}, {"group", group}, {"timestamp", "0"}, {"isForce", "true"}})
        .code;
  };
  EXPECT_EQ(reset("NoTopic", "g"), 17);
  EXPECT_EQ(reset("T", "nobody"), 26);
}

}  // namespace
}  // namespace triad::broker
