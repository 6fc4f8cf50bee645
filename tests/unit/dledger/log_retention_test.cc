// Dropping old segments, beginning anew behind a snapshot, and what a crash leaves of either.

#include <gtest/gtest.h>

#include <string>

#include "dledger/membership_codec.h"
#include "tests/unit/dledger/log_fixture.h"

namespace triad::dledger {
namespace {

using sim::CrashMode;

class LogRetention : public LogStoreFixture {
 protected:
  void SetUpFresh() {
    store_.reset();
    const auto names = fs_.List(kLogDir);
    for (std::size_t i = 0; names.ok() && i < names->size(); ++i) {
      ASSERT_TRUE(fs_.Remove(std::string(kLogDir) + "/" + (*names)[i].name).ok());
    }
    model_ = ModelLog();
    Open();
  }
  // Entries of the model from `first` on, and nothing else, are in the store.
  void ExpectHoldsFrom(std::uint64_t first) {
    EXPECT_EQ(store_->recovered().first_index, LogIndex(first));
    EXPECT_EQ(last().value(), model_.entries.size());
    ExpectReadable(first);
  }
  void ExpectReadable(std::uint64_t first) {
    std::vector<std::string> found;
    for (LogIndex next(first); next <= LogIndex(model_.entries.size());) {
      const auto range = store_->ReadRange(next, LogIndex(model_.entries.size() + 1), 1 << 20);
      ASSERT_TRUE(range.ok()) << range.status();
      for (const EntryRef& entry : *range) found.push_back(entry->bytes);
      next = range->back()->index + 1;
    }
    std::vector<std::string> want = BytesOf(model_.entries);
    want.erase(want.begin(), want.begin() + static_cast<std::ptrdiff_t>(first - 1));
    EXPECT_TRUE(found == want);
  }
  std::vector<std::int64_t> SegmentBases() {
    std::vector<std::int64_t> bases;
    const auto names = fs_.List(kLogDir);
    EXPECT_TRUE(names.ok());
    for (const DirEntry& name : *names) {
      if (const auto base = ParseSegmentName(name.name)) bases.push_back(base->value());
    }
    return bases;
  }
  // As a peer would state it that installs a snapshot of the model's log at `first`.
  StoreBase BaseOf(const ModelLog& of, std::uint64_t first) {
    StoreBase base{
        .tail = TailAfter(*of.entries[static_cast<std::size_t>(first) - 2]),
        .membership = {.group_id = 9, .voters = {PeerId("n0"), PeerId("n1")}, .learners = {}}};
    base.tail.position = of.entries[static_cast<std::size_t>(first) - 1]->segment_base;
    base.tail.segment_base = base.tail.position;
    return base;
  }
  static std::uint64_t FirstOfSegment(const ModelLog& of, std::size_t nth) {
    for (std::size_t i = 1; i < of.entries.size(); ++i) {
      if (of.entries[i]->segment_base != of.entries[i - 1]->segment_base && --nth == 0) {
        return of.entries[i]->index.value();
      }
    }
    return 0;
  }
};

TEST_F(LogRetention, DropsWholeSegmentsAndFreesTheirFiles) {
  Open();
  Write(model_.MakeMany(40, 500));  // 7 to a segment
  const std::vector<SegmentFacts> before = store_->segments();
  ASSERT_GE(before.size(), 5u);
  const auto dropped = store_->DropBefore(before[2].first + 3);
  ASSERT_TRUE(dropped.ok()) << dropped.status();
  EXPECT_EQ(*dropped, 2u);
  EXPECT_EQ(store_->begin_position(), before[2].base);
  EXPECT_EQ(store_->base().tail.next_index, before[2].first);
  EXPECT_EQ(SegmentBases().front(), before[2].base.value());
  ExpectReadable(before[2].first.value());
  EXPECT_EQ(store_->ReadRange(LogIndex(1), LogIndex(2), 1).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(store_->ReadAt(PhysicalOffset(0)).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(store_->CachedAt(PhysicalOffset(0)), nullptr);
}

TEST_F(LogRetention, DropsOnADiskWithoutOneFreeByte) {
  Open();
  Write(model_.MakeMany(40, 500));
  fs_.set_capacity(0);
  for (int i = 0; i < 3; ++i) {
    const LogIndex keep = store_->segments()[1].first;
    const auto dropped = store_->DropBefore(keep);
    ASSERT_TRUE(dropped.ok()) << dropped.status();
    EXPECT_EQ(*dropped, 1u);
    ExpectReadable(keep.value());
    fs_.set_capacity(1 << 30);  // what it gave back
    Open();
    fs_.set_capacity(0);
    EXPECT_EQ(store_->recovered().first_index, keep);
  }
}

TEST_F(LogRetention, AFullDiskThatNothingWasReservedOnIsSaidAndNothingIsLost) {
  Open();
  Write(model_.MakeMany(40, 500));
  ASSERT_TRUE(fs_.Remove(std::string(kLogDir) + "/begin.spare").ok());
  fs_.set_capacity(0);
  EXPECT_EQ(store_->DropBefore(store_->segments()[1].first).status().code(), StatusCode::kNoSpace);
  ExpectReadable(1);
}

// The last entry of what goes, or the first of what stays, whatever part of it.
TEST_F(LogRetention, RotBesideTheBorderDoesNotStopIt) {
  options_.cache_bytes = 4096;
  for (const bool is_last : {true, false}) {
    for (const std::uint64_t inside : {std::uint64_t{10}, kEntryHeaderBytes + std::uint64_t{10}}) {
      SCOPED_TRACE(std::to_string(is_last) + ", " + std::to_string(inside));
      SetUpFresh();
      Write(model_.MakeMany(40, 500));
      const LogIndex keep = store_->segments()[2].first;
      const EntryRef last = model_.entries[static_cast<std::size_t>(keep.value()) - 2];
      const EntryRef first = model_.entries[static_cast<std::size_t>(keep.value()) - 1];
      const EntryRef rotten = is_last ? last : first;
      fs_.Rot(SegmentPath(rotten->segment_base.value()),
              FileOffset(rotten->position, rotten->segment_base) + inside, 1);
      const auto dropped = store_->DropBefore(keep);
      ASSERT_TRUE(dropped.ok()) << dropped.status();
      const LogTail tail = TailAfter(*last);
      const LogTail base = store_->base().tail;
      EXPECT_EQ(base.next_index, tail.next_index);
      EXPECT_EQ(base.header_crc, tail.header_crc);
      EXPECT_EQ(base.last_term, tail.last_term);
      EXPECT_EQ(base.position, first->position);
    }
  }
}

TEST_F(LogRetention, NeverDropsTheSegmentWithTheEnd) {
  Open();
  Write(model_.MakeMany(20, 500));
  const auto dropped = store_->DropBefore(LogIndex(21));
  ASSERT_TRUE(dropped.ok());
  const std::vector<SegmentFacts> left = store_->segments();
  ASSERT_EQ(left.size(), 1u);
  ExpectReadable(left[0].first.value());
  Write(model_.MakeMany(20, 500));
  ExpectReadable(left[0].first.value());
}

TEST_F(LogRetention, ABeginSurvivesEveryStart) {
  Open();
  Write(model_.MakeMany(40, 500));
  const LogIndex keep = store_->segments()[3].first;
  ASSERT_TRUE(store_->DropBefore(keep).ok());
  ASSERT_TRUE(store_->WriteCheckpoint().ok());
  CrashAndOpen(CrashMode::kDropAll);
  ExpectHoldsFrom(keep.value());
  EXPECT_FALSE(store_->recovered().recovering);
  EXPECT_EQ(store_->recovered().term_runs.front().first, keep);
  // And without a checkpoint that vouches for it.
  ASSERT_TRUE(fs_.Remove(std::string(kLogDir) + "/checkpoint").ok());
  CrashAndOpen(CrashMode::kKeepAll);
  ExpectHoldsFrom(keep.value());
  ASSERT_TRUE(store_->Close().ok());
  Open();
  ExpectHoldsFrom(keep.value());
}

TEST_F(LogRetention, ACheckpointFromBeforeADropStillCounts) {
  Open();
  Write(model_.MakeMany(40, 500));
  ASSERT_TRUE(store_->WriteCheckpoint().ok());
  const LogIndex keep = store_->segments()[3].first;
  ASSERT_TRUE(store_->DropBefore(keep).ok());
  // Damage that a scan would stop at, but a checkpoint steps over.
  const EntryRef inside = model_.entries[static_cast<std::size_t>(keep.value()) + 2];
  fs_.Rot(SegmentPath(inside->segment_base.value()),
          FileOffset(inside->position, inside->segment_base) + 80, 1);
  fs_.Kill();
  Open();
  EXPECT_EQ(last().value(), 40u);
  EXPECT_FALSE(store_->recovered().recovering);
}

TEST_F(LogRetention, TheMembershipOfDroppedEntriesIsKept) {
  Open();
  Membership membership{.group_id = 77, .voters = {PeerId("n0"), PeerId("n2")}, .learners = {}};
  std::vector<EntryRef> entries{model_.Make(EncodeMembership(membership), EntryType::kMembership)};
  Write(entries);
  Write(model_.MakeMany(40, 500));
  const LogIndex keep = store_->segments()[2].first;
  ASSERT_TRUE(store_->DropBefore(keep).ok());
  fs_.Kill();
  Open();
  EXPECT_TRUE(store_->recovered().memberships.empty());
  EXPECT_EQ(store_->recovered().base_membership, membership);
  EXPECT_EQ(store_->recovered().base_term, Term(1));
}

TEST_F(LogRetention, ACutMayGoBackToTheBeginButNotBeforeIt) {
  Open();
  Write(model_.MakeMany(40, 500));
  const LogIndex keep = store_->segments()[3].first;
  ASSERT_TRUE(store_->DropBefore(keep).ok());
  EXPECT_EQ(store_->Cut(keep - 1).code(), StatusCode::kInvalidArgument);
  ASSERT_TRUE(store_->Cut(keep).ok());
  const EntryRef first = model_.entries[static_cast<std::size_t>(keep.value()) - 1];
  model_.entries.resize(static_cast<std::size_t>(keep.value()) - 1);
  model_.tail = TailAfter(*model_.entries.back());
  model_.tail.position = model_.tail.segment_base = first->segment_base;
  model_.term = Term(2);
  Write(model_.MakeMany(3, 100));
  CrashAndOpen(CrashMode::kDropAll);
  ExpectHoldsFrom(keep.value());
}

TEST_F(LogRetention, ADamagedBeginMeansRecoveringWithAnEmptyLog) {
  Open();
  Write(model_.MakeMany(40, 500));
  ASSERT_TRUE(store_->DropBefore(store_->segments()[3].first).ok());
  ASSERT_TRUE(store_->WriteCheckpoint().ok());
  fs_.Rot(std::string(kLogDir) + "/begin", 20, 4);
  fs_.Kill();
  Open();
  EXPECT_TRUE(store_->recovered().recovering);
  EXPECT_EQ(last(), LogIndex(0));
  EXPECT_EQ(store_->recovered().first_index, LogIndex(1));
}

TEST_F(LogRetention, AMissingBeginMeansRecoveringWithAnEmptyLog) {
  Open();
  Write(model_.MakeMany(40, 500));
  ASSERT_TRUE(store_->DropBefore(store_->segments()[3].first).ok());
  ASSERT_TRUE(store_->WriteCheckpoint().ok());
  ASSERT_TRUE(fs_.Remove(std::string(kLogDir) + "/begin").ok());
  fs_.Kill();
  Open();
  EXPECT_TRUE(store_->recovered().recovering);
  EXPECT_EQ(last(), LogIndex(0));
}

TEST_F(LogRetention, ARestartedLogBeginsWhereTheSnapshotSays) {
  ModelLog leader = model_;
  leader.MakeMany(40, 500);
  const std::uint64_t first = FirstOfSegment(leader, 3);
  Open();
  Write(model_.MakeMany(5, 300));  // a log of its own, far behind
  const StoreBase base = BaseOf(leader, first);
  ASSERT_TRUE(store_->Restart(base).ok());
  EXPECT_EQ(store_->begin_position(), base.tail.position);
  EXPECT_EQ(store_->CachedIndex(LogIndex(3)), nullptr);
  EXPECT_EQ(SegmentBases(), std::vector<std::int64_t>{base.tail.position.value()});
  model_ = leader;
  Write({model_.entries.begin() + static_cast<std::ptrdiff_t>(first) - 1, model_.entries.end()});
  CrashAndOpen(CrashMode::kDropAll);
  ExpectHoldsFrom(first);
  EXPECT_EQ(store_->recovered().base_membership, base.membership);
  EXPECT_FALSE(store_->recovered().recovering);
}

TEST_F(LogRetention, AnUnfinishedRestartIsFinishedByTheNextStart) {
  ModelLog leader = model_;
  leader.MakeMany(40, 500);
  const std::uint64_t first = FirstOfSegment(leader, 3);
  const StoreBase base = BaseOf(leader, first);
  Open();
  Write(model_.MakeMany(30, 600));
  const sim::FileDisk before = fs_.disk();
  options_.restart_at = base;
  for (std::uint64_t stop = 0;; ++stop) {
    SCOPED_TRACE("stopped after " + std::to_string(stop));
    sim::SimFileSystem fs(kSeed + stop, before);
    fs.StopAfter(stop);
    const auto tried = LogStore::Open(fs, options_, stamp_);
    const bool crashed = fs.stopped();
    fs.CrashRandomly();
    const auto opened = LogStore::Open(fs, options_, stamp_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ((*opened)->recovered().first_index, LogIndex(first));
    EXPECT_EQ((*opened)->recovered().last_index, LogIndex(first - 1));
    EXPECT_EQ((*opened)->tail().header_crc, base.tail.header_crc);
    if (!crashed) break;
  }
}

TEST_F(LogRetention, AFinishedRestartIsNotRepeated) {
  ModelLog leader = model_;
  leader.MakeMany(40, 500);
  const std::uint64_t first = FirstOfSegment(leader, 3);
  const StoreBase base = BaseOf(leader, first);
  Open();
  ASSERT_TRUE(store_->Restart(base).ok());
  model_ = leader;
  Write({model_.entries.begin() + static_cast<std::ptrdiff_t>(first) - 1, model_.entries.end()});
  options_.restart_at = base;
  CrashAndOpen(CrashMode::kDropAll);
  ExpectHoldsFrom(first);
}

// ---- checkpoints --------------------------------------------------------------------------------

TEST_F(LogRetention, ACheckpointCostsWhatCameSinceTheLast) {
  Open();
  for (int i = 0; i < 30; ++i) Write(model_.MakeMany(20, 500));
  ASSERT_TRUE(store_->WriteCheckpoint().ok());
  const std::size_t whole = fs_.Bytes(std::string(kLogDir) + "/checkpoint").size();
  Write(model_.MakeMany(7, 500));
  ASSERT_TRUE(store_->WriteCheckpoint().ok());
  const std::size_t grown = fs_.Bytes(std::string(kLogDir) + "/checkpoint").size();
  EXPECT_GT(grown, whole);
  EXPECT_LT(grown - whole, whole / 4);
  CrashAndOpen(CrashMode::kDropAll);
  ExpectHolds(607);
}

TEST_F(LogRetention, ATornCheckpointFallsBackToTheOneBefore) {
  Open();
  Write(model_.MakeMany(20, 500));
  ASSERT_TRUE(store_->WriteCheckpoint().ok());
  const std::size_t whole = fs_.Bytes(std::string(kLogDir) + "/checkpoint").size();
  // Damage in front of the first checkpoint's end: seen by nobody who trusts that checkpoint.
  const EntryRef early = model_.entries[3];
  Write(model_.MakeMany(20, 500));
  ASSERT_TRUE(store_->WriteCheckpoint().ok());
  fs_.Rot(SegmentPath(early->segment_base.value()),
          FileOffset(early->position, early->segment_base) + 80, 1);
  fs_.Rot(std::string(kLogDir) + "/checkpoint", whole + 30, 1);
  fs_.Kill();
  Open();
  EXPECT_EQ(last().value(), 40u);
  EXPECT_FALSE(store_->recovered().recovering);
}

TEST_F(LogRetention, ACheckpointBehindACutFallsBackToTheOneBefore) {
  Open();
  Write(model_.MakeMany(20, 500));
  ASSERT_TRUE(store_->WriteCheckpoint().ok());
  Write(model_.MakeMany(20, 500));
  ASSERT_TRUE(store_->WriteCheckpoint().ok());
  ASSERT_TRUE(store_->Cut(LogIndex(31)).ok());
  model_.CutFrom(LogIndex(31));
  const EntryRef early = model_.entries[3];
  fs_.Rot(SegmentPath(early->segment_base.value()),
          FileOffset(early->position, early->segment_base) + 80, 1);
  fs_.Kill();
  Open();
  EXPECT_EQ(last().value(), 30u);
  EXPECT_FALSE(store_->recovered().recovering);
}

// ---- damage below a checkpoint ------------------------------------------------------------------

TEST_F(LogRetention, DamageBelowTheCheckpointThatAReaderFindsIsRepairedByTheNextStart) {
  options_.cache_bytes = 4096;
  Open();
  Write(model_.MakeMany(40, 500));
  ASSERT_TRUE(store_->WriteCheckpoint().ok());
  const EntryRef early = model_.entries[3];
  fs_.Rot(SegmentPath(early->segment_base.value()),
          FileOffset(early->position, early->segment_base) + 80, 1);
  EXPECT_EQ(store_->ReadAt(early->position).status().code(), StatusCode::kCorruption);
  Write(model_.MakeMany(1, 500));
  ASSERT_TRUE(store_->WriteCheckpoint().ok());
  fs_.Kill();
  Open();
  EXPECT_TRUE(store_->recovered().recovering);
  EXPECT_EQ(last().value(), 3u);
}

}  // namespace
}  // namespace triad::dledger
