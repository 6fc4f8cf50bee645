// What the tests of the log share: a log store on a simulated disk, and a leader that makes entries
// for it.

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dledger/log/log_store.h"
#include "dledger/log/segment_file.h"
#include "tests/sim/sim_file_system.h"

namespace triad::dledger {

// Makes entries as a leader does and remembers them: the naive model of a log.
struct ModelLog {
  std::uint64_t segment_bytes = 4096;
  LogTail tail;
  std::vector<EntryRef> entries;
  Term term{1};

  EntryRef Make(std::string payload, EntryType type = EntryType::kBatch) {
    RollIfNeeded(EntryBytes(payload.size()), segment_bytes, &tail);
    entries.push_back(MakeEntry(term, type, 1000 + static_cast<std::int64_t>(entries.size()),
                                std::move(payload), &tail));
    return entries.back();
  }
  std::vector<EntryRef> MakeMany(int count, std::size_t payload_bytes) {
    std::vector<EntryRef> made;
    for (int i = 0; i < count; ++i) {
      const char fill = static_cast<char>('a' + entries.size() % 26);
      made.push_back(Make(std::string(payload_bytes, fill)));
    }
    return made;
  }
  void CutFrom(LogIndex from) {
    entries.resize(static_cast<std::size_t>(from.value() - 1));
    tail = entries.empty() ? LogTail{} : TailAfter(*entries.back());
  }
};

inline std::vector<std::string> BytesOf(const std::vector<EntryRef>& entries) {
  std::vector<std::string> bytes;
  for (const EntryRef& entry : entries) bytes.push_back(entry->bytes);
  return bytes;
}

// Everything the store holds, read back.
inline std::vector<std::string> Contents(LogStore& store, LogIndex last) {
  std::vector<std::string> bytes;
  for (LogIndex next{1}; next <= last;) {
    const Result<std::vector<EntryRef>> range = store.ReadRange(next, last + 1, 1 << 20);
    if (!range.ok()) {
      ADD_FAILURE() << range.status();
      return bytes;
    }
    for (const EntryRef& entry : *range) bytes.push_back(entry->bytes);
    next = range->back()->index + 1;
  }
  return bytes;
}

inline constexpr char kLogDir[] = "/store/log";

class LogStoreFixture : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kSeed = 7;

  LogStoreFixture() {
    options_.dir = kLogDir;
    options_.segment_bytes = 4096;
    options_.prepare_bytes = 4096;
    options_.first_prepare_bytes = 1024;
  }

  Result<std::unique_ptr<LogStore>> TryOpen() {
    store_.reset();
    return LogStore::Open(fs_, options_, stamp_);
  }
  void Open() {
    Result<std::unique_ptr<LogStore>> opened = TryOpen();
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = std::move(opened).value();
  }
  // Appends and syncs.
  void Write(const std::vector<EntryRef>& entries) {
    ASSERT_TRUE(store_->Append(entries).ok());
    ASSERT_TRUE(store_->Sync().ok());
  }
  void CrashAndOpen(sim::CrashMode mode) {
    fs_.Crash(mode);
    Open();
  }
  LogIndex last() const { return store_->recovered().last_index; }
  // The store holds the first `count` entries of the model and no other.
  void ExpectHolds(std::size_t count) {
    EXPECT_EQ(last().value(), count);
    std::vector<std::string> want = BytesOf(model_.entries);
    want.resize(count);
    EXPECT_TRUE(Contents(*store_, last()) == want);
  }
  std::string SegmentPath(std::int64_t base) const {
    return std::string(kLogDir) + "/" + SegmentName(PhysicalOffset(base));
  }
  static std::uint64_t FileOffset(PhysicalOffset at, PhysicalOffset base) {
    return kSegmentHeadBytes + static_cast<std::uint64_t>(at - base);
  }

  sim::SimFileSystem fs_{kSeed};
  LogStoreOptions options_;
  StoreStamp stamp_{.group = "RaftBroker", .peer_id = "n0"};
  std::unique_ptr<LogStore> store_;
  ModelLog model_;
};

}  // namespace triad::dledger
