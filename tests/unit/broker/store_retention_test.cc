// Retention and received states as the broker's store sees them, on a real one-voter node.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <future>

#include "broker/store/message_store.h"
#include "tests/unit/broker/state_support.h"
#include "tests/unit/broker/store_support.h"

namespace triad::broker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kPatience{20};

class StoreRetention : public testing::Test {
 protected:
  ~StoreRetention() override {
    if (store_ != nullptr) store_->Stop();
  }

  void Begin() {
    MessageStoreOptions options;
    options.root_dir = dir_.path() + "/store";
    options.node.group = "RaftNode";
    options.node.self = PeerId("n0");
    options.node.peers = {{PeerId("n0"), "127.0.0.1", 0}};
    options.node.client_address = "127.0.0.1:10911";
    options.node.segment_bytes = 64u << 10;
    options.node.prepare_bytes = 128u << 10;
    options.node.cache_bytes = 64u << 10;
    options.node.election_min = milliseconds(30);
    options.node.election_max = milliseconds(60);
    options.node.heartbeat = milliseconds(10);
    options.node.retention = Rules(forced_);
    options.appender.store_host = Host("127.0.0.1:10911");
    options.state_flush_interval = milliseconds(10);
    options.queue_checkpoint_interval = milliseconds(10);
    auto opened = MessageStore::Open(PosixFileSystem(), SystemClock(), options, {});
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = std::move(opened.value());
    ASSERT_TRUE(store_->Start().ok());
  }
  static dledger::RetentionOptions Rules(bool forced) {
    dledger::RetentionOptions rules;
    rules.forced_percent = forced ? 1 : 0;
    rules.free_floor_bytes = ~std::uint64_t{0};
    rules.interval = milliseconds(10);
    return rules;
  }
  void Close() {
    store_->Stop();
    store_.reset();
  }
  AppendedMessage Send(const std::string& topic, std::int32_t queue, std::size_t bytes) {
    const TimePoint deadline = SystemClock().MonoNow() + kPatience;
    while (true) {
      std::promise<AppendOutcome> promise;
      Proposal proposal;
      proposal.messages = {Draft(topic, queue, std::string(bytes, 'm'))};
      proposal.deadline = deadline;
      proposal.done = [&](AppendOutcome outcome) { promise.set_value(std::move(outcome)); };
      store_->appender().Submit(std::move(proposal));
      AppendOutcome outcome = promise.get_future().get();
      if (outcome.status.ok()) return outcome.messages.at(0);
      CHECK(SystemClock().MonoNow() < deadline) << outcome.status;  // it does not lead yet
    }
  }
  // Sends until `done`.
  bool SendUntil(const std::string& topic, std::int32_t queue, const std::function<bool()>& done) {
    const TimePoint deadline = SystemClock().MonoNow() + kPatience;
    while (!done()) {
      if (SystemClock().MonoNow() > deadline) return false;
      Send(topic, queue, 3000);
    }
    return true;
  }
  QueueRange RangeOf(const std::string& topic, std::int32_t queue) {
    return store_->RangeOf(Queue(topic, queue));
  }
  // Every offset of the range can be read.
  void ExpectReadable(const std::string& topic, std::int32_t queue) {
    const QueueRange range = RangeOf(topic, queue);
    for (QueueOffset next = range.min; next < range.max;) {
      const auto units = store_->queues().Read(Queue(topic, queue), next, 32);
      ASSERT_TRUE(units.ok()) << units.status();
      if (units.value().empty()) {  // retention went on meanwhile
        next = std::max(next, RangeOf(topic, queue).min);
        continue;
      }
      for (const QueueUnit& unit : units.value()) {
        const auto loaded = store_->ReadMessage(unit);
        if (loaded.ok()) {
          EXPECT_EQ(ParseMessage(loaded->record, true).value().queue_offset, next);
        } else {
          EXPECT_EQ(loaded.status().code(), StatusCode::kNotFound) << loaded.status();
          EXPECT_LT(unit.position, store_->node().status().begin_position);
        }
        ++next;
      }
    }
  }

  StoreTempDir dir_;
  bool forced_ = true;
  std::unique_ptr<MessageStore> store_;
};

TEST_F(StoreRetention, OtherRulesAreInForceWhileTheNodeRuns) {
  forced_ = false;
  Begin();
  Send("Old", 0, 100);
  for (int i = 0; i < 100; ++i) Send("New", 0, 3000);  // some segments
  ASSERT_EQ(RangeOf("Old", 0).min, QueueOffset(0));
  store_->node().SetRetention(Rules(true));
  ASSERT_TRUE(SendUntil("New", 0, [&] { return RangeOf("Old", 0).min == QueueOffset(1); }));
}

TEST_F(StoreRetention, TheMinimumOffsetFollowsTheLogAndAnExpiredQueueKeepsItsPlace) {
  Begin();
  const AppendedMessage first = Send("Old", 0, 100);
  Send("Old", 0, 100);
  ASSERT_TRUE(SendUntil("New", 0, [&] {
    return RangeOf("New", 0).min > QueueOffset(20) && RangeOf("Old", 0).min == QueueOffset(2);
  }));
  EXPECT_EQ(RangeOf("Old", 0).max, QueueOffset(2));
  EXPECT_EQ(store_->ReadMessageAt(first.physical_offset).status().code(), StatusCode::kNotFound);
  ExpectReadable("New", 0);

  Close();
  forced_ = false;  // the ranges stand still
  Begin();
  EXPECT_EQ(RangeOf("Old", 0).min, QueueOffset(2));
  EXPECT_EQ(RangeOf("Old", 0).max, QueueOffset(2));
  EXPECT_GT(RangeOf("New", 0).min, QueueOffset(20));
  ExpectReadable("New", 0);
  EXPECT_EQ(Send("Old", 0, 100).queue_offset, QueueOffset(2));
  ExpectReadable("Old", 0);
}

TEST_F(StoreRetention, QueuesAreRebuiltFromWhatTheLogStillHolds) {
  Begin();
  Send("Old", 0, 100);
  Send("Old", 0, 100);
  ASSERT_TRUE(SendUntil("New", 0, [&] { return RangeOf("Old", 0).min == QueueOffset(2); }));
  Close();
  forced_ = false;
  std::filesystem::remove_all(dir_.path() + "/store/consumequeue");
  Begin();
  EXPECT_EQ(RangeOf("Old", 0).min, QueueOffset(2));
  EXPECT_EQ(RangeOf("Old", 0).max, QueueOffset(2));
  ExpectReadable("New", 0);
  const QueueRange rebuilt = RangeOf("New", 0);
  Close();
  // The rebuilt ones are trusted from now on: nothing is found to be missing.
  const auto written = std::filesystem::last_write_time(dir_.path() + "/store/consumequeue/Old/0");
  Begin();
  EXPECT_EQ(std::filesystem::last_write_time(dir_.path() + "/store/consumequeue/Old/0"), written);
  EXPECT_EQ(RangeOf("New", 0).min, rebuilt.min);
  EXPECT_EQ(RangeOf("New", 0).max, rebuilt.max);
  EXPECT_EQ(Send("Old", 0, 100).queue_offset, QueueOffset(2));
}

}  // namespace
}  // namespace triad::broker
