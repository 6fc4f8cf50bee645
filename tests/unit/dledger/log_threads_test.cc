// Readers, the preparing thread and the writer beside each other, on real files. Meaningful under
// the tsan preset; here it checks that nobody ever sees half an entry.

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/dledger/log_fixture.h"

namespace triad::dledger {
namespace {

class LogThreads : public ::testing::Test {
 protected:
  LogThreads()
      : dir_(std::filesystem::path(::testing::TempDir()) /
             ("triad-log-" + std::to_string(::getpid()))) {
    options_.dir = dir_;
    options_.segment_bytes = model_.segment_bytes = 256 * 1024;
    options_.prepare_bytes = 128 * 1024;
    options_.first_prepare_bytes = 16 * 1024;
    options_.cache_bytes = 32 * 1024;
  }
  ~LogThreads() override { std::filesystem::remove_all(dir_); }

  const std::string dir_;
  LogStoreOptions options_;
  ModelLog model_;
};

TEST_F(LogThreads, ReadersBesideTheWriterSeeWholeEntriesOnly) {
  Result<std::unique_ptr<LogStore>> opened =
      LogStore::Open(PosixFileSystem(), options_, {.group = "g", .peer_id = "n0"});
  ASSERT_TRUE(opened.ok()) << opened.status();
  LogStore& store = **opened;
  constexpr std::uint64_t kEntries = 2000;
  constexpr std::uint64_t kKept = 200;  // never cut
  const std::vector<EntryRef> kept = model_.MakeMany(kKept, 300);
  ASSERT_TRUE(store.Append(kept).ok());
  std::atomic<bool> done{false};
  std::atomic<std::uint64_t> reads{0};
  std::vector<std::thread> threads;
  for (std::uint64_t reader = 0; reader < 2; ++reader) {
    threads.emplace_back([&, reader] {
      sim::Random random(reader);
      while (!done) {
        const PhysicalOffset end = store.end_position();
        const PhysicalOffset at(
            static_cast<std::int64_t>(random.Below(static_cast<std::uint64_t>(end.value()))));
        const Result<EntryRef> read = store.ReadAt(at);
        // A gap between segments, or cut meanwhile: not found. Never damage.
        if (read.ok()) {
          EXPECT_TRUE(DecodeEntry((*read)->bytes, true).ok());
          EXPECT_LE((*read)->position, at);
          EXPECT_GT((*read)->end(), at);
        } else {
          EXPECT_EQ(read.status().code(), StatusCode::kNotFound) << read.status();
        }
        const LogIndex index(1 + random.Below(kKept));
        const auto range = store.ReadRange(index, LogIndex(kKept + 1), 4096);
        EXPECT_TRUE(range.ok()) << range.status();
        const EntryRef cached = store.CachedIndex(index);
        if (cached) {
          EXPECT_EQ(cached->index, index);
        }
        ++reads;
      }
    });
  }
  threads.emplace_back([&] {
    while (!done) {
      EXPECT_TRUE(store.Prepare().ok());
      EXPECT_TRUE(store.WriteCheckpoint().ok());
      std::this_thread::yield();
    }
  });
  sim::Random random(99);
  for (std::uint64_t round = 0; round < kEntries / 4; ++round) {
    ASSERT_TRUE(store.Append(model_.MakeMany(4, random.Below(900))).ok());
    if (random.OneIn(4)) {
      ASSERT_TRUE(store.Sync().ok());
    }
    if (random.OneIn(25)) {
      const LogIndex from(kKept + 1 + random.Below(model_.entries.size() - kKept));
      ASSERT_TRUE(store.Cut(from).ok());
      model_.CutFrom(from);
      model_.term = model_.term + 1;
    }
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(reads.load(), 0u);
  EXPECT_TRUE(Contents(store, LogIndex(model_.entries.size())) == BytesOf(model_.entries));
  ASSERT_TRUE(store.Close().ok());
}

}  // namespace
}  // namespace triad::dledger
