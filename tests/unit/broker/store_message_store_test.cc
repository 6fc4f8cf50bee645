// MessageStore on a real one-voter node: what is acknowledged is readable, in its place, also after
// restarts, crashes of every derived store, and deletions.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "broker/state/memory_state_store.h"
#include "broker/store/delay_levels.h"
#include "broker/store/message_store.h"
#include "broker/store/unwritten_entries.h"
#include "tests/unit/broker/state_support.h"

namespace triad::broker {
namespace {

namespace stdfs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;

constexpr seconds kPatience{20};

// Waits for what other threads report.
class Signal {
 public:
  void Update(const std::function<void()>& change) {
    {
      const std::lock_guard hold(mutex_);
      change();
    }
    changed_.notify_all();
  }
  bool Await(const std::function<bool()>& predicate) {
    std::unique_lock hold(mutex_);
    return changed_.wait_for(hold, kPatience, predicate);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
};

class MessageStoreTest : public testing::Test {
 protected:
  ~MessageStoreTest() override {
    if (store_ != nullptr) store_->Stop();
  }

  MessageStoreOptions Options() const {
    MessageStoreOptions options;
    options.root_dir = root();
    options.node.group = "RaftNode";
    options.node.self = PeerId("n0");
    options.node.peers = {{PeerId("n0"), "127.0.0.1", 0}};
    options.node.client_address = "127.0.0.1:10911";
    options.node.segment_bytes = 64u << 10;
    options.node.prepare_bytes = 256u << 10;
    options.node.election_min = milliseconds(30);
    options.node.election_max = milliseconds(60);
    options.node.heartbeat = milliseconds(10);
    options.appender.store_host = Host("127.0.0.1:10911");
    options.state_flush_interval = milliseconds(flush_ms_);
    options.queue_checkpoint_interval = milliseconds(flush_ms_);
    return options;
  }
  MessageStore::Listener Listener() {
    return {.on_arrival =
                [this](const TopicQueue& queue, QueueOffset max) {
                  signal_.Update([&] { arrivals_.emplace_back(queue, max); });
                },
            .on_put = {},
            .on_topics_changed = [this] { signal_.Update([&] { ++topics_changed_; }); },
            .on_leader_change =
                [this](const dledger::LeaderInfo& info) {
                  signal_.Update([&] { ready_ = info.ready; });
                }};
  }

  Status TryOpen() {
    ready_ = false;
    Result<std::unique_ptr<MessageStore>> store =
        MessageStore::Open(PosixFileSystem(), SystemClock(), Options(), Listener());
    if (!store.ok()) return store.status();
    store_ = std::move(store.value());
    return Status::Ok();
  }
  void Open() {
    const Status opened = TryOpen();
    ASSERT_TRUE(opened.ok()) << opened;
  }
  void Start() {
    ASSERT_TRUE(store_->Start().ok());
    ASSERT_TRUE(signal_.Await([this] { return ready_; }));
    ASSERT_TRUE(signal_.Await([] { return true; }));
  }
  void Begin() {
    Open();
    Start();
  }
  void Close() {
    store_->Stop();
    store_.reset();
  }

  AppendOutcome Propose(StateCommand command, std::vector<MessageDraft> messages = {}) {
    std::promise<AppendOutcome> promise;
    Proposal proposal;
    proposal.command = std::move(command);
    proposal.messages = std::move(messages);
    proposal.deadline = SystemClock().MonoNow() + kPatience;
    proposal.done = [&](AppendOutcome outcome) { promise.set_value(std::move(outcome)); };
    store_->appender().Submit(std::move(proposal));
    return promise.get_future().get();
  }
  AppendedMessage Send(const std::string& topic, std::int32_t queue, const std::string& body,
                       const std::string& properties = "") {
    MessageDraft draft = Draft(topic, queue, body);
    draft.properties = properties;
    const AppendOutcome outcome = Propose({}, {draft});
    CHECK(outcome.status.ok()) << outcome.status;
    return outcome.messages.at(0);
  }
  void Create(const std::string& topic) {
    StateCommand command;
    command.put_topics.push_back(TopicOf(topic));
    ASSERT_TRUE(Propose(command).status.ok());
  }
  void Delete(const std::string& topic) {
    StateCommand command;
    command.delete_topics.emplace_back(topic);
    ASSERT_TRUE(Propose(command).status.ok());
  }

  // Bodies of a queue, read as a reader thread does.
  std::vector<std::string> Bodies(const TopicQueue& queue) {
    std::vector<std::string> bodies;
    const QueueRange range = store_->RangeOf(queue);
    for (QueueOffset next = range.min; next < range.max;) {
      const auto units = store_->queues().Read(queue, next, 100);
      CHECK(units.ok()) << units.status();
      CHECK(!units.value().empty());
      for (const QueueUnit& unit : units.value()) {
        const auto loaded = store_->ReadMessage(unit);
        CHECK(loaded.ok()) << loaded.status();
        const MessageView message = ParseMessage(loaded.value().record, true).value();
        EXPECT_EQ(message.queue_offset, next);
        EXPECT_EQ(message.physical_offset, unit.position);
        bodies.emplace_back(message.body);
        ++next;
      }
    }
    return bodies;
  }
  // Bodies found by key, as a reader thread finds them.
  std::vector<std::string> ByKey(const std::string& topic, const std::string& key) {
    KeyQuery query;
    query.topic = Topic(topic);
    query.key = key;
    const auto found = store_->FindMessages(query);
    CHECK(found.ok()) << found.status();
    std::vector<std::string> bodies;
    for (const LoadedMessage& message : *found) {
      bodies.emplace_back(ParseMessage(message.record, true).value().body);
    }
    return bodies;
  }
  std::string root() const { return dir_.path() + "/store"; }

  StoreTempDir dir_;
  int flush_ms_ = 3600000;  // never by itself
  std::unique_ptr<MessageStore> store_;
  Signal signal_;
  bool ready_ = false;
  int topics_changed_ = 0;
  std::vector<std::pair<TopicQueue, QueueOffset>> arrivals_;
};

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

// Copies of the directories as they stand at some moment are what a kill leaves behind.
class MessageStoreCrashTest : public MessageStoreTest {
 protected:
  void Save(const std::string& part) {
    stdfs::remove_all(dir_.path() + "/saved-" + part);
    if (!stdfs::exists(root() + "/" + part)) return;
    stdfs::copy(root() + "/" + part, dir_.path() + "/saved-" + part,
                stdfs::copy_options::recursive);
  }
  void Restore(const std::string& part) {
    stdfs::remove_all(root() + "/" + part);
    if (!stdfs::exists(dir_.path() + "/saved-" + part)) return;
    stdfs::copy(dir_.path() + "/saved-" + part, root() + "/" + part,
                stdfs::copy_options::recursive);
  }
  static std::string Keyed(const std::string& key) { return "KEYS\x01" + key + "\x02"; }
  // Messages to two queues, with a deletion in the middle.
  void Work() {
    Create("T");
    Create("U");
    for (int i = 0; i < 20; ++i) {
      Send("T", 0, "t" + std::to_string(i), Keyed("k"));
      Send("U", 1, "u" + std::to_string(i), Keyed("u" + std::to_string(i) + " all"));
      expected_u_.push_back("u" + std::to_string(i));
    }
  }
  void DeleteAndRecreate() {
    Delete("T");
    Create("T");
    for (int i = 0; i < 5; ++i) {
      Send("T", 0, "n" + std::to_string(i), Keyed("k"));
      Send("U", 1, "v" + std::to_string(i), Keyed("v" + std::to_string(i) + " all"));
      expected_u_.push_back("v" + std::to_string(i));
    }
  }
  void ExpectEverything() {
    EXPECT_THAT(Bodies(Queue("T", 0)), ElementsAre("n0", "n1", "n2", "n3", "n4"));
    EXPECT_EQ(Bodies(Queue("U", 1)), expected_u_);
    // The deleted topic's messages are not those of the new one.
    EXPECT_THAT(ByKey("T", "k"), ElementsAre("n0", "n1", "n2", "n3", "n4"));
    EXPECT_EQ(ByKey("U", "all"), expected_u_);
    for (const std::string& body : expected_u_) EXPECT_THAT(ByKey("U", body), ElementsAre(body));
    EXPECT_EQ(Send("T", 0, "next").queue_offset, QueueOffset{5});
    EXPECT_EQ(Send("U", 1, "next").queue_offset,
              QueueOffset{static_cast<std::int64_t>(expected_u_.size())});
  }

  std::vector<std::string> expected_u_;
};

TEST_F(MessageStoreCrashTest, AStateThatWasNeverFlushedIsBuiltFromTheLog) {
  Begin();
  Work();
  DeleteAndRecreate();
  Close();
  stdfs::remove_all(root() + "/state");
  stdfs::remove_all(root() + "/consumequeue");
  Begin();
  ExpectEverything();
}

TEST_F(MessageStoreCrashTest, AnOlderStateAndQueuesCatchUp) {
  Begin();
  Work();
  Close();
  Save("state");
  Save("consumequeue");
  Begin();
  DeleteAndRecreate();
  Close();
  Restore("state");
  Restore("consumequeue");
  Begin();
  ExpectEverything();
}

TEST_F(MessageStoreCrashTest, AnOlderStateCutsNewerQueues) {
  Begin();
  Work();
  Close();
  Save("state");
  Begin();
  DeleteAndRecreate();
  Close();
  Restore("state");  // the queues know of the deletion, the state does not
  Begin();
  ExpectEverything();
}

TEST_F(MessageStoreCrashTest, LostQueuesAreRebuilt) {
  Begin();
  Work();
  DeleteAndRecreate();
  Close();
  stdfs::remove_all(root() + "/consumequeue");
  Open();
  EXPECT_EQ(Bodies(Queue("U", 1)), expected_u_);
  Start();
  ExpectEverything();
}

TEST_F(MessageStoreCrashTest, ALostKeyIndexIsRebuilt) {
  Begin();
  Work();
  DeleteAndRecreate();
  Close();
  stdfs::remove_all(root() + "/keyindex");
  Begin();
  ExpectEverything();
}

TEST_F(MessageStoreCrashTest, ADamagedKeyIndexIsRebuilt) {
  Begin();
  Work();
  Close();
  Begin();
  DeleteAndRecreate();
  Close();
  std::ofstream(root() + "/keyindex/00000000000000000000", std::ios::in | std::ios::binary)
      << "damaged";
  Begin();
  ExpectEverything();
}

TEST_F(MessageStoreCrashTest, AnOlderKeyIndexCatchesUp) {
  Begin();
  Work();
  Close();
  Save("state");
  Save("keyindex");
  Begin();
  DeleteAndRecreate();
  Close();
  Restore("keyindex");
  Begin();
  ExpectEverything();
}

TEST_F(MessageStoreCrashTest, OneLostQueueIsRebuilt) {
  Begin();
  Work();
  DeleteAndRecreate();
  Close();
  stdfs::remove_all(root() + "/consumequeue/U");
  Begin();
  ExpectEverything();
}

TEST_F(MessageStoreCrashTest, AShortQueueIsRebuilt) {
  Begin();
  Work();
  DeleteAndRecreate();
  Close();
  const std::string file = root() + "/consumequeue/U/1/00000000000000000000";
  stdfs::resize_file(file, stdfs::file_size(file) - 30);
  Begin();
  ExpectEverything();
}

TEST_F(MessageStoreCrashTest, FlushesAndCheckpointsByTimeLeaveAConsistentWhole) {
  flush_ms_ = 1;
  Begin();
  Work();
  DeleteAndRecreate();
  // More work until a flush has passed this point.
  const LogIndex here = store_->state().applied_index();
  for (int i = 0; store_->state().flushed_index() < here; ++i) {
    ASSERT_LT(i, 10000);
    Send("U", 1, "w" + std::to_string(i), Keyed("w" + std::to_string(i) + " all"));
    expected_u_.push_back("w" + std::to_string(i));
  }
  Close();
  Begin();
  ExpectEverything();
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
    proposal.deadline = SystemClock().MonoNow() + kPatience;
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
