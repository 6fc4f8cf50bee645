// EntryDispatcher: which entries are refused, and what a deletion inside a batch of entries means.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broker/store/entry_dispatcher.h"
#include "broker/store/message_locator.h"
#include "common/byte_order.h"
#include "tests/unit/broker/image_support.h"
#include "tests/unit/broker/state_support.h"

namespace triad::broker {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class DispatcherTest : public testing::Test {
 protected:
  DispatcherTest()
      : state_(OpenMemoryStateStore(PosixFileSystem(), dir_.path() + "/state").value()),
        queues_(ConsumeQueueStore::Open(PosixFileSystem(), dir_.path() + "/cq", PhysicalOffset{0})
                    .value()),
        keys_(
            KeyIndex::Open(PosixFileSystem(), dir_.path() + "/keys", 0, PhysicalOffset{0}).value()),
        dispatcher_(&state_, queues_.get(), keys_.get(), [this] {
          ++flushes_;
          flushed_at_ = state_.applied_index();
          topic_dir_at_flush_ = PosixFileSystem().Exists(dir_.path() + "/cq/T");
          return may_delete_;
        }) {
    CHECK(state_.Load().ok());
  }

  // A payload at the log's tail: `drafts` get offset after offset in their queues.
  std::string Payload(const StateCommand& command, const std::vector<MessageDraft>& drafts) {
    std::string payload;
    const std::string bytes = EncodeStateCommand(command);
    AppendBe32(&payload, static_cast<std::uint32_t>(bytes.size()));
    payload += bytes;
    payload.resize((payload.size() + 7) / 8 * 8);
    for (const MessageDraft& draft : drafts) {
      StoredPlace place;
      place.queue_offset = next_[{draft.topic, draft.queue_id}];
      ++next_[{draft.topic, draft.queue_id}];
      place.physical_offset = tail_.position +
                              static_cast<std::int64_t>(dledger::kEntryHeaderBytes) +
                              static_cast<std::int64_t>(payload.size());
      place.store_time_ms = 1700000000000;
      place.store_host = Host("10.0.0.1:10911");
      EncodeMessage(draft, place, &payload);
    }
    return payload;
  }
  dledger::EntryRef Entry(std::string payload) {
    return dledger::MakeEntry(Term{1}, dledger::EntryType::kBatch, 1700000000000,
                              std::move(payload), &tail_);
  }

  std::vector<std::pair<TopicQueue, QueueOffset>> Arrivals() {
    std::vector<std::pair<TopicQueue, QueueOffset>> arrivals;
    for (const auto& arrived : dispatcher_.TakeArrivals()) {
      arrivals.emplace_back(arrived.queue, arrived.max);
    }
    return arrivals;
  }

  StoreTempDir dir_;
  ReplicatedState state_;
  std::unique_ptr<ConsumeQueueStore> queues_;
  std::unique_ptr<KeyIndex> keys_;
  int flushes_ = 0;
  LogIndex flushed_at_;
  bool topic_dir_at_flush_ = false;
  bool may_delete_ = true;
  EntryDispatcher dispatcher_;
  dledger::LogTail tail_;
  std::map<TopicQueue, QueueOffset> next_;
};

TEST_F(DispatcherTest, ArrivalsAreOnePerQueueWithTheLastOffset) {
  const auto first = Entry(Payload({}, {Draft("T", 1, "a"), Draft("T", 0, "b")}));
  const auto second = Entry(Payload({}, {Draft("T", 1, "c")}));
  ASSERT_TRUE(dispatcher_.Apply(*first).ok());
  EXPECT_EQ(state_.NextOffset(Queue("T", 1)), QueueOffset{1});
  ASSERT_TRUE(dispatcher_.Apply(*second).ok());
  EXPECT_EQ(state_.NextOffset(Queue("T", 1)), QueueOffset{2});
  EXPECT_THAT(Arrivals(), ElementsAre(std::make_pair(Queue("T", 0), QueueOffset{1}),
                                      std::make_pair(Queue("T", 1), QueueOffset{2})));
  EXPECT_THAT(Arrivals(), IsEmpty());
}

TEST_F(DispatcherTest, OtherEntriesOnlyMoveTheIndex) {
  const auto noop =
      dledger::MakeEntry(Term{1}, dledger::EntryType::kNoop, 1700000000000, "garbage", &tail_);
  ASSERT_TRUE(dispatcher_.Apply(*noop).ok());
  EXPECT_EQ(state_.applied_index(), LogIndex{1});
  EXPECT_EQ(state_.applied_position(), noop->end());
}

TEST_F(DispatcherTest, ADeletionIsFlushedBeforeTheFilesGoAndItsArrivalsAreForgotten) {
  ASSERT_TRUE(
      dispatcher_.Apply(*Entry(Payload({}, {Draft("T", 0, "a"), Draft("U", 0, "b")}))).ok());
  ASSERT_TRUE(queues_->WriteOut().ok());
  StateCommand remove;
  remove.delete_topics.emplace_back("T");
  ASSERT_TRUE(dispatcher_.Apply(*Entry(Payload(remove, {}))).ok());
  EXPECT_EQ(flushes_, 1);
  EXPECT_EQ(flushed_at_, LogIndex{2});
  EXPECT_TRUE(topic_dir_at_flush_);
  EXPECT_FALSE(PosixFileSystem().Exists(dir_.path() + "/cq/T"));
  EXPECT_FALSE(queues_->Range(Queue("T", 0)).has_value());
  EXPECT_THAT(Arrivals(), ElementsAre(std::make_pair(Queue("U", 0), QueueOffset{1})));
}

TEST_F(DispatcherTest, TopicsChangedAlsoWhenOnlyGroupsDo) {
  StateCommand group;
  group.put_groups.push_back(GroupOf("g"));
  EXPECT_TRUE(dispatcher_.Apply(*Entry(Payload(group, {})))->topics_changed);
  StateCommand offsets;
  offsets.offsets.push_back({Key("g", "T", 0), QueueOffset{1}, 0});
  EXPECT_FALSE(dispatcher_.Apply(*Entry(Payload(offsets, {})))->topics_changed);
  StateCommand remove;
  remove.delete_groups.emplace_back("g");
  EXPECT_TRUE(dispatcher_.Apply(*Entry(Payload(remove, {})))->topics_changed);
}

// A peer that takes another's state while it runs (its own had no levels, or others).
TEST_F(DispatcherTest, DueTimesAreByTheLevelsOfTheStateThatIsInForce) {
  const std::string schedule(kScheduleTopic);
  const auto due_in_ms = [&](std::int64_t offset) {
    const auto units = queues_->ReadNow(Queue(schedule, 2), QueueOffset{offset}, 1);
    return units->at(0).tag_code - 1700000000000;
  };
  ASSERT_TRUE(dispatcher_.Apply(*Entry(Payload({}, {Draft(schedule, 2, "before")}))).ok());
  EXPECT_EQ(due_in_ms(0), 10000) << "level 3 of the default";

  StateHarness other;
  StateCommand levels;
  levels.set_delay_levels = "1s 0s 1h";
  other.Apply(levels);
  ASSERT_TRUE(other.Flush().ok());
  const auto image = other.Records();
  ASSERT_TRUE(Install(&state_, {image.begin(), image.end()}).ok());
  ASSERT_TRUE(dispatcher_.Apply(*Entry(Payload({}, {Draft(schedule, 2, "behind")}))).ok());
  EXPECT_EQ(due_in_ms(1), 3600000);
}

TEST_F(DispatcherTest, ReplayTouchesTheDerivedStoresOnly) {
  StateCommand command;
  command.put_topics.push_back(TopicOf("T"));
  const auto entry = Entry(Payload(command, {Draft("T", 0, "a")}));
  ASSERT_TRUE(dispatcher_.Replay(*entry, {}).ok());
  EXPECT_EQ(state_.applied_index(), LogIndex{0});
  EXPECT_FALSE(state_.FindTopic(Topic("T")).has_value());
  EXPECT_EQ(queues_->Range(Queue("T", 0))->max, QueueOffset{1});
  EXPECT_THAT(Arrivals(), IsEmpty());
}

TEST_F(DispatcherTest, AGapInAReplayIsAHoleButCorruptionWhenTheReplayBeganWithTheLog) {
  ASSERT_TRUE(dispatcher_.Replay(*Entry(Payload({}, {Draft("T", 0, "a")})), {}).ok());
  ASSERT_TRUE(queues_->WriteOut().ok());
  ++next_[Queue("T", 0)];
  const auto entry = Entry(Payload({}, {Draft("T", 0, "b")}));
  EXPECT_EQ(dispatcher_.Replay(*entry, {.keys = false, .whole = true}).code(),
            StatusCode::kCorruption);
  ASSERT_TRUE(dispatcher_.Replay(*entry, {}).ok());
  EXPECT_EQ(queues_->Range(Queue("T", 0))->max, QueueOffset{3});
  EXPECT_EQ(queues_->FindHole().value()->begin, QueueOffset{1});
}

TEST_F(DispatcherTest, AQueueThatIsNotThereBeginsWithItsHoleUnlessTheReplayBeganWithTheLog) {
  next_[Queue("T", 0)] = QueueOffset{7};
  ASSERT_TRUE(dispatcher_.Replay(*Entry(Payload({}, {Draft("T", 0, "a")})), {}).ok());
  EXPECT_EQ(queues_->Range(Queue("T", 0))->min, QueueOffset{0});
  next_[Queue("U", 0)] = QueueOffset{7};
  ASSERT_TRUE(dispatcher_.Replay(*Entry(Payload({}, {Draft("U", 0, "a")})), {.whole = true}).ok());
  EXPECT_EQ(queues_->Range(Queue("U", 0))->min, QueueOffset{7});
}

TEST_F(DispatcherTest, FilesOfADeletedTopicStayWhenTheStateCannotBeMadeDurable) {
  ASSERT_TRUE(dispatcher_.Apply(*Entry(Payload({}, {Draft("T", 0, "a")}))).ok());
  ASSERT_TRUE(queues_->WriteOut().ok());
  may_delete_ = false;
  StateCommand command;
  command.delete_topics.emplace_back("T");
  ASSERT_TRUE(dispatcher_.Apply(*Entry(Payload(command, {}))).ok());
  EXPECT_TRUE(queues_->Range(Queue("T", 0)).has_value());
}

TEST_F(DispatcherTest, DamagedPayloadsAreCorruptionAndChangeNothing) {
  StateCommand command;
  command.put_topics.push_back(TopicOf("T"));
  const std::string good = Payload(command, {Draft("T", 0, "a"), Draft("T", 0, "b")});
  const std::size_t records_at = ParsePayload(good).value().records_at;
  struct Case {
    const char* name;
    std::string payload;
  };
  std::vector<Case> cases;
  cases.push_back({"no length", "abc"});
  cases.push_back({"command too long", std::string("\xff\xff\xff\xff") + good.substr(4)});
  std::string bad = good;
  bad[4] = '\xff';
  cases.push_back({"command does not parse", bad});
  bad = good;
  bad[records_at + 4] = 'x';
  cases.push_back({"bad magic", bad});
  bad = good;
  bad[records_at + 35] ^= 1;
  cases.push_back({"another position", bad});
  cases.push_back({"a record is cut", good.substr(0, good.size() - 40)});
  cases.push_back({"garbage behind the records", good + "12345678"});
  cases.push_back({"padding that is not zero", good + "1"});
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    dledger::LogTail tail;
    const auto entry =
        dledger::MakeEntry(Term{1}, dledger::EntryType::kBatch, 1700000000000, c.payload, &tail);
    EXPECT_EQ(dispatcher_.Apply(*entry).status().code(), StatusCode::kCorruption);
    EXPECT_EQ(dispatcher_.Replay(*entry, {}).code(), StatusCode::kCorruption);
    const bool are_records_good = std::string_view(c.name) == "command does not parse";
    const auto units = dispatcher_.UnitsOf(*entry, Queue("T", 0), QueueOffset{0}, QueueOffset{9});
    EXPECT_EQ(units.status().code(), are_records_good ? StatusCode::kOk : StatusCode::kCorruption);
    EXPECT_FALSE(FindMessage(entry, entry->end()).ok());
    EXPECT_EQ(state_.applied_index(), LogIndex{0});
    EXPECT_FALSE(state_.FindTopic(Topic("T")).has_value());
    EXPECT_FALSE(queues_->Range(Queue("T", 0)).has_value());
  }
  EXPECT_TRUE(dispatcher_.Apply(*Entry(good)).ok());
}

// admin.md §8.2: the unique key and each part of KEYS, not for a rolled back transaction.
TEST_F(DispatcherTest, KeysOfMessagesAreRecorded) {
  MessageDraft keyed = Draft("T", 0, "a");
  keyed.properties = "KEYS\x01k1  k2\x02TAGS\x01t\x02UNIQ_KEY\x01U1\x02";
  MessageDraft rolled_back = keyed;
  rolled_back.sys_flag = kSysFlagRollback;
  const auto entry = Entry(Payload({}, {Draft("T", 0, "none"), keyed, rolled_back}));
  const auto found = [&](const std::string& topic, const std::string& key) {
    std::size_t count = 0;
    const std::uint64_t hash = KeyHash(KeyHash(kTopicSeed, topic), key);
    EXPECT_TRUE(keys_->Find(hash, {}, [&](PhysicalOffset) { return ++count < 100; }).ok());
    return count;
  };
  ASSERT_TRUE(dispatcher_.Replay(*entry, {.queues = true, .keys = false}).ok());
  EXPECT_EQ(found("T", "k1"), 0u);
  ASSERT_TRUE(dispatcher_.Replay(*entry, {.queues = false, .keys = true}).ok());
  for (const char* key : {"k1", "k2", "U1"}) EXPECT_EQ(found("T", key), 1u) << key;
  for (const char* key : {"", "t", "k1  k2"}) EXPECT_EQ(found("T", key), 0u) << key;
  EXPECT_EQ(found("U", "k1"), 0u) << "the topic is part of it";
}

}  // namespace
}  // namespace triad::broker
