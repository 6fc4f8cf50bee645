// The key index against a model, on a disk that dies; its runs; its place in the message store.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "broker/store/key_index.h"
#include "common/byte_order.h"
#include "common/crc32c.h"
#include "tests/sim/sim_file_system.h"
#include "tests/unit/broker/key_index_support.h"
#include "tests/unit/broker/store_support.h"

namespace triad::broker {
namespace {

using sim::CrashMode;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kDir[] = "/keys";

std::vector<std::int64_t> Find(const KeyIndex& index, std::uint64_t hash,
                               KeyIndex::TimeRange times = {}) {
  std::vector<std::int64_t> found;
  const Status status = index.Find(hash, times, [&](PhysicalOffset at) {
    if (found.empty() || at.value() < found.back()) found.push_back(at.value());
    return true;
  });
  EXPECT_TRUE(status.ok()) << status;
  return found;
}

// The keys of entry n: decided by n, so that a replay records the same again.
std::vector<std::uint64_t> KeysOf(std::uint64_t index) {
  std::mt19937_64 random(index);
  std::vector<std::uint64_t> keys;
  for (std::uint64_t i = random() % 4; i > 0; --i) {
    keys.push_back(KeyHash(kTopicSeed, std::to_string(random() % 20)));
  }
  return keys;
}

void Record(KeyIndex& index, std::uint64_t entry_index) {
  const dledger::Entry entry = EntryAt(entry_index);
  index.BeginEntry(entry);
  std::int64_t at = 100;
  for (const std::uint64_t key : KeysOf(entry_index)) index.Add(key, entry.position + at++);
  index.EndEntry(entry);
}

// What Find must say when entries [first, last] are recorded.
void ExpectExactly(const KeyIndex& index, std::uint64_t first, std::uint64_t last) {
  std::map<std::uint64_t, std::vector<std::int64_t>> model;
  for (std::uint64_t i = last; i >= first && i > 0; --i) {
    const std::vector<std::uint64_t> keys = KeysOf(i);
    for (std::size_t k = keys.size(); k > 0; --k) {
      model[keys[k - 1]].push_back(EntryAt(i).position.value() + 99 + static_cast<std::int64_t>(k));
    }
  }
  for (int key = 0; key < 20; ++key) {
    const std::uint64_t hash = KeyHash(kTopicSeed, std::to_string(key));
    ASSERT_EQ(Find(index, hash), model[hash]) << "key " << key;
  }
}

TEST(KeyHash, DependsOnEveryByteAndOnTheSeed) {
  const std::string text = "a key of 23 characters.";
  const std::uint64_t hash = KeyHash(1, text);
  EXPECT_NE(KeyHash(2, text), hash);
  EXPECT_NE(KeyHash(1, text + '\0'), hash);
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string other = text;
    other[i] ^= 1;
    EXPECT_NE(KeyHash(1, other), hash) << i;
  }
}

TEST(KeyRun, RecordsAreFoundInTheirBucketInOrder) {
  std::mt19937_64 random(7);
  for (const std::uint32_t count : {0u, 1u, 7u, 8u, 100u, 5000u}) {
    SCOPED_TRACE(count);
    std::vector<KeyRecord> records;
    for (std::uint32_t i = 0; i < count; ++i) {
      records.push_back({i % 3 == 0 ? 42 : random(), static_cast<std::int64_t>(i)});
    }
    KeyRun run;
    run.sequence = 9;
    run.last = LogIndex{3};
    const std::string bytes = EncodeKeyRun(records, &run);
    ASSERT_EQ(bytes.size(), run.size_bytes());
    const std::string behind_header = bytes.substr(kRunHeaderBytes);
    EXPECT_TRUE(CheckRun(run, behind_header).ok());
    std::string damaged_table = behind_header;
    damaged_table[0] = '\x7f';
    EXPECT_EQ(CheckRun(run, damaged_table).code(), StatusCode::kCorruption);
    const Result<KeyRun> decoded = DecodeKeyRunHeader(bytes.substr(0, kRunHeaderBytes));
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->sequence, 9u);
    EXPECT_EQ(decoded->count, count);
    for (const std::uint64_t hash : {std::uint64_t{42}, count > 1 ? records[1].hash : 0}) {
      std::vector<std::int64_t> expected;
      for (const KeyRecord& record : records) {
        if (record.hash == hash) expected.push_back(record.position);
      }
      const ByteRange ends = BucketEnds(*decoded, hash);
      const auto where = BucketRecords(*decoded, bytes.substr(ends.offset, ends.bytes));
      ASSERT_TRUE(where.ok()) << where.status();
      std::vector<std::int64_t> found;
      for (std::size_t at = 0; at < where->bytes; at += kKeyRecordBytes) {
        const KeyRecord record = DecodeKeyRecord(bytes.data() + where->offset + at);
        if (record.hash == hash) found.push_back(record.position);
      }
      EXPECT_EQ(found, expected);
    }
  }
}

TEST(KeyRun, ADamagedHeaderIsCorruption) {
  KeyRun run;
  run.sequence = 1;
  const std::string good = EncodeKeyRun({}, &run).substr(0, kRunHeaderBytes);
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] ^= 4;
    EXPECT_EQ(DecodeKeyRunHeader(bad).status().code(), StatusCode::kCorruption) << i;
  }
  // Whole by its checksum, but no run: it ends in front of its begin.
  std::string bad = good;
  StoreBe64(bad.data() + 32, 100);
  StoreBe64(bad.data() + 40, 99);
  StoreBe32(bad.data() + kRunHeaderBytes - 4,
            Crc32c(std::string_view(bad).substr(0, kRunHeaderBytes - 4)));
  EXPECT_EQ(DecodeKeyRunHeader(bad).status().message(), "a run's header says what cannot be");
}

TEST(KeyIndex, FindsInMemoryAndInRunsNewestFirst) {
  sim::SimFileSystem fs(1);
  auto index = KeyIndex::Open(fs, kDir, 0, PhysicalOffset{0}).value();
  for (std::uint64_t i = 1; i <= 200; ++i) {
    Record(*index, i);
    if (i % 70 == 0) index->Seal();
  }
  EXPECT_EQ(index->last(), LogIndex{200});
  EXPECT_EQ(fs.List(kDir)->size(), 4u) << "a file per segment that has a run";
  ExpectExactly(*index, 1, 200);
}

TEST(KeyIndex, StopsWhereTheVisitorSaysSo) {
  sim::SimFileSystem fs(1);
  auto index = KeyIndex::Open(fs, kDir, 0, PhysicalOffset{0}).value();
  for (std::uint64_t i = 1; i <= 100; ++i) {
    Record(*index, i);
    if (i == 50) index->Seal();
  }
  const std::uint64_t hash = KeyHash(kTopicSeed, "3");
  const std::size_t all = Find(*index, hash).size();
  ASSERT_GT(all, 4u);
  for (std::size_t wanted = 1; wanted <= all; ++wanted) {
    std::size_t calls = 0;
    ASSERT_TRUE(index->Find(hash, {}, [&](PhysicalOffset) { return ++calls < wanted; }).ok());
    EXPECT_EQ(calls, wanted);
  }
}

TEST(KeyIndex, RunsOutsideOfTheTimesAreNotRead) {
  sim::SimFileSystem fs(1);
  auto index = KeyIndex::Open(fs, kDir, 0, PhysicalOffset{0}).value();
  const std::uint64_t hash = 5;
  for (std::uint64_t i = 1; i <= 3; ++i) {
    const dledger::Entry entry = EntryAt(i * 1);
    index->BeginEntry(entry);
    index->Add(hash, entry.position);
    index->EndEntry(entry);
    index->Seal();
  }
  EXPECT_THAT(Find(*index, hash, {2, 2}), ElementsAre(kEntryBytes));
  EXPECT_THAT(Find(*index, hash, {3, 9}), ElementsAre(2 * kEntryBytes));
  EXPECT_THAT(Find(*index, hash, {4, 9}), IsEmpty());
}

// More keys in one entry than a run may hold: bounded memory, nothing lost, also over a crash
// whose replay records the entry again.
TEST(KeyIndex, AnEntryWithMoreKeysThanARunIsSpreadOverRuns) {
  sim::SimFileSystem fs(1);
  auto index = KeyIndex::Open(fs, kDir, 0, PhysicalOffset{0}).value();
  constexpr std::size_t kKeys = kRunRecordsMax * 2 + 100;
  const auto record = [&](KeyIndex& to) {
    const dledger::Entry entry = EntryAt(2);
    to.BeginEntry(entry);
    for (std::size_t i = 0; i < kKeys; ++i) {
      to.Add(i, entry.position + static_cast<std::int64_t>(i));
    }
    to.EndEntry(entry);
  };
  Record(*index, 1);
  record(*index);
  const KeyIndex::PendingSync pending = index->PrepareSync();
  EXPECT_EQ(pending.synced, 2u);
  ASSERT_TRUE(pending.sync().ok());
  const auto expect_all = [&] {
    for (const std::size_t i : {std::size_t{0}, kRunRecordsMax, kKeys - 1}) {
      EXPECT_THAT(Find(*index, i), ElementsAre(kEntryBytes + static_cast<std::int64_t>(i)));
    }
  };
  expect_all();
  index.reset();
  fs.Crash(CrashMode::kDropAll);
  index = KeyIndex::Open(fs, kDir, pending.synced, PhysicalOffset{0}).value();
  EXPECT_EQ(index->last(), LogIndex{1}) << "the entry is not whole";
  record(*index);
  expect_all();
}

TEST(KeyIndex, FilesGoWithTheirSegments) {
  sim::SimFileSystem fs(1);
  auto index = KeyIndex::Open(fs, kDir, 0, PhysicalOffset{0}).value();
  for (std::uint64_t i = 1; i <= 200; ++i) Record(*index, i);
  index->Seal();
  ASSERT_TRUE(index->SetLogBegin(PhysicalOffset{2 * kSegmentEntries * kEntryBytes}).ok());
  EXPECT_EQ(fs.List(kDir)->size(), 3u);
  ExpectExactly(*index, 2 * kSegmentEntries + 1, 200);
  const KeyIndex::PendingSync pending = index->PrepareSync();
  ASSERT_TRUE(pending.sync().ok()) << "dropped files need no sync";
  index =
      KeyIndex::Open(fs, kDir, pending.synced, PhysicalOffset{2 * kSegmentEntries * kEntryBytes})
          .value();
  EXPECT_EQ(index->last(), LogIndex{200});
  ExpectExactly(*index, 2 * kSegmentEntries + 1, 200);
}

TEST(KeyIndex, AfterASkipOnlyWhatFollowsIsThere) {
  sim::SimFileSystem fs(1);
  auto index = KeyIndex::Open(fs, kDir, 0, PhysicalOffset{0}).value();
  for (std::uint64_t i = 1; i <= 100; ++i) {
    Record(*index, i);
    if (i == 90) index->Seal();
  }
  index->SkipTo(LogIndex{160}, EntryAt(161).position);
  for (std::uint64_t i = 161; i <= 180; ++i) Record(*index, i);
  ExpectExactly(*index, 161, 180);
  index->Seal();
  ExpectExactly(*index, 161, 180);
}

struct DamageCase {
  const char* name;
  std::function<void(sim::SimFileSystem&)> damage;
};

TEST(KeyIndex, ADamagedOrMissingSyncedRunIsSeen) {
  const std::string second = std::string(kDir) + "/00000000000000040000";
  const DamageCase cases[] = {
      {"a header in the middle", [&](auto& fs) { fs.Rot(second, 10, 1); }},
      {"a file is gone", [&](auto& fs) { ASSERT_TRUE(fs.Remove(second).ok()); }},
      {"the first file is gone",
       [&](auto& fs) { ASSERT_TRUE(fs.Remove(std::string(kDir) + "/00000000000000000000").ok()); }},
      {"a file is too short",
       [&](auto& fs) { ASSERT_TRUE(fs.Open(second, {}).value()->Truncate(150).ok()); }},
  };
  for (const DamageCase& c : cases) {
    SCOPED_TRACE(c.name);
    sim::SimFileSystem fs(1);
    auto index = KeyIndex::Open(fs, kDir, 0, PhysicalOffset{0}).value();
    for (std::uint64_t i = 1; i <= 100; ++i) Record(*index, i);
    index->Seal();
    const KeyIndex::PendingSync pending = index->PrepareSync();
    ASSERT_TRUE(pending.sync().ok());
    index.reset();
    c.damage(fs);
    EXPECT_EQ(KeyIndex::Open(fs, kDir, pending.synced, PhysicalOffset{0}).status().code(),
              StatusCode::kCorruption);
    ASSERT_TRUE(KeyIndex::Discard(fs, kDir).ok());
    index = KeyIndex::Open(fs, kDir, pending.synced, PhysicalOffset{0}).value();
    EXPECT_EQ(index->last(), LogIndex{0});
    Record(*index, 1);
    index->Seal();
    // The rebuilt run is not synced: the old promise must not be taken for it.
    index = KeyIndex::Open(fs, kDir, pending.synced, PhysicalOffset{0}).value();
    EXPECT_EQ(index->last(), LogIndex{0});
  }
}

// A damaged file is forgotten with all behind it, and comes back by replay; what is asked meanwhile
// is told to come later, and never gets what rotted.
TEST(KeyIndex, NoFlippedBitOfARunIsEverServedAndTheRunComesBack) {
  const std::string second = std::string(kDir) + "/00000000000000040000";
  const std::string path = second;
  std::mt19937_64 random(std::random_device{}());
  for (int round = 0; round < 60; ++round) {
    sim::SimFileSystem fs(1);
    auto index = KeyIndex::Open(fs, kDir, 0, PhysicalOffset{0}).value();
    for (std::uint64_t i = 1; i <= 100; ++i) Record(*index, i);
    index->Seal();
    const std::uint64_t size = fs.Open(second, {}).value()->Size().value();
    const std::uint64_t at = kRunHeaderBytes + random() % (size - kRunHeaderBytes);
    SCOPED_TRACE("byte " + std::to_string(at));
    fs.Rot(second, at, 1);
    const bool by_scrub = round % 2 == 0;
    std::size_t refused = 0;
    for (std::size_t nth = 0; by_scrub && nth < 3; ++nth) {
      if (index->CheckNth(nth).code() == StatusCode::kUnavailable) ++refused;
    }
    for (int key = 0; !by_scrub && key < 20; ++key) {
      std::vector<std::int64_t> found;
      const Status status =
          index->Find(KeyHash(kTopicSeed, std::to_string(key)), {}, [&](PhysicalOffset where) {
            found.push_back(where.value());
            return true;
          });
      if (status.code() == StatusCode::kUnavailable) ++refused;
      for (const std::int64_t where : found) {
        ASSERT_THAT(KeysOf(static_cast<std::uint64_t>(where / kEntryBytes) + 1),
                    testing::Contains(KeyHash(kTopicSeed, std::to_string(key))));
      }
    }
    ASSERT_GT(refused, 0u);
    EXPECT_EQ(index->CheckNth(3).code(), StatusCode::kNotFound);
    index->DropDamaged();
    EXPECT_EQ(index->last(), LogIndex{40});
    EXPECT_EQ(index->end(), EntryAt(41).position);
    while (index->last() < LogIndex{120}) Record(*index, index->last().value() + 1);
    ExpectExactly(*index, 1, 120);
    index->Seal();
    const KeyIndex::PendingSync pending = index->PrepareSync();
    ASSERT_TRUE(pending.sync().ok());
    index.reset();
    fs.Crash(CrashMode::kDropAll);
    index = KeyIndex::Open(fs, kDir, pending.synced, PhysicalOffset{0}).value();
    EXPECT_EQ(index->last(), LogIndex{120});
    ExpectExactly(*index, 1, 120);
  }
}

TEST(KeyIndex, AFullDiskTakesBackWhatIsNotWrittenAndItComesFromTheLogAgain) {
  sim::SimFileSystem fs(1);
  fs.set_capacity(1u << 30);
  auto index = KeyIndex::Open(fs, kDir, 0, PhysicalOffset{0}).value();
  for (std::uint64_t i = 1; i <= 10; ++i) Record(*index, i);
  index->Seal();
  fs.set_capacity(0);
  for (std::uint64_t i = 11; i <= 20; ++i) Record(*index, i);
  // At an orderly stop, at a segment's end, and in the middle of an entry.
  index->Seal();
  EXPECT_TRUE(index->waits_for_room());
  EXPECT_EQ(index->last(), LogIndex{10});
  EXPECT_EQ(index->end(), EntryAt(11).position);
  for (std::uint64_t i = 11; i <= kSegmentEntries + 1; ++i) Record(*index, i);
  EXPECT_EQ(index->last(), LogIndex{10}) << "entry 41 begins a segment";
  const dledger::Entry entry = EntryAt(11);
  index->BeginEntry(entry);
  for (std::size_t i = 0; i <= kRunRecordsMax + 5; ++i) index->Add(i, entry.position);
  index->EndEntry(entry);
  EXPECT_EQ(index->last(), LogIndex{10});
  fs.set_capacity(1u << 30);
  while (index->last() < LogIndex{100}) Record(*index, index->last().value() + 1);
  index->Seal();
  EXPECT_FALSE(index->waits_for_room());
  ExpectExactly(*index, 1, 100);
}

TEST(KeyIndexCrash, WhatIsSyncedSurvivesAndTheRestComesBackByReplay) {
  const std::uint64_t base = std::random_device{}();
  for (std::uint64_t seed = base; seed < base + 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    sim::SimFileSystem fs(seed);
    auto index = KeyIndex::Open(fs, kDir, 0, PhysicalOffset{0}).value();
    std::uint64_t synced = 0;
    LogIndex synced_to;
    LogIndex sealed_to;
    for (int step = 0; step < 60; ++step) {
      const std::uint64_t dice = random() % 10;
      if (dice < 6) {
        for (std::uint64_t i = random() % 30; i > 0; --i) Record(*index, index->last().value() + 1);
      } else if (dice == 6) {
        index->Seal();
        sealed_to = index->last();
      } else if (dice < 9) {
        const KeyIndex::PendingSync pending = index->PrepareSync();
        ASSERT_TRUE(pending.sync().ok());
        synced = pending.synced;
        synced_to = sealed_to;
      } else {
        const LogIndex end = index->last();
        index.reset();
        fs.Crash(static_cast<CrashMode>(random() % sim::kCrashModes));
        auto opened = KeyIndex::Open(fs, kDir, synced, PhysicalOffset{0});
        ASSERT_TRUE(opened.ok()) << opened.status();
        index = std::move(opened.value());
        ASSERT_GE(index->last(), synced_to);
        ExpectExactly(*index, 1, index->last().value());
        while (index->last() < end) Record(*index, index->last().value() + 1);
        sealed_to = synced_to;
      }
      if (HasFatalFailure()) return;
    }
    ExpectExactly(*index, 1, index->last().value());
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace triad::broker
