// Consume queues and the state's journal on a disk that dies: what is in front of a checkpoint
// survives every kind of crash, the rest is cut and comes back by replay.

#include <gtest/gtest.h>

#include <random>

#include "broker/state/memory_state_store.h"
#include "broker/store/consume_queue_store.h"
#include "tests/sim/sim_file_system.h"
#include "tests/unit/broker/store_support.h"

namespace triad::broker {
namespace {

using sim::CrashMode;

// Message n of the log stands at n * 50 in queue n % kQueues.
constexpr std::int64_t kQueues = 3;
constexpr std::int64_t kBytes = 50;

QueueUnit UnitAt(std::int64_t message) {
  return {PhysicalOffset{message * kBytes}, static_cast<std::int32_t>(kBytes), message};
}

void AppendMessage(ConsumeQueueStore& store, std::int64_t message) {
  store.Append(Queue("T", static_cast<std::int32_t>(message % kQueues)),
               QueueOffset{message / kQueues}, UnitAt(message));
}

void ExpectMessages(const ConsumeQueueStore& store, std::int64_t end) {
  for (std::int32_t queue = 0; queue < kQueues; ++queue) {
    const std::int64_t count = (end - queue + kQueues - 1) / kQueues;
    const auto range = store.Range(Queue("T", queue));
    if (count <= 0) {  // nothing, or an empty file that a crash left
      ASSERT_TRUE(!range.has_value() || range->max == QueueOffset{0});
      continue;
    }
    ASSERT_TRUE(range.has_value());
    EXPECT_EQ(range->min, QueueOffset{0});
    ASSERT_EQ(range->max, QueueOffset{count});
    const auto units = store.Read(Queue("T", queue), QueueOffset{0}, 100000);
    ASSERT_TRUE(units.ok()) << units.status();
    for (std::size_t i = 0; i < units.value().size(); ++i) {
      ASSERT_EQ(units.value()[i], UnitAt(static_cast<std::int64_t>(i) * kQueues + queue));
    }
  }
}

TEST(ConsumeQueueCrash, TheCheckpointHoldsInEveryCrash) {
  const std::uint64_t base = std::random_device{}();
  for (std::uint64_t seed = base; seed < base + 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    sim::SimFileSystem fs(seed);
    auto store = ConsumeQueueStore::Open(fs, "/cq", PhysicalOffset{0}).value();
    std::int64_t next = 0;
    std::int64_t checkpoint = 0;
    for (int step = 0; step < 60; ++step) {
      const std::uint64_t dice = random() % 10;
      if (dice < 6) {
        for (std::uint64_t i = random() % 60; i > 0; --i) AppendMessage(*store, next++);
      } else if (dice < 8) {
        ASSERT_TRUE(store->WriteOut().ok());
      } else if (dice == 8) {
        ASSERT_TRUE(store->SyncAll().ok());
        checkpoint = next;
      } else {
        store.reset();
        fs.Crash(static_cast<CrashMode>(random() % sim::kCrashModes));
        Result<std::unique_ptr<ConsumeQueueStore>> opened =
            ConsumeQueueStore::Open(fs, "/cq", PhysicalOffset{checkpoint * kBytes});
        ASSERT_TRUE(opened.ok()) << opened.status();
        store = std::move(opened.value());
        ExpectMessages(*store, checkpoint);
        next = checkpoint;  // the replay
      }
      if (HasFatalFailure()) return;
    }
    ExpectMessages(*store, next);
    if (HasFailure()) return;
  }
}

TEST(MemoryStateStoreCrash, KeepsWholeBatchesInOrderInEveryCrash) {
  const std::uint64_t base = std::random_device{}();
  for (std::uint64_t seed = base; seed < base + 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    sim::SimFileSystem fs(seed);
    auto store = OpenMemoryStateStore(fs, "/state").value();
    std::uint64_t acknowledged = 0;
    std::uint64_t tried = 0;
    for (int step = 0; step < 40; ++step) {
      if (random() % 8 == 0) fs.StopAfter(random() % 4);
      ++tried;
      // Two keys and a padding of random length: a batch is visible as a whole or not at all.
      const std::string value = std::to_string(tried);
      const StateBatch batch{
          .puts = {{"a", value}, {"pad", std::string(random() % 3000, 'p')}, {"z", value}},
          .deletes = {}};
      if (store->Write(batch).ok()) {
        acknowledged = tried;
        continue;
      }
      store.reset();
      fs.Crash(static_cast<CrashMode>(random() % sim::kCrashModes));
      store = OpenMemoryStateStore(fs, "/state").value();
      std::map<std::string, std::string> records;
      ASSERT_TRUE(store
                      ->ForEach([&](std::string_view key, std::string_view found) {
                        records[std::string(key)] = std::string(found);
                      })
                      .ok());
      EXPECT_EQ(records["a"], records["z"]) << "half a batch";
      const std::uint64_t seen = records["a"].empty() ? 0 : std::stoull(records["a"]);
      ASSERT_GE(seen, acknowledged) << "lost";
      ASSERT_LE(seen, tried);
      acknowledged = seen;
    }
  }
}

}  // namespace
}  // namespace triad::broker
