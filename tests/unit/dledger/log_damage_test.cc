// Bytes whose checksums are right and which still cannot be: each is refused or scanned around, and
// nothing of it is believed.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "common/byte_order.h"
#include "common/crc32c.h"
#include "dledger/membership_codec.h"
#include "tests/unit/dledger/hooked_file_system.h"
#include "tests/unit/dledger/log_fixture.h"

namespace triad::dledger {
namespace {

class LogDamage : public LogStoreFixture {
 protected:
  static EntryRef WithBadHeader(const EntryRef& entry) {
    Entry bad = *entry;
    bad.bytes[9] = static_cast<char>(bad.bytes[9] ^ 1);
    return std::make_shared<const Entry>(std::move(bad));
  }
  static Membership Three() {
    return {.group_id = 77, .voters = {PeerId("n0"), PeerId("n2")}, .learners = {}};
  }
};

// Another leader's entry, whole and in its place, but not the successor of what stands before it.
TEST_F(LogDamage, AnEntryOfAnotherChainEndsTheLogInFrontOfIt) {
  Open();
  Write(model_.MakeMany(3, 500));
  ModelLog other;
  other.term = Term(9);
  const EntryRef foreign = other.MakeMany(3, 500)[1];
  ASSERT_EQ(foreign->position, model_.entries[1]->position);
  store_.reset();
  auto file = fs_.Open(SegmentPath(0), {});
  ASSERT_TRUE(file.ok()) << file.status();
  const std::uint64_t at = FileOffset(foreign->position, PhysicalOffset(0));
  ASSERT_TRUE((*file)->Write(at, foreign->bytes).ok());
  file->reset();
  Open();
  EXPECT_EQ(last(), LogIndex(1));
  EXPECT_TRUE(store_->recovered().recovering);
}

// Files that somebody put there: whole, and still not this log's. With and without a checkpoint
// that spares the scan; each segment, also the first, whose entries follow nothing.
class ForeignSegment : public LogDamage, public testing::WithParamInterface<bool> {
 protected:
  // Twelve entries of one size, the first names the group, in segments of four.
  static void Fill(LogStore* store, ModelLog* model, std::uint64_t group_id, char fill) {
    Membership membership = Three();
    membership.group_id = group_id;
    for (int i = 0; i < 12; ++i) {
      std::string payload(900, static_cast<char>(fill + i));
      if (i == 0) {
        payload = EncodeMembership(membership);
        payload.resize(900);
      }
      const EntryRef entry =
          model->Make(std::move(payload), i == 0 ? EntryType::kMembership : EntryType::kBatch);
      ASSERT_TRUE(store->Append({&entry, 1}).ok());
      ASSERT_TRUE(store->Sync().ok());
    }
  }
  // What the store of another group, of the same shape, has in that segment.
  std::string OfAnother(std::int64_t base) {
    ModelLog model;
    sim::SimFileSystem fs(kSeed + 1);
    auto other = LogStore::Open(fs, options_, {.group = "Other", .peer_id = "n0"});
    EXPECT_TRUE(other.ok()) << other.status();
    Fill(other->get(), &model, 78, 'A');
    return fs.Bytes(SegmentPath(base));
  }
};

TEST_P(ForeignSegment, MeansRecoveringInFrontOfItAndStaysAsItIs) {
  Open();
  Fill(store_.get(), &model_, 77, 'a');
  Open();  // knows its group from here on
  if (GetParam()) {
    ASSERT_TRUE(store_->WriteCheckpoint().ok());
  }
  store_.reset();
  const sim::FileDisk disk = fs_.disk();
  for (const auto& [base, last_good] :
       {std::pair<std::int64_t, std::size_t>{0, 0}, {4096, 4}, {8192, 8}}) {
    SCOPED_TRACE(base);
    sim::SimFileSystem fs(kSeed, disk);
    const std::string foreign = OfAnother(base);
    ASSERT_TRUE(WriteFileAtomically(fs, SegmentPath(base), foreign).ok());
    for (int start = 0; start < 2; ++start) {
      auto store = LogStore::Open(fs, options_, stamp_);
      ASSERT_TRUE(store.ok()) << store.status();
      EXPECT_TRUE((*store)->recovered().recovering);
      ASSERT_EQ((*store)->recovered().last_index.value(), last_good);
      EXPECT_EQ((*store)->recovered().memberships.size(), last_good == 0 ? 0u : 1u);
      std::vector<std::string> own = BytesOf(model_.entries);
      own.resize(last_good);
      EXPECT_TRUE(Contents(**store, LogIndex(last_good)) == own);
      EXPECT_TRUE(fs.Bytes(SegmentPath(base)) == foreign) << "evidence, until the leader's come";
    }
    auto store = LogStore::Open(fs, options_, stamp_);
    ASSERT_TRUE(store.ok()) << store.status();
    const std::span<const EntryRef> rest = std::span(model_.entries).subspan(last_good);
    ASSERT_TRUE((*store)->Append(rest).ok());
    ASSERT_TRUE((*store)->Sync().ok());
    ASSERT_TRUE((*store)->SaveRecovering(false).ok());
    store->reset();
    store = LogStore::Open(fs, options_, stamp_);
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_FALSE((*store)->recovered().recovering);
    EXPECT_TRUE(Contents(**store, LogIndex(12)) == BytesOf(model_.entries));
  }
}
INSTANTIATE_TEST_SUITE_P(WithACheckpoint, ForeignSegment, testing::Bool());

// The first leader died before its first entry was committed, and the others named the group anew.
class LonelyGroupId : public LogDamage {
 protected:
  // The log is one entry, which a start has seen.
  void SetUp() override {
    Open();
    Write({Named(77)});
    Open();
  }
  EntryRef Named(std::uint64_t group_id) {
    model_.CutFrom(LogIndex(1));
    Membership membership = Three();
    membership.group_id = group_id;
    return model_.Make(EncodeMembership(membership), EntryType::kMembership);
  }
  void ExpectTrusted(std::uint64_t group_id) {
    for (int start = 0; start < 2; ++start) {
      Open();
      EXPECT_FALSE(store_->recovered().recovering) << "start " << start;
      const Recovered& found = store_->recovered();
      const Membership membership =
          found.memberships.empty() ? found.base_membership.value() : found.memberships[0].second;
      EXPECT_EQ(membership.group_id, group_id);
    }
  }
};

TEST_F(LonelyGroupId, GivesWayWhenItsEntryIsCut) {
  ASSERT_TRUE(store_->Cut(LogIndex(1)).ok());
  Open();  // empty in between
  Write({Named(78)});
  ExpectTrusted(78);
}

TEST_F(LonelyGroupId, GivesWayWhenItsEntryRots) {
  store_.reset();
  fs_.Rot(SegmentPath(0), FileOffset(PhysicalOffset(0), PhysicalOffset(0)) + 80, 1);
  Open();
  ASSERT_TRUE(store_->recovered().recovering);
  ExpectHolds(0);
  Write({Named(78)});
  ASSERT_TRUE(store_->SaveRecovering(false).ok());
  ExpectTrusted(78);
}

TEST_F(LonelyGroupId, GivesWayToAReceivedState) {
  StoreBase base;
  base.tail = {.next_index = LogIndex(9),
               .position = PhysicalOffset(1 << 20),
               .segment_base = PhysicalOffset(1 << 20),
               .header_crc = 5,
               .last_term = Term(3),
               .last_store_time_ms = 1};
  base.membership = Three();
  base.membership.group_id = 78;
  ASSERT_TRUE(store_->Restart(base).ok());
  ExpectTrusted(78);
}

TEST_F(LogDamage, AnOlderCopyOfASegmentMeansRecoveringBehindWhatItHolds) {
  Open();
  Write(model_.MakeMany(2, 900));
  const std::string older = fs_.Bytes(SegmentPath(0));
  for (int i = 0; i < 2; ++i) Write(model_.MakeMany(1, 900));
  store_.reset();
  ASSERT_TRUE(WriteFileAtomically(fs_, SegmentPath(0), older).ok());
  Open();
  EXPECT_TRUE(store_->recovered().recovering);
  ExpectHolds(2);
}

TEST_F(LogDamage, AnEntryWithoutAReadableHeaderIsNotAppended) {
  Open();
  Write(model_.MakeMany(2, 100));
  const EntryRef good = model_.Make("good");
  const EntryRef bad = WithBadHeader(good);
  EXPECT_FALSE(store_->Append({&bad, 1}).ok());
  Write({good});  // and nothing is broken
  fs_.Crash(sim::CrashMode::kDropAll);
  Open();
  ExpectHolds(3);
}

TEST_F(LogDamage, WhatIsNoWholeEntryIsNeitherParsedNorPutInPlace) {
  Open();
  Write(model_.MakeMany(3, 100));
  const EntryRef& entry = model_.entries[1];
  EXPECT_EQ(RawLog::Parse("short").status().code(), StatusCode::kCorruption);
  EXPECT_EQ(RawLog::Parse(entry->bytes + entry->bytes).status().code(), StatusCode::kCorruption);
  EXPECT_FALSE(store_->raw().Replace(WithBadHeader(entry)).ok());
  fs_.Crash(sim::CrashMode::kDropAll);
  Open();
  ExpectHolds(3);
}

// The disk says that it wrote, and gives back something else.
TEST_F(LogDamage, AMendedEntryThatReadsDifferentlyIsNotMended) {
  bool lies = false;
  HookedFileSystem hooked(fs_, [&](HookedFileSystem::Operation operation) {
    if (!lies || operation != HookedFileSystem::Operation::kRead) return;
    fs_.Rot(SegmentPath(0), FileOffset(model_.entries[1]->position, PhysicalOffset(0)) + 100, 1);
  });
  auto opened = LogStore::Open(hooked, options_, stamp_);
  ASSERT_TRUE(opened.ok()) << opened.status();
  store_ = std::move(opened).value();
  Write(model_.MakeMany(3, 300));
  lies = true;
  EXPECT_EQ(store_->raw().Replace(model_.entries[1]).code(), StatusCode::kIoError);
  lies = false;
  EXPECT_TRUE(store_->raw().Replace(model_.entries[1]).ok());
  store_.reset();  // before its disk
}

TEST_F(LogDamage, ABeginWhoseMembershipCannotBeReadIsDamaged) {
  BeginRecord record;
  record.base.tail.next_index = LogIndex(5);
  record.base.membership = Three();
  std::string bytes = EncodeBegin(record);
  ASSERT_TRUE(DecodeBegin(bytes).has_value());
  const std::string membership = EncodeMembership(Three());
  bytes.replace(bytes.find(membership), membership.size(), membership.size(), '\xff');
  bytes.resize(bytes.size() - 4);
  AppendBe32(&bytes, Crc32c(bytes));
  EXPECT_FALSE(DecodeBegin(bytes).has_value());
}

TEST_F(LogDamage, ACheckpointWhoseMembershipCannotBeReadCostsAScan) {
  Open();
  const std::string membership = EncodeMembership(Three());
  Write({model_.Make(membership, EntryType::kMembership)});
  Write(model_.MakeMany(20, 500));
  ASSERT_TRUE(store_->WriteCheckpoint().ok());
  store_.reset();
  const std::string path = std::string(kLogDir) + "/checkpoint";
  std::string bytes = fs_.Bytes(path);
  ASSERT_NE(bytes.find(membership), std::string::npos);
  bytes.replace(bytes.find(membership), membership.size(), membership.size(), '\xff');
  bytes.resize(bytes.size() - 4);
  AppendBe32(&bytes, Crc32c(std::string(4, '\0') + bytes));
  ASSERT_TRUE(WriteFileAtomically(fs_, path, bytes).ok());
  Open();
  ExpectHolds(21);
  ASSERT_EQ(store_->recovered().memberships.size(), 1u);
  EXPECT_EQ(store_->recovered().memberships[0].second, Three());
}

}  // namespace
}  // namespace triad::dledger
