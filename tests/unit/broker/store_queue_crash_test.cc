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

// Message n of the log stands at n * 50 in queue n % queues.
constexpr std::int64_t kFew = 3;
constexpr std::int64_t kMany = 80;  // a checkpoint writes their tails together
constexpr std::int64_t kBytes = 50;

QueueUnit UnitAt(std::int64_t message) {
  return {PhysicalOffset{message * kBytes}, static_cast<std::int32_t>(kBytes), message};
}

void AppendMessage(ConsumeQueueStore& store, std::int64_t queues, std::int64_t message) {
  store.Append(Queue("T", static_cast<std::int32_t>(message % queues)),
               QueueOffset{message / queues}, UnitAt(message));
}

void ExpectMessages(const ConsumeQueueStore& store, std::int64_t queues, std::int64_t end) {
  for (std::int32_t queue = 0; queue < queues; ++queue) {
    const std::int64_t count = (end - queue + queues - 1) / queues;
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
      ASSERT_EQ(units.value()[i], UnitAt(static_cast<std::int64_t>(i) * queues + queue));
    }
  }
}

// `turns`: so many messages of each queue are appended at once, at most. The machine may die in the
// middle of a sync: then the checkpoint before it counts.
void CheckpointsHold(std::int64_t queues, std::uint64_t turns, std::uint64_t seeds) {
  const std::uint64_t base = std::random_device{}();
  for (std::uint64_t seed = base; seed < base + seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    sim::SimFileSystem fs(seed);
    auto store = ConsumeQueueStore::Open(fs, "/cq", PhysicalOffset{0}).value();
    std::int64_t next = 0;
    std::int64_t checkpoint = 0;
    for (int step = 0; step < 60; ++step) {
      const std::uint64_t dice = random() % 10;
      if (dice < 6) {
        for (std::uint64_t i = random() % (turns * static_cast<std::uint64_t>(queues)); i > 0;
             --i) {
          AppendMessage(*store, queues, next++);
        }
      } else if (dice < 8) {
        ASSERT_TRUE(store->WriteOut().ok());
      } else if (dice == 8) {
        const PhysicalOffset position{next * kBytes};
        const std::function<Status()> sync = store->PrepareSync(position).value();
        const std::int64_t covered = next;
        for (std::uint64_t i = random() % 200; i > 0; --i) AppendMessage(*store, queues, next++);
        const bool dies = random() % 4 == 0;
        if (dies) fs.StopAfter(random() % 8);
        const Status synced = sync();
        ASSERT_TRUE(synced.ok() || dies) << synced;
        if (synced.ok()) checkpoint = covered;
        if (!dies) continue;
        store.reset();
        fs.Crash(static_cast<CrashMode>(random() % sim::kCrashModes));
        store = ConsumeQueueStore::Open(fs, "/cq", PhysicalOffset{checkpoint * kBytes}).value();
        ExpectMessages(*store, queues, checkpoint);
        next = checkpoint;
      } else {
        store.reset();
        fs.Crash(static_cast<CrashMode>(random() % sim::kCrashModes));
        Result<std::unique_ptr<ConsumeQueueStore>> opened =
            ConsumeQueueStore::Open(fs, "/cq", PhysicalOffset{checkpoint * kBytes});
        ASSERT_TRUE(opened.ok()) << opened.status();
        store = std::move(opened.value());
        ExpectMessages(*store, queues, checkpoint);
        next = checkpoint;  // the replay
      }
      if (testing::Test::HasFatalFailure()) return;
    }
    ExpectMessages(*store, queues, next);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(ConsumeQueueCrash, TheCheckpointHoldsInEveryCrash) {
  CheckpointsHold(kFew, 20, 150);
}

TEST(ConsumeQueueCrash, TheCheckpointOfManyQueuesHoldsInEveryCrash) {
  CheckpointsHold(kMany, 20, 40);
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
