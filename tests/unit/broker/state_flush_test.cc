// The replicated state and its store: flush, crash, load, gaps, determinism.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "broker/state/state_keys.h"
#include "tests/unit/broker/state_support.h"

namespace triad::broker {
namespace {

struct FlushImplementation {
  const char* name;
  StateHarness::Opener open;
};

// A command of many kinds, small ranges so that things meet.
StateCommand RandomCommand(std::mt19937_64& random, std::uint64_t next_token) {
  const auto pick = [&](std::uint64_t below) { return random() % below; };
  const auto name = [&](const char* prefix) { return prefix + std::to_string(pick(3)); };
  const auto key = [&] { return Key(name("g"), name("T"), static_cast<std::int32_t>(pick(2))); };
  StateCommand command;
  switch (pick(9)) {
    case 0:
      command.put_topics.push_back(TopicOf(name("T"), static_cast<std::int32_t>(1 + pick(4))));
      if (pick(2) == 0)
        command.put_topics.insert(command.put_topics.begin(), TopicOf(name("%DLQ%g")));
      command.create_only = pick(2) == 0;
      if (pick(2) == 0)
        command.put_topics.back().attributes["dedup"] = pick(3) == 0 ? "keys" : "uniqKey";
      break;
    case 1: command.delete_topics.emplace_back(name("T")); break;
    case 2:
      command.put_groups.push_back(GroupOf(name("g")));
      command.put_groups.back().retry_max_times = static_cast<std::int32_t>(pick(3));
      break;
    case 3:
      command.delete_groups.emplace_back(name("g"));
      command.clean_offsets = pick(2) == 0;
      break;
    case 4:
      command.locks.push_back({key(), ClientId(pick(3) == 0 ? "" : "c"), 1 + pick(next_token)});
      break;
    case 5:
      command.delays.emplace_back(static_cast<std::int32_t>(1 + pick(3)),
                                  QueueOffset{static_cast<std::int64_t>(pick(100))});
      break;
    case 7:
      command.dlq_marks.push_back({GroupName(name("g")), QueueId{0},
                                   QueueOffset{static_cast<std::int64_t>(pick(20))},
                                   QueueOffset{static_cast<std::int64_t>(pick(3))}});
      break;
    case 6:
      command.send_backs.emplace_back(GroupName(name("g")),
                                      PhysicalOffset{static_cast<std::int64_t>(pick(5))});
      break;
    default:
      command.offsets.push_back(
          {key(), QueueOffset{static_cast<std::int64_t>(pick(50))}, pick(next_token)});
  }
  return command;
}

// One entry of the random log: a command, and sometimes a message.
void ApplyRandom(std::mt19937_64& random, StateHarness* h) {
  h->Pass(static_cast<std::int64_t>(random() % 100000));
  h->Apply(RandomCommand(random, h->state().next_fence_token()));
  if (random() % 2 == 0) {
    const TopicQueue queue =
        Queue("T" + std::to_string(random() % 3), static_cast<std::int32_t>(random() % 2));
    if (h->state().DedupModeOf(queue.topic.value()) != DedupMode::kNone) {
      h->state().NoteKey(
          queue.topic.value(), "k" + std::to_string(random() % 4),
          {queue.queue_id, h->state().NextOffset(queue), h->next_position(), h->time_ms()});
    }
    h->Message(queue, h->state().NextOffset(queue).value() + 1);
  }
}

class StateFlush : public testing::TestWithParam<FlushImplementation> {
 protected:
  StateHarness h_{GetParam().open};
};

TEST_P(StateFlush, WhatWasFlushedIsThereAfterACrashAndNothingElse) {
  StateCommand command;
  command.put_topics.push_back(TopicOf("T"));
  command.put_groups.push_back(GroupOf("g"));
  command.offsets.push_back({Key("g", "T", 1), QueueOffset{5}, 2});
  command.locks.push_back({Key("g", "T", 0), ClientId("c"), 3});
  command.delays.emplace_back(2, QueueOffset{8});
  command.send_backs.emplace_back(GroupName("g"), PhysicalOffset{77});
  command.set_delay_levels = "1s";
  command.put_settings = {{"traceOn", "false"}};
  h_.Apply(command);
  h_.Message(Queue("T", 1), 10);
  EXPECT_TRUE(h_.state().dirty());
  ASSERT_TRUE(h_.state().Flush({{"mine", "12 34"}}).ok());
  EXPECT_FALSE(h_.state().dirty());
  EXPECT_EQ(h_.state().flushed_index(), LogIndex{2});

  StateCommand later;
  later.offsets.push_back({Key("g", "T", 1), QueueOffset{6}, 0});
  later.delete_topics.emplace_back("U");
  later.put_settings = {{"traceOn", "true"}, {"brokerPermission", "4"}};
  h_.Apply(later);
  EXPECT_EQ(h_.state().flushed_index(), LogIndex{2});
  ASSERT_TRUE(h_.Reopen().ok());

  ReplicatedState& state = h_.state();
  EXPECT_EQ(state.applied_index(), LogIndex{2});
  EXPECT_EQ(state.flushed_index(), LogIndex{2});
  EXPECT_EQ(state.applied_position(), PhysicalOffset{200});
  EXPECT_EQ(state.log_time_ms(), h_.time_ms());
  EXPECT_FALSE(state.dirty());
  EXPECT_EQ(state.data_version().counter, 1);
  EXPECT_EQ(state.FindTopic(Topic("T"))->read_queues, 4);
  EXPECT_TRUE(state.FindGroup(GroupName("g")).has_value());
  EXPECT_EQ(state.FindOffset(Key("g", "T", 1)), QueueOffset{5});
  ASSERT_EQ(state.Locks().size(), 1u);
  EXPECT_EQ(state.Locks()[0].client, ClientId("c"));
  EXPECT_EQ(state.next_fence_token(), 4u);
  EXPECT_EQ(state.DelayProgress(2), QueueOffset{8});
  EXPECT_TRUE(state.SentBack(GroupName("g"), PhysicalOffset{77}));
  EXPECT_EQ(state.delay_levels(), "1s");
  EXPECT_EQ(state.settings(), (Settings{{"traceOn", "false"}}));
  EXPECT_EQ(state.NextOffset(Queue("T", 1)), QueueOffset{10});
  EXPECT_EQ(state.LoadedExtra("mine"), "12 34");
  EXPECT_FALSE(state.LoadedExtra("other").has_value());
}

TEST_P(StateFlush, DeletionsReachTheStore) {
  StateCommand command;
  command.put_topics.push_back(TopicOf("T"));
  command.put_groups.push_back(GroupOf("g"));
  command.offsets.push_back({Key("g", "T", 1), QueueOffset{5}, 0});
  command.locks.push_back({Key("g", "T", 0), ClientId("c"), 3});
  command.send_backs.emplace_back(GroupName("g"), PhysicalOffset{77});
  h_.Apply(command);
  h_.Message(Queue("T", 1), 10);
  ASSERT_TRUE(h_.Flush().ok());
  StateCommand remove;
  remove.delete_topics.emplace_back("T");
  remove.delete_groups.emplace_back("g");
  h_.Pass(600000);
  h_.Apply(remove);
  ASSERT_TRUE(h_.Flush().ok());
  ASSERT_TRUE(h_.Reopen().ok());
  EXPECT_TRUE(h_.state().Topics().empty());
  EXPECT_TRUE(h_.state().Groups().empty());
  EXPECT_FALSE(h_.state().FindOffset(Key("g", "T", 1)).has_value());
  EXPECT_TRUE(h_.state().Locks().empty());
  EXPECT_TRUE(h_.state().NextOffsets().empty());
  EXPECT_FALSE(h_.state().SentBack(GroupName("g"), PhysicalOffset{77}));
}

TEST_P(StateFlush, EqualLogsGiveEqualRecordsWheneverTheyWereFlushed) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  StateHarness other(GetParam().open);
  std::mt19937_64 random(seed);
  std::mt19937_64 again(seed);
  std::mt19937_64 flushes(seed + 1);
  for (int i = 0; i < 300; ++i) {
    ApplyRandom(random, &h_);
    ApplyRandom(again, &other);
    if (flushes() % 10 == 0) {
      ASSERT_TRUE(h_.Flush().ok());
    }
    if (flushes() % 40 == 0) {
      ASSERT_TRUE(other.Flush().ok());
    }
    if (flushes() % 100 == 0) {  // a stop and a start change nothing
      ASSERT_TRUE(h_.Flush().ok());
      ASSERT_TRUE(h_.Reopen().ok());
    }
  }
  ASSERT_TRUE(h_.Flush().ok());
  ASSERT_TRUE(other.Flush().ok());
  auto records = h_.Records();
  auto expected = other.Records();
  for (auto* all : {&records, &expected}) {  // they count flushes, not entries
    std::erase_if(*all, [](const auto& r) { return r.first.starts_with(kFlushPrefix); });
    all->erase(std::string(kAppliedKey));
  }
  EXPECT_EQ(records, expected);
  EXPECT_FALSE(records.empty());
}

TEST_P(StateFlush, ReplayAfterACrashGivesTheSameState) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  StateHarness whole(GetParam().open);
  std::vector<std::pair<std::int64_t, StateCommand>> log;  // time passed, command
  std::mt19937_64 random(seed);
  for (int i = 0; i < 200; ++i) {
    const auto passed = static_cast<std::int64_t>(random() % 100000);
    whole.Pass(passed);
    log.emplace_back(passed, RandomCommand(random, whole.state().next_fence_token()));
    whole.Apply(log.back().second);
  }
  std::size_t next = 0;
  std::int64_t flushed_time = h_.time_ms();
  while (next < log.size()) {
    h_.Pass(log[next].first);
    h_.Apply(log[next].second);
    ++next;
    if (random() % 20 == 0) {
      ASSERT_TRUE(h_.Flush().ok());
      flushed_time = h_.time_ms();
    }
    if (random() % 30 == 0) {
      h_.Pass(flushed_time - h_.time_ms());
      ASSERT_TRUE(h_.Reopen().ok());
      next = static_cast<std::size_t>(h_.state().applied_index().value());
    }
  }
  EXPECT_EQ(h_.state().Topics(), whole.state().Topics());
  EXPECT_EQ(h_.state().Groups(), whole.state().Groups());
  EXPECT_EQ(h_.state().data_version().counter, whole.state().data_version().counter);
  EXPECT_EQ(h_.state().next_fence_token(), whole.state().next_fence_token());
  for (const char* group : {"g0", "g1", "g2"}) {
    EXPECT_EQ(h_.state().OffsetsOf(GroupName(group)), whole.state().OffsetsOf(GroupName(group)));
    for (std::int64_t offset = 0; offset < 5; ++offset) {
      EXPECT_EQ(h_.state().SentBack(GroupName(group), PhysicalOffset{offset}),
                whole.state().SentBack(GroupName(group), PhysicalOffset{offset}));
    }
  }
  ASSERT_EQ(h_.state().Locks().size(), whole.state().Locks().size());
}

TEST_P(StateFlush, AMissingFlushIsCorruption) {
  for (int i = 0; i < 5; ++i) {
    h_.Apply({});
    ASSERT_TRUE(h_.Flush().ok());
  }
  const auto before = h_.Records();
  for (int missing = 1; missing <= 5; ++missing) {
    const std::string key = FlushKey(static_cast<std::uint64_t>(missing));
    ASSERT_TRUE(before.contains(key));
    {
      const auto store = GetParam().open(h_.path()).value();
      ASSERT_TRUE(store->Write({.puts = {}, .deletes = {key}}).ok());
    }
    EXPECT_EQ(h_.Reopen().code(), StatusCode::kCorruption) << missing;
    h_.Records();  // lets go of the store
    const auto store = GetParam().open(h_.path()).value();
    ASSERT_TRUE(store->Write({.puts = {{key, ""}}, .deletes = {}}).ok());
  }
  EXPECT_TRUE(h_.Reopen().ok());
}

TEST_P(StateFlush, RecordsThatDoNotParseAreCorruption) {
  StateCommand command;
  command.put_topics.push_back(TopicOf("T"));
  command.offsets.push_back({Key("g", "T", 1), QueueOffset{5}, 0});
  h_.Apply(command);
  ASSERT_TRUE(h_.Flush().ok());
  const auto good = h_.Records();
  const std::pair<std::string, std::string> bad[] = {
      {TopicKey(Topic("T")), "\xff\xff"},
      {OffsetKey(Key("g", "T", 1)), "\xff"},
      {std::string(kAppliedKey), "\xff\xff"},
      {"?unknown", "12345678"},
      {"N", "12345678"},
      {NextOffsetKey(Queue("T", 0)), "short"},
      {"O\x01", ""},
      {OffsetKey(Key("g", "T", 2)) + "?", ""},
      {GroupKey(GroupName("g")), "\xff\xff"},
      {LockKey(Key("g", "T", 1)), "\xff"},
      {"L\x01", ""},
      {DlqKey(GroupName("g"), QueueId{0}), "\xff"},
      {"Q\x01", ""},
      {DedupKey("T", "key"), "\xff"},
      {"U\x01", ""},
      {"D\x01", "12345678"},
      {"S\x01", "12345678"},
      {std::string(kFlushPrefix) + "x", ""},
  };
  for (const auto& [key, value] : bad) {
    {
      const auto store = GetParam().open(h_.path()).value();
      ASSERT_TRUE(store->Write({.puts = {{key, value}}, .deletes = {}}).ok());
    }
    EXPECT_EQ(h_.Reopen().code(), StatusCode::kCorruption) << key;
    h_.Records();
    StateBatch repair;
    if (good.contains(key)) {
      repair.puts.emplace_back(key, good.at(key));
    } else {
      repair.deletes.push_back(key);
    }
    const auto store = GetParam().open(h_.path()).value();
    ASSERT_TRUE(store->Write(repair).ok());
  }
  EXPECT_TRUE(h_.Reopen().ok());
}

TEST_P(StateFlush, RecordsWithoutAnAppliedRecordAreCorruption) {
  h_.Records();
  {
    const auto store = GetParam().open(h_.path()).value();
    ASSERT_TRUE(store->Write({.puts = {{GroupKey(GroupName("g")), ""}}, .deletes = {}}).ok());
  }
  EXPECT_EQ(h_.Reopen().code(), StatusCode::kCorruption);
}

INSTANTIATE_TEST_SUITE_P(All, StateFlush,
                         testing::Values(FlushImplementation{"LevelDb", OpenLevelDbStateStore},
                                         FlushImplementation{"Memory", OpenMemory}),
                         [](const auto& which) { return std::string(which.param.name); });

// A store in memory that counts what it is asked.
class CountingStore final : public StateStore {
 public:
  explicit CountingStore(std::vector<StateBatch>* batches) : batches_(batches) {}
  Status ForEach(const std::function<void(std::string_view, std::string_view)>&) override {
    return Status::Ok();
  }
  Result<std::unique_ptr<StateRecords>> NewImage() override {
    return Status::Unsupported("it only counts");
  }
  Status Write(const StateBatch& batch) override {
    batches_->push_back(batch);
    return Status::Ok();
  }

 private:
  std::vector<StateBatch>* const batches_;
};

TEST(StateFlushBatch, IsOneAndHoldsOnlyWhatChanged) {
  std::vector<StateBatch> batches;
  ReplicatedState state(std::make_unique<CountingStore>(&batches));
  ASSERT_TRUE(state.Load().ok());
  StateCommand command;
  for (int i = 0; i < 100; ++i) command.put_topics.push_back(TopicOf("T" + std::to_string(i)));
  ApplyContext context;
  context.index = LogIndex{1};
  state.Apply(command, context);
  state.FinishEntry(context);
  ASSERT_TRUE(state.Flush({}).ok());
  ASSERT_EQ(batches.size(), 1u);
  EXPECT_EQ(batches[0].puts.size(), 102u);  // with the applied and the flush record

  context.index = LogIndex{2};
  state.NoteMessage(Queue("T1", 0), QueueOffset{1});
  state.FinishEntry(context);
  context.index = LogIndex{3};
  state.NoteMessage(Queue("T1", 0), QueueOffset{2});
  state.FinishEntry(context);
  ASSERT_TRUE(state.Flush({{"x", "y"}}).ok());
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_EQ(batches[1].puts.size(), 4u);
}

TEST(StateFlushBatch, OldFlushRecordsAreRemoved) {
  std::vector<StateBatch> batches;
  ReplicatedState state(std::make_unique<CountingStore>(&batches));
  ASSERT_TRUE(state.Load().ok());
  constexpr std::uint64_t kKept = 8192;
  for (std::uint64_t i = 1; i <= kKept + 2; ++i) {
    ApplyContext context;
    context.index = LogIndex{i};
    state.FinishEntry(context);
    ASSERT_TRUE(state.Flush({}).ok());
  }
  EXPECT_TRUE(batches[kKept - 1].deletes.empty());
  EXPECT_THAT(batches[kKept].deletes, testing::ElementsAre(FlushKey(1)));
  EXPECT_THAT(batches[kKept + 1].deletes, testing::ElementsAre(FlushKey(2)));
}

}  // namespace
}  // namespace triad::broker
