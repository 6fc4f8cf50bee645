// What a command does to the replicated state.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/broker/state_support.h"

namespace triad::broker {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using CommitFate = ReplicatedState::CommitFate;

StateCommand PutTopic(TopicConfig topic) {
  StateCommand command;
  command.put_topics.push_back(std::move(topic));
  return command;
}

StateCommand DeleteTopic(const std::string& topic) {
  StateCommand command;
  command.delete_topics.emplace_back(topic);
  return command;
}

StateCommand PutGroup(GroupConfig group) {
  StateCommand command;
  command.put_groups.push_back(std::move(group));
  return command;
}

StateCommand Commit(const GroupQueue& key, std::int64_t offset, std::uint64_t token = 0) {
  StateCommand command;
  command.offsets.push_back({key, QueueOffset{offset}, token});
  return command;
}

StateCommand Lock(const GroupQueue& key, const std::string& client, std::uint64_t token) {
  StateCommand command;
  command.locks.push_back({key, ClientId(client), token});
  return command;
}

// ---- Topics -------------------------------------------------------------------------------------

TEST(ReplicatedTopics, CarryThePositionOfTheEntryThatCreatedThem) {
  StateHarness h;
  h.Apply({});
  const PhysicalOffset created = h.next_position();
  TopicConfig topic = TopicOf("T");
  topic.created_position = PhysicalOffset{12345};  // a proposer's word counts for nothing
  h.Apply(PutTopic(topic));
  EXPECT_EQ(h.state().FindTopic(Topic("T"))->created_position, created);
  topic.perm = 4;
  h.Apply(PutTopic(topic));
  EXPECT_EQ(h.state().FindTopic(Topic("T"))->perm, 4);
  EXPECT_EQ(h.state().FindTopic(Topic("T"))->created_position, created);
}

TEST(ReplicatedTopics, EveryFieldComesThrough) {
  StateHarness h;
  TopicConfig topic = TopicOf("T", 7);
  topic.write_queues = 6;
  topic.perm = 2;
  topic.sys_flag = 3;
  topic.order = true;
  topic.multi_tag = true;
  topic.attributes = {{"+a", "b"}, {"bytes", "\xff\xfe"}};
  h.Apply(PutTopic(topic));
  TopicConfig found = h.state().FindTopic(Topic("T")).value();
  found.created_position = topic.created_position;
  EXPECT_EQ(found, topic);
}

TEST(ReplicatedTopics, CreateOnlyLeavesAnExistingTopic) {
  StateHarness h;
  h.Apply(PutTopic(TopicOf("T", 4)));
  StateCommand again = PutTopic(TopicOf("T", 8));
  again.create_only = true;
  again.put_topics.push_back(TopicOf("U", 8));
  EXPECT_THAT(h.Apply(again).topics_changed, ElementsAre("U"));
  EXPECT_EQ(h.state().FindTopic(Topic("T"))->read_queues, 4);
  EXPECT_EQ(h.state().FindTopic(Topic("U"))->read_queues, 8);
}

TEST(ReplicatedTopics, OnlyAChangeMovesTheDataVersion) {
  StateHarness h;
  EXPECT_THAT(h.Apply(PutTopic(TopicOf("T"))).topics_changed, ElementsAre("T"));
  EXPECT_EQ(h.state().data_version().counter, 1);
  EXPECT_EQ(h.state().data_version().timestamp_ms, h.time_ms());
  h.Pass(1000);
  EXPECT_THAT(h.Apply(PutTopic(TopicOf("T"))).topics_changed, IsEmpty());
  EXPECT_THAT(h.Apply(DeleteTopic("absent")).topics_changed, IsEmpty());
  h.Apply(PutGroup(GroupOf("g")));
  EXPECT_EQ(h.state().data_version().counter, 1);
  EXPECT_EQ(h.state().data_version().timestamp_ms, h.time_ms() - 1000);
  h.Apply(PutTopic(TopicOf("T", 9)));
  EXPECT_EQ(h.state().data_version().counter, 2);
  EXPECT_EQ(h.state().data_version().timestamp_ms, h.time_ms());
  EXPECT_THAT(h.Apply(DeleteTopic("T")).topics_changed, ElementsAre("T"));
  EXPECT_EQ(h.state().data_version().counter, 3);
}

TEST(ReplicatedTopics, AreListedByName) {
  StateHarness h;
  for (const char* name : {"c", "a", "b"}) h.Apply(PutTopic(TopicOf(name)));
  std::vector<std::string> names;
  for (const TopicConfig& topic : h.state().Topics()) names.push_back(topic.name.value());
  EXPECT_THAT(names, ElementsAre("a", "b", "c"));
}

TEST(ReplicatedTopics, DeletionTakesOffsetsNextOffsetsAndLocksOfThatTopicOnly) {
  StateHarness h;
  for (const char* name : {"S", "T", "T2", "%RETRY%g"}) {
    h.Apply(PutTopic(TopicOf(name)));
    h.Apply(Commit(Key("g", name, 0), 5));
    h.Apply(Commit(Key("g", name, 3), 6));
    h.Apply(Lock(Key("g", name, 0), "c", h.state().next_fence_token()));
    h.Message(Queue(name, 0), 10);
  }
  h.Apply(DeleteTopic("T"));
  EXPECT_FALSE(h.state().FindTopic(Topic("T")).has_value());
  EXPECT_FALSE(h.state().FindOffset(Key("g", "T", 0)).has_value());
  EXPECT_FALSE(h.state().FindOffset(Key("g", "T", 3)).has_value());
  EXPECT_EQ(h.state().NextOffset(Queue("T", 0)), QueueOffset{0});
  EXPECT_THAT(h.state().GroupsWithOffsets(Topic("T")), IsEmpty());
  EXPECT_EQ(h.state().Locks().size(), 3u);
  for (const char* name : {"S", "T2", "%RETRY%g"}) {
    SCOPED_TRACE(name);
    EXPECT_TRUE(h.state().FindTopic(Topic(name)).has_value());
    EXPECT_EQ(h.state().FindOffset(Key("g", name, 3)), QueueOffset{6});
    EXPECT_EQ(h.state().NextOffset(Queue(name, 0)), QueueOffset{10});
    EXPECT_THAT(h.state().GroupsWithOffsets(Topic(name)), ElementsAre(GroupName("g")));
  }
}

TEST(ReplicatedTopics, ARecreatedTopicBeginsAgain) {
  StateHarness h;
  h.Apply(PutTopic(TopicOf("T")));
  h.Message(Queue("T", 0), 10);
  h.Apply(DeleteTopic("T"));
  const PhysicalOffset created = h.next_position();
  h.Apply(PutTopic(TopicOf("T")));
  EXPECT_EQ(h.state().FindTopic(Topic("T"))->created_position, created);
  h.Message(Queue("T", 0), 1);
  EXPECT_EQ(h.state().NextOffset(Queue("T", 0)), QueueOffset{1});
}

// ---- Groups -------------------------------------------------------------------------------------

TEST(ReplicatedGroups, EveryFieldComesThrough) {
  StateHarness h;
  GroupConfig group = GroupOf("g");
  group.consume_enable = false;
  group.consume_from_min_enable = false;
  group.consume_broadcast_enable = false;
  group.consume_message_orderly = true;
  group.retry_queue_nums = 3;
  group.retry_max_times = 5;
  group.broker_id = 2;
  group.which_broker_when_consume_slowly = 4;
  group.notify_consumer_ids_changed_enable = false;
  group.group_sys_flag = 9;
  group.consume_timeout_minute = 30;
  group.attributes = {{"x", "y"}};
  group.group_retry_policy_json = "{}";
  h.Apply(PutGroup(group));
  EXPECT_EQ(h.state().FindGroup(GroupName("g")), group);
  EXPECT_THAT(h.state().Groups(), ElementsAre(group));
}

TEST(ReplicatedGroups, CreateOnlyLeavesAnExistingGroup) {
  StateHarness h;
  h.Apply(PutGroup(GroupOf("g")));
  GroupConfig other = GroupOf("g");
  other.retry_max_times = 1;
  StateCommand create = PutGroup(other);
  create.create_groups_only = true;
  h.Apply(create);
  EXPECT_EQ(h.state().FindGroup(GroupName("g"))->retry_max_times, 16);
  h.Apply(PutGroup(other));
  EXPECT_EQ(h.state().FindGroup(GroupName("g"))->retry_max_times, 1);
}

TEST(ReplicatedGroups, DeletionCleansOffsetsOnlyWhenAsked) {
  for (const bool clean : {false, true}) {
    SCOPED_TRACE(clean);
    StateHarness h;
    h.Apply(PutTopic(TopicOf("T")));
    for (const char* name : {"g", "h"}) {
      h.Apply(PutGroup(GroupOf(name)));
      h.Apply(Commit(Key(name, "T", 0), 5));
    }
    StateCommand remove;
    remove.delete_groups.emplace_back("g");
    remove.clean_offsets = clean;
    h.Apply(remove);
    EXPECT_FALSE(h.state().FindGroup(GroupName("g")).has_value());
    EXPECT_EQ(h.state().FindOffset(Key("g", "T", 0)).has_value(), !clean);
    EXPECT_TRUE(h.state().FindGroup(GroupName("h")).has_value());
    EXPECT_TRUE(h.state().FindOffset(Key("h", "T", 0)).has_value());
  }
}

// ---- Offsets ------------------------------------------------------------------------------------

TEST(ReplicatedOffsets, TheLastCommitWinsAlsoASmallerOne) {
  StateHarness h;
  h.Apply(PutTopic(TopicOf("T")));
  h.Apply(Commit(Key("g", "T", 0), 100));
  h.Apply(Commit(Key("g", "T", 0), 7));
  EXPECT_EQ(h.state().FindOffset(Key("g", "T", 0)), QueueOffset{7});
  StateCommand both = Commit(Key("g", "T", 0), 50);
  both.offsets.push_back({Key("g", "T", 0), QueueOffset{20}, 0});
  h.Apply(both);
  EXPECT_EQ(h.state().FindOffset(Key("g", "T", 0)), QueueOffset{20});
  EXPECT_FALSE(h.state().FindOffset(Key("g", "T", 1)).has_value());
  EXPECT_FALSE(h.state().FindOffset(Key("h", "T", 0)).has_value());
}

TEST(ReplicatedOffsets, OnlyAStaleFencingTokenIsRefused) {
  StateHarness h;
  h.Apply(PutTopic(TopicOf("T")));
  const GroupQueue key = Key("g", "T", 0);
  EXPECT_THAT(h.Apply(Commit(key, 1, 3)).offsets, ElementsAre(CommitFate::kStored))
      << "no lock yet";
  h.Apply(Lock(key, "a", 5));
  EXPECT_THAT(h.Apply(Commit(key, 2, 4)).offsets, ElementsAre(CommitFate::kStale));
  EXPECT_EQ(h.state().FindOffset(key), QueueOffset{1});
  EXPECT_THAT(h.Apply(Commit(key, 3, 5)).offsets, ElementsAre(CommitFate::kStored));
  EXPECT_THAT(h.Apply(Commit(key, 4, 0)).offsets, ElementsAre(CommitFate::kStored)) << "none given";
  h.Apply(Lock(key, "", 5));
  EXPECT_THAT(h.Apply(Commit(key, 5, 4)).offsets, ElementsAre(CommitFate::kStale))
      << "a release keeps the token";
  EXPECT_THAT(h.Apply(Commit(key, 6, 5)).offsets, ElementsAre(CommitFate::kStored));
  EXPECT_EQ(h.state().FindOffset(key), QueueOffset{6});
}

TEST(ReplicatedOffsets, AreListedByQueue) {
  StateHarness h;
  for (const char* name : {"T", "U"}) h.Apply(PutTopic(TopicOf(name)));
  h.Apply(Commit(Key("g", "U", 0), 3));
  h.Apply(Commit(Key("g", "T", 1), 2));
  h.Apply(Commit(Key("g", "T", 0), 1));
  h.Apply(Commit(Key("x", "T", 0), 9));
  EXPECT_THAT(h.state().OffsetsOf(GroupName("g")),
              ElementsAre(std::make_pair(Queue("T", 0), QueueOffset{1}),
                          std::make_pair(Queue("T", 1), QueueOffset{2}),
                          std::make_pair(Queue("U", 0), QueueOffset{3})));
  EXPECT_THAT(h.state().GroupsWithOffsets(Topic("T")), ElementsAre(GroupName("g"), GroupName("x")));
  EXPECT_THAT(h.state().GroupsWithOffsets(Topic("U")), ElementsAre(GroupName("g")));
}

// ---- Locks --------------------------------------------------------------------------------------

TEST(ReplicatedLocks, AGrantNeedsALargerToken) {
  StateHarness h;
  h.Apply(PutTopic(TopicOf("T")));
  const GroupQueue key = Key("g", "T", 0);
  EXPECT_EQ(h.state().next_fence_token(), 1u);
  EXPECT_THAT(h.Apply(Lock(key, "a", 7)).locks_accepted, ElementsAre(true));
  EXPECT_EQ(h.state().next_fence_token(), 8u);
  EXPECT_THAT(h.Apply(Lock(key, "b", 7)).locks_accepted, ElementsAre(false));
  EXPECT_THAT(h.Apply(Lock(key, "b", 6)).locks_accepted, ElementsAre(false));
  EXPECT_EQ(h.state().Locks().front().client, ClientId("a"));
  EXPECT_THAT(h.Apply(Lock(key, "b", 8)).locks_accepted, ElementsAre(true));
  EXPECT_EQ(h.state().Locks().front().client, ClientId("b"));
  EXPECT_EQ(h.state().Locks().front().token, 8u);
}

TEST(ReplicatedLocks, AReleaseMustBeOfThePresentGrantAndKeepsTheToken) {
  StateHarness h;
  h.Apply(PutTopic(TopicOf("T")));
  const GroupQueue key = Key("g", "T", 0);
  EXPECT_THAT(h.Apply(Lock(key, "", 1)).locks_accepted, ElementsAre(false)) << "none there";
  h.Apply(Lock(key, "a", 3));
  EXPECT_THAT(h.Apply(Lock(key, "", 2)).locks_accepted, ElementsAre(false));
  EXPECT_EQ(h.state().Locks().front().client, ClientId("a"));
  EXPECT_THAT(h.Apply(Lock(key, "", 3)).locks_accepted, ElementsAre(true));
  EXPECT_TRUE(h.state().Locks().front().client.empty());
  EXPECT_EQ(h.state().Locks().front().token, 3u);
  EXPECT_THAT(h.Apply(Lock(key, "b", 3)).locks_accepted, ElementsAre(false));
}

// ---- Behind a topic's deletion ------------------------------------------------------------------

TEST(ReplicatedTopics, WhatLandsBehindTheDeletionIsNothingToTheNextTopicOfThatName) {
  StateHarness h;
  const GroupQueue key = Key("g", "T", 0);
  DlqMark mark{GroupName("g"), QueueId{0}, QueueOffset{0}, QueueOffset{0}};
  StateCommand late_mark;
  late_mark.dlq_marks.push_back(mark);
  for (const char* name : {"T", "%DLQ%g"}) {
    h.Apply(PutTopic(TopicOf(name)));
    h.Apply(DeleteTopic(name));
  }
  EXPECT_THAT(h.Apply(Commit(key, 100)).offsets, ElementsAre(CommitFate::kNoTopic));
  EXPECT_THAT(h.Apply(Lock(key, "a", 1)).locks_accepted, ElementsAre(false));
  h.Apply(late_mark);
  for (const char* name : {"T", "%DLQ%g"}) h.Apply(PutTopic(TopicOf(name)));
  EXPECT_FALSE(h.state().FindOffset(key).has_value());
  EXPECT_EQ(h.state().LockToken(key), 0u);
  EXPECT_FALSE(h.state().DlqSettled(GroupName("g"), QueueId{0}, QueueOffset{0}));
}

TEST(ReplicatedTopics, ATopicMadeByTheSameCommandIsThere) {
  StateHarness h;
  StateCommand command = Commit(Key("g", "T", 0), 7);
  command.put_topics.push_back(TopicOf("T"));
  EXPECT_THAT(h.Apply(command).offsets, ElementsAre(CommitFate::kStored));
  EXPECT_EQ(h.state().FindOffset(Key("g", "T", 0)), QueueOffset{7});
}

// ---- Delay, send-back, levels -------------------------------------------------------------------

TEST(ReplicatedDelays, ProgressMovesOnlyAsTold) {
  StateHarness h;
  StateCommand command;
  command.delays = {{3, QueueOffset{10}}, {4, QueueOffset{1}}};
  h.Apply(command);
  h.Message(Queue(std::string(kScheduleTopic), 2), 99);
  EXPECT_EQ(h.state().DelayProgress(3), QueueOffset{10});
  EXPECT_EQ(h.state().DelayProgress(4), QueueOffset{1});
  EXPECT_EQ(h.state().DelayProgress(5), QueueOffset{0});
}

TEST(ReplicatedDelays, LevelsAreAcceptedOnce) {
  StateHarness h;
  StateCommand command;
  command.set_delay_levels = "1s 2s";
  h.Apply(command);
  command.set_delay_levels = "9s";
  h.Apply(command);
  EXPECT_EQ(h.state().delay_levels(), "1s 2s");
}

TEST(ReplicatedSettings, TheLastOneOfAKeyCounts) {
  StateHarness h;
  StateCommand command;
  command.put_settings = {{"brokerPermission", "4"}, {"traceOn", "false"}};
  h.Apply(command);
  command.put_settings = {{"traceOn", "true"}};
  h.Apply(command);
  EXPECT_EQ(h.state().settings(), (Settings{{"brokerPermission", "4"}, {"traceOn", "true"}}));
}

TEST(ReplicatedSendBacks, MarksExpireAfterTenMinutesOfLogTime) {
  StateHarness h;
  StateCommand mark;
  mark.send_backs.emplace_back(GroupName("g"), PhysicalOffset{500});
  h.Apply(mark);
  EXPECT_TRUE(h.state().SentBack(GroupName("g"), PhysicalOffset{500}));
  EXPECT_FALSE(h.state().SentBack(GroupName("h"), PhysicalOffset{500}));
  EXPECT_FALSE(h.state().SentBack(GroupName("g"), PhysicalOffset{501}));
  h.Pass(599999);
  h.Apply({});
  EXPECT_TRUE(h.state().SentBack(GroupName("g"), PhysicalOffset{500}));
  h.Pass(1);
  h.Apply({});
  EXPECT_FALSE(h.state().SentBack(GroupName("g"), PhysicalOffset{500}));
}

TEST(ReplicatedSendBacks, MarkingAgainStartsTheTenMinutesAgain) {
  StateHarness h;
  StateCommand mark;
  mark.send_backs.emplace_back(GroupName("g"), PhysicalOffset{500});
  h.Apply(mark);
  h.Pass(300000);
  h.Apply(mark);
  h.Pass(300000);
  h.Apply({});
  EXPECT_TRUE(h.state().SentBack(GroupName("g"), PhysicalOffset{500}));
  h.Pass(300000);
  h.Apply({});
  EXPECT_FALSE(h.state().SentBack(GroupName("g"), PhysicalOffset{500}));
}

// ---- Entries ------------------------------------------------------------------------------------

TEST(ReplicatedState, KnowsWhatItApplied) {
  StateHarness h;
  h.Apply({});
  h.Pass(5);
  h.Message(Queue("T", 2), 4);
  EXPECT_EQ(h.state().applied_index(), LogIndex{2});
  EXPECT_EQ(h.state().applied_position(), PhysicalOffset{200});
  EXPECT_EQ(h.state().log_time_ms(), h.time_ms());
  EXPECT_THAT(h.state().NextOffsets(), ElementsAre(std::make_pair(Queue("T", 2), QueueOffset{4})));
}

TEST(ReplicatedState, AnEntryMustFollowTheLast) {
  StateHarness h;
  h.Apply({});
  ApplyContext context;
  context.index = LogIndex{3};
  context.store_time_ms = h.time_ms();
  EXPECT_DEATH(h.state().FinishEntry(context), "skipped or applied twice");
  context.index = LogIndex{1};
  EXPECT_DEATH(h.state().FinishEntry(context), "skipped or applied twice");
}

TEST(StateCommand, ConcatenatedCommandsDoBothInOrder) {
  StateCommand first = Commit(Key("g", "T", 0), 1);
  first.delays.emplace_back(3, QueueOffset{1});
  StateCommand second = Commit(Key("g", "T", 0), 2, 9);
  second.locks.push_back({Key("g", "T", 1), ClientId("c"), 4});
  second.send_backs.emplace_back(GroupName("g"), PhysicalOffset{8});
  const StateCommand both =
      DecodeStateCommand(EncodeStateCommand(first) + EncodeStateCommand(second)).value();
  ASSERT_EQ(both.offsets.size(), 2u);
  EXPECT_EQ(both.offsets[0].offset, QueueOffset{1});
  EXPECT_EQ(both.offsets[1].offset, QueueOffset{2});
  EXPECT_EQ(both.offsets[1].fence_token, 9u);
  EXPECT_EQ(both.delays.size(), 1u);
  EXPECT_EQ(both.locks.size(), 1u);
  EXPECT_EQ(both.send_backs.size(), 1u);
}

TEST(StateCommand, NamesThatAreNotUtf8AreKept) {
  const StateCommand command = Lock(Key("\xff", "\xfe", 1), "\xc0", 1);
  const StateCommand decoded = DecodeStateCommand(EncodeStateCommand(command)).value();
  EXPECT_EQ(decoded.locks[0].client, ClientId("\xc0"));
  EXPECT_EQ(decoded.locks[0].key, Key("\xff", "\xfe", 1));
}

TEST(StateCommand, GarbageIsCorruption) {
  EXPECT_EQ(DecodeStateCommand("\xff\xff\xff").status().code(), StatusCode::kCorruption);
  EXPECT_EQ(EncodeStateCommand({}), "");
}

}  // namespace
}  // namespace triad::broker
