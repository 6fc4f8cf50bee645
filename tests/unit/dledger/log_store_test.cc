#include <gtest/gtest.h>

#include <string>

#include "dledger/membership_codec.h"
#include "tests/unit/dledger/log_fixture.h"

namespace triad::dledger {
namespace {

using sim::CrashMode;
using sim::SimFault;

class LogStoreTest : public LogStoreFixture {};

TEST_F(LogStoreTest, AFreshStoreIsEmptyAndMayVote) {
  Open();
  EXPECT_EQ(last(), LogIndex(0));
  EXPECT_FALSE(store_->recovered().recovering);
  EXPECT_EQ(store_->recovered().hard_state, HardState{});
  EXPECT_EQ(store_->tail().next_index, LogIndex(1));
  EXPECT_GE(store_->prepared_bytes(), options_.first_prepare_bytes);
}

TEST_F(LogStoreTest, ReadsBackWhatWasAppended) {
  Open();
  Write(model_.MakeMany(20, 300));
  EXPECT_EQ(store_->end_position(), model_.tail.position);
  EXPECT_TRUE(Contents(*store_, LogIndex(20)) == BytesOf(model_.entries));
}

TEST_F(LogStoreTest, KeepsEverythingAcrossACleanStart) {
  Open();
  Write(model_.MakeMany(20, 300));
  ASSERT_TRUE(store_->Close().ok());
  Open();
  ExpectHolds(20);
  EXPECT_EQ(store_->tail().position, model_.tail.position);
  EXPECT_EQ(store_->tail().header_crc, model_.tail.header_crc);
  Write(model_.MakeMany(5, 300));
  Open();
  ExpectHolds(25);
}

TEST_F(LogStoreTest, SyncedEntriesSurviveTheWorstCrash) {
  Open();
  for (int i = 0; i < 10; ++i) Write(model_.MakeMany(3, 200));
  CrashAndOpen(CrashMode::kDropAll);
  ExpectHolds(30);
  EXPECT_FALSE(store_->recovered().recovering);
}

TEST_F(LogStoreTest, UnsyncedEntriesAreGoneAfterPowerLossWithoutHarm) {
  Open();
  Write(model_.MakeMany(3, 200));
  ASSERT_TRUE(store_->Append(ModelLog(model_).MakeMany(2, 100)).ok());
  CrashAndOpen(CrashMode::kDropAll);
  ExpectHolds(3);
  EXPECT_FALSE(store_->recovered().recovering);
}

TEST_F(LogStoreTest, UnsyncedEntriesSurviveTheDeathOfTheProcess) {
  Open();
  ASSERT_TRUE(store_->Append(model_.MakeMany(7, 200)).ok());
  fs_.Kill();
  Open();
  ExpectHolds(7);
  // And the start made them durable: it may speak of them.
  CrashAndOpen(CrashMode::kDropAll);
  ExpectHolds(7);
}

TEST_F(LogStoreTest, ABatchIsOneWrite) {
  Open();
  ASSERT_TRUE(store_->Prepare().ok());
  const std::uint64_t before = fs_.changes();
  ASSERT_TRUE(store_->Append(model_.MakeMany(10, 50)).ok());
  EXPECT_EQ(fs_.changes() - before, 1u);
}

TEST_F(LogStoreTest, RefusesEntriesThatDoNotFollow) {
  Open();
  model_.MakeMany(1, 10);
  const std::vector<EntryRef> second = model_.MakeMany(1, 10);
  EXPECT_EQ(store_->Append(second).code(), StatusCode::kCorruption);
  EXPECT_EQ(store_->end_position(), PhysicalOffset(0));
}

TEST_F(LogStoreTest, FindsAnEntryByAnyPositionInsideIt) {
  options_.cache_bytes = 0;
  Open();
  Write(model_.MakeMany(40, 333));
  for (const EntryRef& entry : model_.entries) {
    for (const PhysicalOffset at : {entry->position, entry->position + 100, entry->end() - 1}) {
      const Result<EntryRef> read = store_->ReadAt(at);
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ((*read)->index, entry->index);
    }
  }
  EXPECT_EQ(store_->ReadAt(model_.tail.position).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(store_->ReadAt(PhysicalOffset(-1)).status().code(), StatusCode::kNotFound);
}

TEST_F(LogStoreTest, TheRestOfARolledSegmentHoldsNoEntry) {
  Open();
  ASSERT_TRUE(store_->Prepare().ok());
  Write(model_.MakeMany(2, 3000));
  EXPECT_EQ(model_.entries[1]->position, PhysicalOffset(4096));
  EXPECT_EQ(store_->ReadAt(model_.entries[0]->end()).status().code(), StatusCode::kNotFound);
  const std::string bytes = fs_.Bytes(SegmentPath(0));
  const std::uint64_t end = FileOffset(model_.entries[0]->end(), PhysicalOffset(0));
  ASSERT_GT(bytes.size(), end);
  EXPECT_EQ(bytes.find_first_not_of('\0', end), std::string::npos);
}

TEST_F(LogStoreTest, AnEntryLargerThanASegmentIsKept) {
  Open();
  Write(model_.MakeMany(2, 100));
  Write(model_.MakeMany(1, 10'000));
  Write(model_.MakeMany(2, 100));
  CrashAndOpen(CrashMode::kDropAll);
  ExpectHolds(5);
}

TEST_F(LogStoreTest, ALeadersLargerSegmentsWinOverOwnSetting) {
  model_.segment_bytes = 64 * 1024;
  Open();
  for (int i = 0; i < 100; ++i) {
    Write(model_.MakeMany(1, 1000));
    ASSERT_TRUE(store_->Prepare().ok());
  }
  CrashAndOpen(CrashMode::kDropAll);
  ExpectHolds(100);
  EXPECT_TRUE(fs_.Exists(SegmentPath(64 * 1024)));
}

TEST_F(LogStoreTest, ALeadersSmallerSegmentsWinOverOwnSetting) {
  options_.segment_bytes = 64 * 1024;
  options_.prepare_bytes = 80 * 1024;
  Open();
  ASSERT_TRUE(store_->Prepare().ok());
  for (int i = 0; i < 20; ++i) Write(model_.MakeMany(1, 1000));
  CrashAndOpen(CrashMode::kDropAll);
  ExpectHolds(20);
}

TEST_F(LogStoreTest, ARangeIsBoundedByBytesButNeverEmpty) {
  Open();
  Write(model_.MakeMany(10, 500));
  const auto some = store_->ReadRange(LogIndex(2), LogIndex(9), 1500);
  ASSERT_TRUE(some.ok());
  EXPECT_EQ(some->size(), 2u);
  EXPECT_EQ(some->front()->index, LogIndex(2));
  const auto one = store_->ReadRange(LogIndex(2), LogIndex(9), 1);
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->size(), 1u);
  const auto rest = store_->ReadRange(LogIndex(8), LogIndex(100), 1 << 20);
  ASSERT_TRUE(rest.ok());
  EXPECT_EQ(rest->size(), 3u);
  EXPECT_EQ(store_->ReadRange(LogIndex(11), LogIndex(12), 1).status().code(),
            StatusCode::kNotFound);
  EXPECT_EQ(store_->ReadRange(LogIndex(0), LogIndex(3), 1).status().code(), StatusCode::kNotFound);
}

TEST_F(LogStoreTest, TheCacheServesWithoutTheFileAndIsBounded) {
  options_.cache_bytes = 4000;
  Open();
  Write(model_.MakeMany(30, 500));
  EXPECT_NE(store_->CachedIndex(LogIndex(30)), nullptr);
  EXPECT_NE(store_->CachedAt(model_.entries[29]->position + 10), nullptr);
  EXPECT_EQ(store_->CachedIndex(LogIndex(1)), nullptr) << "the oldest left";
  EXPECT_EQ(store_->CachedAt(model_.entries[0]->position), nullptr);
  ASSERT_TRUE(store_->ReadAt(model_.entries[0]->position).ok());
}

TEST_F(LogStoreTest, AReadThatFindsDamageSaysWhere) {
  options_.cache_bytes = 0;
  Open();
  Write(model_.MakeMany(5, 100));
  fs_.Rot(SegmentPath(0), FileOffset(model_.entries[2]->payload_position(), PhysicalOffset(0)), 1);
  const Result<EntryRef> read = store_->ReadAt(model_.entries[2]->position);
  EXPECT_EQ(read.status().code(), StatusCode::kCorruption);
  EXPECT_NE(read.status().message().find(std::to_string(model_.entries[2]->position.value())),
            std::string::npos)
      << read.status();
}

TEST_F(LogStoreTest, AFailedWriteOrSyncIsNeverRepeated) {
  for (const SimFault fault : {SimFault::kWrite, SimFault::kSync}) {
    SCOPED_TRACE(static_cast<int>(fault));
    Open();
    const std::vector<EntryRef> entries = ModelLog(model_).MakeMany(1, 100);
    fs_.FailNext(fault, SegmentName(PhysicalOffset(0)));
    const Status written = store_->Append(entries);
    const Status synced = store_->Sync();
    EXPECT_EQ(synced.code(), StatusCode::kIoError);
    EXPECT_EQ(written.ok(), fault == SimFault::kSync);
    EXPECT_EQ(store_->Sync().code(), StatusCode::kIoError) << "the second sync would say OK";
    EXPECT_EQ(store_->Append({}).code(), StatusCode::kIoError);
    EXPECT_EQ(store_->SaveHardState({}).code(), StatusCode::kIoError);
  }
}

TEST_F(LogStoreTest, WhatAFailedSyncLeftInMemoryIsMadeDurableByTheNextStart) {
  for (std::uint64_t seed = 0; seed < 16; ++seed) {  // each keeps and loses other pages
    sim::SimFileSystem fs(seed);
    Result<std::unique_ptr<LogStore>> store = LogStore::Open(fs, options_, stamp_);
    ASSERT_TRUE(store.ok()) << store.status();
    ModelLog model;
    ASSERT_TRUE((*store)->Append(model.MakeMany(6, 300)).ok());
    fs.FailNext(SimFault::kSync, SegmentName(PhysicalOffset(0)));
    EXPECT_FALSE((*store)->Sync().ok());
    for (const CrashMode mode : {CrashMode::kKeepAll, CrashMode::kDropAll}) {
      store->reset();
      mode == CrashMode::kKeepAll ? fs.Kill() : fs.Crash(mode);
      store = LogStore::Open(fs, options_, stamp_);
      ASSERT_TRUE(store.ok()) << store.status();
      EXPECT_EQ((*store)->recovered().last_index, LogIndex(6));
      EXPECT_TRUE(Contents(**store, LogIndex(6)) == BytesOf(model.entries));
    }
  }
}

TEST_F(LogStoreTest, PrepareReallyWritesAheadAndMovesTheWindow) {
  Open();
  ASSERT_TRUE(store_->Prepare().ok());
  EXPECT_GE(store_->prepared_bytes(), options_.prepare_bytes);
  EXPECT_EQ(fs_.DurableBytes(SegmentPath(0)).size(), kSegmentHeadBytes + 4096);
  Write(model_.MakeMany(2, 1000));
  EXPECT_LT(store_->prepared_bytes(), options_.prepare_bytes);
  ASSERT_TRUE(store_->Prepare().ok());
  EXPECT_GE(store_->prepared_bytes(), options_.prepare_bytes);
  EXPECT_TRUE(fs_.Exists(SegmentPath(4096))) << "the next segment is there before it is needed";
}

TEST_F(LogStoreTest, ThePreparedNextSegmentSurvivesACrashOnceUsed) {
  Open();
  Write(model_.MakeMany(3, 1000));
  ASSERT_TRUE(store_->Prepare().ok());
  Write(model_.MakeMany(3, 1000));
  CrashAndOpen(CrashMode::kDropAll);
  ExpectHolds(6);
}

TEST_F(LogStoreTest, NoSpaceForPreparingIsNotFatal) {
  Open();
  ASSERT_TRUE(store_->Prepare().ok());
  fs_.set_capacity(0);
  Write(model_.MakeMany(3, 1000));  // goes into what is prepared
  EXPECT_EQ(store_->Prepare().code(), StatusCode::kNoSpace);
  ASSERT_TRUE(store_->SaveHardState({.term = Term(9), .voted_for = PeerId("n1")}).ok());
  EXPECT_TRUE(Contents(*store_, LogIndex(3)) == BytesOf(model_.entries));
  fs_.set_capacity(1 << 30);
  EXPECT_TRUE(store_->Prepare().ok());
  Write(model_.MakeMany(3, 1000));
  CrashAndOpen(CrashMode::kDropAll);
  ExpectHolds(6);
}

TEST_F(LogStoreTest, OpensOnAFullDisk) {
  Open();
  Write(model_.MakeMany(3, 1000));
  ASSERT_TRUE(store_->Close().ok());
  fs_.set_capacity(0);
  options_.first_prepare_bytes = 64 * 1024;
  Open();
  ExpectHolds(3);
}

TEST_F(LogStoreTest, TellsRaftTheTermsAndTheMemberships) {
  Open();
  const Membership members{.group_id = 42, .voters = {PeerId("n0"), PeerId("n1")}, .learners = {}};
  model_.Make(EncodeMembership(members), EntryType::kMembership);
  model_.MakeMany(3, 100);
  model_.term = Term(4);
  model_.MakeMany(2, 100);
  Write(model_.entries);
  for (const bool with_checkpoint : {false, true}) {
    SCOPED_TRACE(with_checkpoint);
    if (with_checkpoint) {
      ASSERT_TRUE(store_->WriteCheckpoint().ok());
    }
    Open();
    const Recovered& recovered = store_->recovered();
    ASSERT_EQ(recovered.term_runs.size(), 2u);
    EXPECT_EQ(recovered.term_runs[0].first, LogIndex(1));
    EXPECT_EQ(recovered.term_runs[0].term, Term(1));
    EXPECT_EQ(recovered.term_runs[1].first, LogIndex(5));
    EXPECT_EQ(recovered.term_runs[1].term, Term(4));
    ASSERT_EQ(recovered.memberships.size(), 1u);
    EXPECT_EQ(recovered.memberships[0].first, LogIndex(1));
    EXPECT_EQ(recovered.memberships[0].second, members);
  }
}

}  // namespace
}  // namespace triad::dledger
