// The log as it stands on the disk: digests, records, replacing what rotted.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/dledger/log_fixture.h"

namespace triad::dledger {
namespace {

using testing::HasSubstr;

constexpr PhysicalOffset kZero{0};

class RawLogTest : public LogStoreFixture {
 protected:
  // 40 entries of 300 bytes in segments of 4 KiB, all in the cache too.
  void Fill() {
    Open();
    Write(model_.MakeMany(40, 300));
    clean_ = DigestOfAll();
  }
  std::uint64_t DigestOfAll() {
    const Result<std::uint64_t> digest = store_->raw().Digest(kZero, model_.tail.position);
    EXPECT_TRUE(digest.ok()) << digest.status();
    return digest.ok() ? *digest : 0;
  }
  void RotAt(PhysicalOffset at, PhysicalOffset base) {
    fs_.Rot(SegmentPath(base.value()), FileOffset(at, base), 1);
  }
  std::vector<RawRecord> Records() {
    Result<std::vector<RawRecord>> records = store_->raw().Records(kZero, model_.tail.position);
    EXPECT_TRUE(records.ok()) << records.status();
    return records.ok() ? *records : std::vector<RawRecord>();
  }
  std::uint64_t clean_ = 0;
};

TEST_F(RawLogTest, EveryFlippedByteChangesTheDigestWhateverTheCacheHolds) {
  Fill();
  const EntryRef& entry = model_.entries[3];
  for (PhysicalOffset at = entry->position; at < entry->end(); at = at + 1) {
    RotAt(at, entry->segment_base);
    EXPECT_NE(DigestOfAll(), clean_) << at;
    RotAt(at, entry->segment_base);
  }
  EXPECT_EQ(DigestOfAll(), clean_);
}

TEST_F(RawLogTest, TheDigestOfAPeerWithOtherBytesInTheUnusedRestIsTheSame) {
  Fill();
  const EntryRef& last_of_first =
      *std::find_if(model_.entries.rbegin(), model_.entries.rend(),
                    [](const EntryRef& entry) { return entry->segment_base == kZero; });
  ASSERT_LT(last_of_first->end().value(), 4096);
  RotAt(last_of_first->end(), kZero);
  RotAt(PhysicalOffset(-100), kZero);  // in the head, which is a peer's own
  EXPECT_EQ(DigestOfAll(), clean_);
}

TEST_F(RawLogTest, ListsEveryRecordOnce) {
  Fill();
  const std::vector<RawRecord> records = Records();
  ASSERT_EQ(records.size(), model_.entries.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(records[i].position, model_.entries[i]->position);
    EXPECT_EQ(records[i].bytes, model_.entries[i]->size());
    EXPECT_EQ(records[i].index, model_.entries[i]->index);
    EXPECT_EQ(records[i].damage, "");
  }
}

TEST_F(RawLogTest, APartOfTheLogGivesTheRecordsThatOverlapIt) {
  Fill();
  const EntryRef& entry = model_.entries[5];
  const auto records = store_->raw().Records(entry->position + 8, entry->position + 16);
  ASSERT_TRUE(records.ok()) << records.status();
  ASSERT_EQ(records->size(), 1u);
  EXPECT_EQ(records->front().index, entry->index);
}

TEST_F(RawLogTest, ADamagedPayloadIsOneBadRecordAndADamagedHeaderHidesWhatFollows) {
  Fill();
  RotAt(model_.entries[2]->position + 100, kZero);
  std::vector<RawRecord> records = Records();
  ASSERT_EQ(records.size(), 40u);
  EXPECT_THAT(records[2].damage, HasSubstr("checksum"));
  EXPECT_EQ(records[3].damage, "");
  RotAt(model_.entries[2]->position + 100, kZero);
  RotAt(model_.entries[2]->position + 10, kZero);
  records = Records();
  EXPECT_LT(records.size(), 40u);
  EXPECT_EQ(records[2].index, LogIndex(0));
  EXPECT_NE(records[2].damage, "");
  EXPECT_EQ(records.back().index, LogIndex(40));
}

TEST_F(RawLogTest, AReplacedRecordIsAsItWas) {
  Fill();
  for (const std::int64_t inside : {std::int64_t{10}, std::int64_t{100}}) {
    RotAt(model_.entries[2]->position + inside, kZero);
    ASSERT_NE(DigestOfAll(), clean_);
    const Status replaced = store_->raw().Replace(model_.entries[2]);
    EXPECT_TRUE(replaced.ok()) << replaced;
    EXPECT_EQ(DigestOfAll(), clean_);
  }
  fs_.Crash(sim::CrashMode::kDropAll);
  Open();
  ExpectHolds(40);
}

TEST_F(RawLogTest, ARecordThatDoesNotBelongThereIsRefused) {
  Fill();
  RotAt(model_.entries[2]->position + 100, kZero);
  ModelLog other;
  other.term = Term(9);
  const std::vector<EntryRef> foreign = other.MakeMany(40, 300);
  EXPECT_EQ(store_->raw().Replace(foreign[2]).code(), StatusCode::kInvalidArgument);
  ModelLog shifted;
  shifted.MakeMany(1, 8);
  const std::vector<EntryRef> moved = shifted.MakeMany(40, 300);
  EXPECT_EQ(store_->raw().Replace(moved[1]).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(store_->raw().Replace(shifted.entries.back()).code(), StatusCode::kInvalidArgument);
}

// A whole entry that the group never had at that place: every single thing that is known of it here
// keeps it out.
TEST_F(RawLogTest, AnEntryThatContradictsWhatIsKnownIsRefused) {
  Open();
  Write(model_.MakeMany(3, 60'000));  // alone in their blocks
  const EntryRef& good = model_.entries[1];
  const EntryRef& last = model_.entries[2];
  const auto made = [&](Term term, char fill, std::uint32_t chain_mask) {
    LogTail tail = TailAfter(*model_.entries[0]);
    tail.header_crc ^= chain_mask;
    RollIfNeeded(EntryBytes(60'000), model_.segment_bytes, &tail);
    return MakeEntry(term, EntryType::kBatch, good->store_time_ms, std::string(60'000, fill),
                     &tail);
  };
  const char fill = good->payload()[0];
  struct Case {
    const char* name;
    EntryRef entry;
    std::int64_t rot;  // of the entry that stands there
    bool is_successor_rotten;
  };
  const Case cases[] = {
      {"its own header is whole", made(Term(1), 'z', 0), 100, true},
      {"its successor's chain", made(Term(1), 'z', 0), 10, false},
      {"its predecessor's chain", made(Term(1), fill, 1), 10, true},
      {"the terms of the log", made(Term(2), fill, 0), 10, true},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    RotAt(good->position + c.rot, good->segment_base);
    if (c.is_successor_rotten) RotAt(last->position + 10, last->segment_base);
    EXPECT_EQ(store_->raw().Replace(c.entry).code(), StatusCode::kInvalidArgument);
    for (const EntryRef& entry : {good, last}) {
      const Status repaired = store_->raw().Replace(entry);
      EXPECT_TRUE(repaired.ok()) << repaired;
    }
  }
  // The last one has no successor but the log's own end.
  RotAt(last->position + 10, last->segment_base);
  LogTail tail = TailAfter(*good);
  RollIfNeeded(EntryBytes(60'000), model_.segment_bytes, &tail);
  const EntryRef other =
      MakeEntry(Term(1), EntryType::kBatch, last->store_time_ms, std::string(60'000, 'z'), &tail);
  EXPECT_EQ(store_->raw().Replace(other).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(store_->raw().Replace(last).ok());
}

TEST_F(RawLogTest, SenselessRangesAreRefused) {
  Fill();
  EXPECT_EQ(store_->raw().Digest(PhysicalOffset(4), PhysicalOffset(16)).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(store_->raw().Digest(PhysicalOffset(16), PhysicalOffset(16)).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(store_->raw().Records(PhysicalOffset(16), PhysicalOffset(8)).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(store_->raw().Bytes(PhysicalOffset(8), 3).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(store_->raw().Digest(model_.tail.position, model_.tail.position + 8).status().code(),
            StatusCode::kNotFound);
}

TEST_F(RawLogTest, TheEndOfAnEntryIsFoundAlsoBehindADamagedPayload) {
  Fill();
  RotAt(model_.entries[2]->position + 100, kZero);
  for (const EntryRef& entry : model_.entries) {
    EXPECT_EQ(store_->raw().EndOf(entry->index).value(), entry->end()) << entry->index;
  }
}

}  // namespace
}  // namespace triad::dledger
