// MessageStore on a real one-voter node: what is acknowledged is readable, in its place, also after
// restarts, crashes of every derived store, and deletions.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broker/store/delay_levels.h"
#include "broker/store/unwritten_entries.h"
#include "tests/unit/broker/message_store_fixture.h"

namespace triad::broker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;

TEST_F(MessageStoreTest, WhatWasAcknowledgedIsReadableInItsPlace) {
  Begin();
  Create("T");
  const AppendedMessage first = Send("T", 0, "one");
  const AppendedMessage second = Send("T", 0, "two");
  EXPECT_EQ(first.queue_offset, QueueOffset{0});
  EXPECT_EQ(second.queue_offset, QueueOffset{1});
  EXPECT_EQ(store_->RangeOf(Queue("T", 0)).max, QueueOffset{2});
  EXPECT_THAT(Bodies(Queue("T", 0)), ElementsAre("one", "two"));
  const auto units = store_->queues().ReadNow(Queue("T", 0), QueueOffset{1}, 10);
  ASSERT_EQ(units->size(), 1u);
  EXPECT_EQ(units->at(0).position, second.physical_offset);
  const LoadedMessage cached = store_->CachedMessage(units->at(0));
  EXPECT_EQ(ParseMessage(cached.record, true).value().body, "two");
  EXPECT_EQ(ParseMessage(cached.record, true).value().store_time_ms, second.store_time_ms);
}

TEST_F(MessageStoreTest, AQueueNeverWrittenIsEmpty) {
  Begin();
  EXPECT_EQ(store_->RangeOf(Queue("T", 0)).min, QueueOffset{0});
  EXPECT_EQ(store_->RangeOf(Queue("T", 0)).max, QueueOffset{0});
}

TEST_F(MessageStoreTest, ACommandAndItsMessagesAreOneEntry) {
  Begin();
  StateCommand command;
  command.put_topics.push_back(TopicOf("T"));
  command.send_backs.emplace_back(GroupName("g"), PhysicalOffset{5});
  const AppendOutcome outcome = Propose(command, {Draft("T", 0, "first")});
  ASSERT_TRUE(outcome.status.ok());
  EXPECT_THAT(outcome.command.topics_changed, ElementsAre("T"));
  EXPECT_LT(store_->state().FindTopic(Topic("T"))->created_position,
            outcome.messages.at(0).physical_offset);
  EXPECT_TRUE(store_->state().SentBack(GroupName("g"), PhysicalOffset{5}));
  EXPECT_THAT(Bodies(Queue("T", 0)), ElementsAre("first"));
}

TEST_F(MessageStoreTest, ListenersHearOfArrivalsAndTopics) {
  Begin();
  Create("T");
  ASSERT_TRUE(signal_.Await([this] { return topics_changed_ == 1; }));
  StateCommand group;
  group.put_groups.push_back(GroupOf("g"));
  ASSERT_TRUE(Propose(group).status.ok());
  ASSERT_TRUE(signal_.Await([this] { return topics_changed_ == 2; }));
  const AppendOutcome outcome =
      Propose({}, {Draft("T", 1, "a"), Draft("T", 0, "b"), Draft("T", 1, "c")});
  ASSERT_TRUE(outcome.status.ok());
  ASSERT_TRUE(signal_.Await([this] { return arrivals_.size() >= 2; }));
  EXPECT_THAT(arrivals_, ElementsAre(std::make_pair(Queue("T", 0), QueueOffset{1}),
                                     std::make_pair(Queue("T", 1), QueueOffset{2})));
}

TEST_F(MessageStoreTest, TagCodesAreJavasHashAndDeliveryTimesInTheScheduleTopic) {
  Begin();
  Send("T", 0, "x", "TAGS\x01TagA\x02");
  Send("T", 0, "y");
  const AppendedMessage delayed = Send(std::string(kScheduleTopic), 2, "z", "TAGS\x01TagA\x02");
  const auto units = store_->queues().ReadNow(Queue("T", 0), QueueOffset{0}, 2);
  EXPECT_EQ(units->at(0).tag_code, 2598919);
  EXPECT_EQ(units->at(1).tag_code, 0);
  const auto schedule =
      store_->queues().ReadNow(Queue(std::string(kScheduleTopic), 2), QueueOffset{0}, 1);
  EXPECT_EQ(schedule->at(0).tag_code, delayed.store_time_ms + 10000);  // level 3
}

TEST_F(MessageStoreTest, TheFirstLeaderFixesTheDelayLevels) {
  Begin();
  Send("T", 0, "x");  // behind the proposal of the levels
  EXPECT_EQ(store_->state().delay_levels(), kDefaultDelayLevels);
}

TEST_F(MessageStoreTest, MessagesAreFoundByTheirPhysicalOffset) {
  Begin();
  const AppendOutcome outcome =
      Propose({}, {Draft("T", 0, "a"), Draft("T", 0, "b"), Draft("U", 0, "c")});
  const char* const bodies[] = {"a", "b", "c"};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto loaded = store_->ReadMessageAt(outcome.messages.at(i).physical_offset);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ(ParseMessage(loaded.value().record, true).value().body, bodies[i]);
  }
  const PhysicalOffset second = outcome.messages.at(1).physical_offset;
  for (const PhysicalOffset wrong :
       {second + 1, second - 1, PhysicalOffset{-1}, PhysicalOffset{0}, second + (1 << 30)}) {
    EXPECT_EQ(store_->ReadMessageAt(wrong).status().code(), StatusCode::kNotFound) << wrong;
  }
}

TEST_F(MessageStoreTest, AUnitThatPointsElsewhereIsCorruption) {
  Begin();
  Send("T", 0, "one");
  QueueUnit unit = store_->queues().ReadNow(Queue("T", 0), QueueOffset{0}, 1)->at(0);
  const QueueUnit good = unit;
  unit.position += 1;
  EXPECT_EQ(store_->ReadMessage(unit).status().code(), StatusCode::kCorruption);
  EXPECT_TRUE(store_->CachedMessage(unit).record.empty());
  unit = good;
  unit.size_bytes += 1;
  EXPECT_EQ(store_->ReadMessage(unit).status().code(), StatusCode::kCorruption);
  unit.size_bytes = 1 << 20;
  EXPECT_EQ(store_->ReadMessage(unit).status().code(), StatusCode::kCorruption);
  EXPECT_TRUE(store_->ReadMessage(good).ok());
}

// Readers step over what is kNotFound: only retention may make a message so.
TEST_F(MessageStoreTest, AMessageThatThisPeersLogDoesNotHoldYetIsUnavailableAndNotGone) {
  Begin();
  Send("T", 0, "one");
  QueueUnit unit = store_->queues().ReadNow(Queue("T", 0), QueueOffset{0}, 1)->at(0);
  unit.position = store_->node().status().end_position + 4096;
  EXPECT_EQ(store_->ReadMessage(unit).status().code(), StatusCode::kUnavailable);
}

TEST(UnwrittenEntries, AreFoundByAnyOfTheirBytesUntilTheyAreWritten) {
  const auto entry = [](std::int64_t position, std::size_t bytes) {
    auto made = std::make_shared<dledger::Entry>();
    made->position = PhysicalOffset{position};
    made->bytes.assign(bytes, 'x');
    return made;
  };
  UnwrittenEntries entries;
  EXPECT_EQ(entries.FindAt(PhysicalOffset{1000}), nullptr);
  const auto first = entry(1000, 100);
  const auto second = entry(1100, 50);
  entries.Add(first);
  entries.Add(second);
  EXPECT_EQ(entries.FindAt(PhysicalOffset{999}), nullptr);
  EXPECT_EQ(entries.FindAt(PhysicalOffset{1000}), first);
  EXPECT_EQ(entries.FindAt(PhysicalOffset{1099}), first);
  EXPECT_EQ(entries.FindAt(PhysicalOffset{1100}), second);
  EXPECT_EQ(entries.FindAt(PhysicalOffset{1150}), nullptr);
  entries.DropWritten(PhysicalOffset{1149});
  EXPECT_EQ(entries.FindAt(PhysicalOffset{1000}), nullptr);
  EXPECT_EQ(entries.FindAt(PhysicalOffset{1149}), second);
  entries.DropWritten(PhysicalOffset{1150});
  EXPECT_EQ(entries.FindAt(PhysicalOffset{1100}), nullptr);
}

TEST_F(MessageStoreTest, OffsetsAreFoundByTime) {
  Begin();
  EXPECT_EQ(store_->OffsetByTime(Queue("T", 0), 0, false).value(), QueueOffset{0}) << "empty";
  EXPECT_EQ(store_->OffsetByTime(Queue("T", 0), 0, true).value(), QueueOffset{0});
  std::vector<std::int64_t> times;
  while (times.size() < 30 || times.front() == times.back()) {
    times.push_back(Send("T", 0, "x").store_time_ms);
  }
  const auto count = static_cast<std::int64_t>(times.size());
  for (std::int64_t time = times.front() - 1; time <= times.back() + 1; ++time) {
    const auto lower = std::lower_bound(times.begin(), times.end(), time) - times.begin();
    const auto upper = std::upper_bound(times.begin(), times.end(), time) - times.begin();
    EXPECT_EQ(store_->OffsetByTime(Queue("T", 0), time, false).value(), QueueOffset{lower});
    EXPECT_EQ(store_->OffsetByTime(Queue("T", 0), time, true).value(),
              QueueOffset{std::max<std::int64_t>(upper - 1, 0)});
  }
  EXPECT_EQ(store_->OffsetByTime(Queue("T", 0), times.back() + 1, false).value(),
            QueueOffset{count});
}

TEST_F(MessageStoreTest, ARecreatedTopicBeginsAtZero) {
  Begin();
  Create("T");
  Send("T", 0, "old");
  Send("T", 0, "old");
  Delete("T");
  EXPECT_EQ(store_->RangeOf(Queue("T", 0)).max, QueueOffset{0});
  Create("T");
  EXPECT_EQ(Send("T", 0, "new").queue_offset, QueueOffset{0});
  EXPECT_THAT(Bodies(Queue("T", 0)), ElementsAre("new"));
}

TEST_F(MessageStoreTest, ADeletionIsDurableWhenItsFilesAreGone) {
  Begin();
  Create("T");
  Send("T", 0, "x");
  EXPECT_EQ(store_->state().flushed_index(), LogIndex{0});
  Delete("T");
  EXPECT_EQ(store_->state().flushed_index(), store_->state().applied_index());
}

// ---- Restarts -----------------------------------------------------------------------------------

TEST_F(MessageStoreTest, ARestartKeepsEverything) {
  Begin();
  Create("T");
  std::vector<std::string> sent;
  for (int i = 0; i < 200; ++i) {
    sent.push_back(std::to_string(i) + std::string(1000, '.'));  // rolls segments
    Send("T", 0, sent.back());
  }
  Close();
  Open();
  EXPECT_EQ(Bodies(Queue("T", 0)), sent) << "before it starts";
  EXPECT_EQ(store_->state().FindTopic(Topic("T"))->read_queues, 4);
  Start();
  EXPECT_EQ(Send("T", 0, "more").queue_offset, QueueOffset{200});
  sent.emplace_back("more");
  EXPECT_EQ(Bodies(Queue("T", 0)), sent);
}

TEST_F(MessageStoreTest, AStateAheadOfItsLogIsRefused) {
  Begin();
  Send("T", 0, "x");
  Close();
  stdfs::remove_all(root() + "/dledger-n0");
  EXPECT_EQ(TryOpen().code(), StatusCode::kCorruption);
}

TEST_F(MessageStoreTest, StoppingAnswersEverybodyAndIsIdempotent) {
  Begin();
  std::vector<std::future<StatusCode>> answers;
  for (int i = 0; i < 50; ++i) {
    auto promise = std::make_shared<std::promise<StatusCode>>();
    answers.push_back(promise->get_future());
    Proposal proposal;
    proposal.messages.push_back(Draft("T", 0, "x"));
    proposal.deadline = SystemClock().MonoNow() + kStorePatience;
    proposal.done = [promise](AppendOutcome outcome) { promise->set_value(outcome.status.code()); };
    store_->appender().Submit(std::move(proposal));
  }
  store_->Stop();
  store_->Stop();
  std::int64_t acknowledged = 0;
  for (auto& answer : answers) {
    ASSERT_EQ(answer.wait_for(seconds(0)), std::future_status::ready);
    if (answer.get() == StatusCode::kOk) ++acknowledged;
  }
  store_.reset();
  Begin();
  EXPECT_GE(store_->RangeOf(Queue("T", 0)).max.value(), acknowledged);
}

TEST_F(MessageStoreTest, BadDelayLevelsAreRefused) {
  MessageStoreOptions options = Options();
  options.delay_levels = "1s soon";
  EXPECT_EQ(
      MessageStore::Open(PosixFileSystem(), SystemClock(), options, Listener()).status().code(),
      StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace triad::broker
