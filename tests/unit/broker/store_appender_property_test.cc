// The appender and the state against a naive model of a log: any interleaving of proposals, builds,
// commits, lost leaderships and deletions keeps queue offsets dense, proposals whole, and tells
// each waiter the truth.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "broker/store/entry_dispatcher.h"
#include "tests/unit/broker/state_support.h"

namespace triad::broker {
namespace {

using std::chrono::milliseconds;

// A proposal as the test remembers it.
struct Sent {
  std::vector<std::string> bodies;
  std::int64_t commit = -1;  // the offset it commits, -1 = none
  std::optional<AppendOutcome> outcome;
};

class World {
 public:
  explicit World(std::uint64_t seed)
      : random_(seed),
        state_(OpenMemoryStateStore(PosixFileSystem(), dir_.path() + "/state").value()),
        queues_(ConsumeQueueStore::Open(PosixFileSystem(), dir_.path() + "/cq", PhysicalOffset{0})
                    .value()),
        keys_(
            KeyIndex::Open(PosixFileSystem(), dir_.path() + "/keys", 0, PhysicalOffset{0}).value()),
        dispatcher_(&state_, queues_.get(), keys_.get(), [this] { return state_.Flush({}).ok(); }),
        appender_(Options(), clock_) {
    CHECK(state_.Load().ok());
  }

  void Run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) Step();
    if (leading_) Resign();
    Elect();  // its no-op settles every fate
    CheckEnd();
  }

 private:
  static AppenderOptions Options() {
    AppenderOptions options;
    options.store_host = Host("10.0.0.1:10911");
    options.max_entry_bytes = 2000;
    options.max_waiting = 50;
    return options;
  }
  std::uint64_t Pick(std::uint64_t below) { return random_() % below; }

  void Step() {
    const std::uint64_t dice = Pick(100);
    if (!leading_) {
      if (dice < 30) Elect();
      if (dice >= 30 && dice < 50) Foreign();
      if (dice >= 50) Submit();
      return;
    }
    if (dice < 50) Submit();
    if (dice == 50) {
      for (int i = 0; i < 50; ++i) Submit();  // more than may wait
    }
    if (dice > 50 && dice < 75) Build();
    if (dice >= 75 && dice < 93) Commit(1 + Pick(3));
    if (dice == 93) clock_.Advance(milliseconds(Pick(1500)));
    if (dice >= 94 && dice < 97) appender_.ExpireWaiters();
    if (dice >= 97) Resign();
  }

  void Submit() {
    auto sent = std::make_shared<Sent>();
    Proposal proposal;
    const std::uint64_t kind = Pick(20);
    if (kind == 0) proposal.command.delete_topics.emplace_back(TopicName());
    if (kind == 1) proposal.command.put_topics.push_back(TopicOf(TopicName()));
    if (kind >= 2 && kind < 8) {
      sent->commit = static_cast<std::int64_t>(Pick(1000));
      proposal.command.offsets.push_back({Key("g", TopicName(), 0), QueueOffset{sent->commit}, 0});
    }
    const std::uint64_t messages = kind < 2 ? 0 : (kind < 8 ? Pick(2) : 1 + Pick(4));
    for (std::uint64_t i = 0; i < messages; ++i) {
      sent->bodies.push_back(std::to_string(++bodies_) + std::string(Pick(400), '.'));
      proposal.messages.push_back(
          Draft(TopicName(), static_cast<std::int32_t>(Pick(2)), sent->bodies.back()));
    }
    proposal.deadline = clock_.MonoNow() + milliseconds(200 + Pick(1000));
    proposal.done = [sent](AppendOutcome outcome) {
      EXPECT_FALSE(sent->outcome.has_value()) << "answered twice";
      sent->outcome = std::move(outcome);
    };
    sent_.push_back(sent);
    appender_.Submit(std::move(proposal));
  }
  std::string TopicName() { return Pick(2) == 0 ? "T" : "U"; }

  void Build() {
    dledger::BuildContext context;
    context.term = term_;
    context.index = tail_.next_index;
    context.payload_position =
        tail_.position + static_cast<std::int64_t>(dledger::kEntryHeaderBytes);
    context.room_bytes = Pick(4) == 0 ? 600 : 5000;
    context.store_time_ms = ++time_ms_;
    std::string payload;
    const dledger::BuildResult result = appender_.Build(context, &payload);
    if (result != dledger::BuildResult::kBuilt) {
      EXPECT_TRUE(payload.empty());
      return;
    }
    EXPECT_LE(payload.size(), context.room_bytes);
    log_.push_back(dledger::MakeEntry(term_, dledger::EntryType::kBatch, time_ms_,
                                      std::move(payload), &tail_));
  }

  // The first `count` entries in flight are committed and applied.
  void Commit(std::uint64_t count) {
    for (; count > 0 && applied_ < log_.size(); --count) {
      const dledger::EntryRef entry = log_[applied_++];
      const auto outcome = dispatcher_.Apply(*entry);
      ASSERT_TRUE(outcome.ok()) << outcome.status();
      appender_.OnApplied(entry->index, entry->term, outcome.value().command);
      Model(*entry);
    }
  }

  // Loses the leadership; a part of what is in flight survives in the new leader's log.
  void Resign() {
    leading_ = false;
    appender_.CloseTerm();
    const std::size_t kept = applied_ + Pick(log_.size() - applied_ + 1);
    log_.resize(kept);
    tail_ = kept == 0 ? dledger::LogTail{} : dledger::TailAfter(*log_.back());
  }

  // An entry of another leader: this peer only follows.
  void Foreign() {
    ++term_;
    AppendAndCommit(dledger::EntryType::kNoop, {});
  }

  void Elect() {
    ++term_;
    AppendAndCommit(dledger::EntryType::kNoop, {});
    appender_.OpenTerm(term_, state_.NextOffsets());
    leading_ = true;
  }

  void AppendAndCommit(dledger::EntryType type, std::string payload) {
    log_.push_back(dledger::MakeEntry(term_, type, ++time_ms_, std::move(payload), &tail_));
    Commit(log_.size() - applied_);
  }

  // What a reader of the committed log sees.
  void Model(const dledger::Entry& entry) {
    if (entry.type != dledger::EntryType::kBatch) return;
    const PayloadView payload = ParsePayload(entry.payload()).value();
    const StateCommand command = DecodeStateCommand(payload.command).value();
    for (const TopicConfig& topic : command.put_topics) topics_.insert(topic.name);
    for (const Topic& topic : command.delete_topics) {
      topics_.erase(topic);
      std::erase_if(model_, [&](const auto& queue) { return queue.first.topic == topic; });
      model_offsets_.erase(topic.value());
    }
    for (const OffsetCommit& commit : command.offsets) {
      if (topics_.contains(commit.key.queue.topic)) {
        model_offsets_[commit.key.queue.topic.value()] = commit.offset.value();
      }
      committed_offsets_.insert(commit.offset.value());
    }
    for (const MessageView& message : RecordsOf(entry.payload())) {
      auto& queue = model_[Queue(std::string(message.topic), message.queue_id)];
      EXPECT_EQ(message.queue_offset.value(), static_cast<std::int64_t>(queue.size())) << "dense";
      queue.emplace_back(message.body);
      positions_[std::string(message.body)] = message.physical_offset;
      entry_of_[std::string(message.body)] = entry.index;
    }
  }

  void CheckEnd() {
    for (const auto& [queue, bodies] : model_) {
      EXPECT_EQ(state_.NextOffset(queue).value(), static_cast<std::int64_t>(bodies.size()));
      EXPECT_EQ(queues_->Range(queue)->max.value(), static_cast<std::int64_t>(bodies.size()));
    }
    for (const auto& [topic, offset] : model_offsets_) {
      EXPECT_EQ(state_.FindOffset(Key("g", topic, 0)), QueueOffset{offset});
    }
    for (const auto& sent : sent_) {
      ASSERT_TRUE(sent->outcome.has_value()) << "never answered";
      CheckFate(*sent);
    }
    EXPECT_EQ(appender_.waiting(), 0u);
  }

  void CheckFate(const Sent& sent) {
    const StatusCode code = sent.outcome->status.code();
    std::set<LogIndex> entries;
    std::size_t present = 0;
    for (const std::string& body : sent.bodies) {
      if (!entry_of_.contains(body)) continue;
      ++present;
      entries.insert(entry_of_[body]);
    }
    EXPECT_TRUE(present == 0 || present == sent.bodies.size()) << "a part of a proposal";
    EXPECT_LE(entries.size(), 1u) << "split over entries";
    if (code == StatusCode::kOk) {
      EXPECT_EQ(present, sent.bodies.size()) << "acknowledged and lost";
      ASSERT_EQ(sent.outcome->messages.size(), sent.bodies.size());
      for (std::size_t i = 0; i < sent.bodies.size(); ++i) {
        EXPECT_EQ(sent.outcome->messages[i].physical_offset, positions_[sent.bodies[i]]);
      }
      if (sent.commit >= 0) {
        EXPECT_TRUE(committed_offsets_.contains(sent.commit));
        ASSERT_EQ(sent.outcome->command.offsets.size(), 1u);
        EXPECT_NE(sent.outcome->command.offsets[0], ReplicatedState::CommitFate::kStale);
      }
    } else if (code != StatusCode::kTimedOut) {
      EXPECT_EQ(present, 0u) << "refused and stored: " << sent.outcome->status;
    }
    ++fates_[code];
  }

 public:
  std::map<StatusCode, int> fates_;

 private:
  StoreTempDir dir_;
  ManualClock clock_;
  std::mt19937_64 random_;
  ReplicatedState state_;
  std::unique_ptr<ConsumeQueueStore> queues_;
  std::unique_ptr<KeyIndex> keys_;
  EntryDispatcher dispatcher_;
  Appender appender_;

  Term term_;
  bool leading_ = false;
  dledger::LogTail tail_;
  std::vector<dledger::EntryRef> log_;
  std::size_t applied_ = 0;
  std::int64_t time_ms_ = 1700000000000;
  std::uint64_t bodies_ = 0;
  std::vector<std::shared_ptr<Sent>> sent_;

  std::map<TopicQueue, std::vector<std::string>> model_;
  std::set<Topic> topics_;
  std::map<std::string, std::int64_t> model_offsets_;
  std::set<std::int64_t> committed_offsets_;
  std::map<std::string, PhysicalOffset> positions_;
  std::map<std::string, LogIndex> entry_of_;
};

TEST(AppenderProperty, TheLogDecidesEveryFate) {
  const std::uint64_t base = std::random_device{}();
  std::map<StatusCode, int> fates;
  for (std::uint64_t seed = base; seed < base + 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world(seed);
    world.Run(600);
    if (HasFailure()) return;
    for (const auto& [code, count] : world.fates_) fates[code] += count;
  }
  // The generator reaches every fate; else it proves little.
  for (const StatusCode code : {StatusCode::kOk, StatusCode::kNotLeader, StatusCode::kTimedOut,
                                StatusCode::kUnavailable, StatusCode::kBusy}) {
    EXPECT_GT(fates[code], 0) << StatusCodeName(code) << ", from seed " << base;
  }
}

}  // namespace
}  // namespace triad::broker
