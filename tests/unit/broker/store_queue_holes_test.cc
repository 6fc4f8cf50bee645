// What rotted or is missing in a consume queue: never served, found, and filled again.

#include <gtest/gtest.h>

#include "tests/sim/sim_file_system.h"
#include "tests/unit/broker/consume_queue_fixture.h"

namespace triad::broker {
namespace {

TEST_F(ConsumeQueueTest, AFileMissingInTheMiddleIsAHoleThatTheLogFills) {
  const std::int64_t end = 2 * kUnitsPerFile + 5;
  Fill(q_, kUnitsPerFile - 1, end);
  ASSERT_TRUE(store_->SyncAll().ok());
  store_.reset();
  const std::string second = FilePath("T", 0, kSecondFile);
  stdfs::resize_file(second, stdfs::file_size(second) - 1);
  Open(LogPosition(end));
  ExpectRange(q_, kUnitsPerFile - 1, end);
  ExpectHole(2 * kUnitsPerFile - 1, 2 * kUnitsPerFile, "short");
  stdfs::remove(second);
  Open(LogPosition(end));
  ExpectRange(q_, kUnitsPerFile - 1, end);
  ExpectReads(q_, 2 * kUnitsPerFile, end);
  ExpectHole(kUnitsPerFile, 2 * kUnitsPerFile, "missing");
  FillHoles();
  ExpectReads(q_, kUnitsPerFile - 1, end);
  ASSERT_TRUE(store_->SyncAll().ok());
  Open(LogPosition(end));
  ExpectReads(q_, kUnitsPerFile - 1, end);
}

TEST_F(ConsumeQueueTest, AFirstFileThatSomebodyRemovedIsAHoleThatTheLogFills) {
  const std::int64_t end = kUnitsPerFile + 5;
  Fill(q_, 0, end);
  ASSERT_TRUE(store_->SyncAll().ok());
  store_.reset();
  stdfs::remove(FilePath("T", 0, kFirstFile));
  Open(LogPosition(end));
  ASSERT_TRUE(store_->SetLogBegin(LogPosition(0)).ok());
  EXPECT_EQ(store_->queues_with_holes(), 1u) << "nobody had to ask for it";
  ExpectReads(q_, kUnitsPerFile, end);
  ExpectHole(0, kUnitsPerFile, "missing");
  ExpectRange(q_, 0, end);
  FillHoles();
  ExpectReads(q_, 0, end);
  ASSERT_TRUE(store_->SyncAll().ok());
  Open(LogPosition(end));
  ASSERT_TRUE(store_->SetLogBegin(LogPosition(0)).ok());
  EXPECT_EQ(store_->queues_with_holes(), 0u);
  ExpectReads(q_, 0, end);
}

TEST_F(ConsumeQueueTest, ARemovedFirstFileMovesTheMinimumToWhatTheLogStillHolds) {
  const std::int64_t end = 2 * kUnitsPerFile + 5;
  Fill(q_, 0, end);
  ASSERT_TRUE(store_->SyncAll().ok());
  store_.reset();
  stdfs::remove(FilePath("T", 0, kFirstFile));
  const std::string second = FilePath("T", 0, kSecondFile);
  {
    const auto file = PosixFileSystem().Open(second, {}).value();  // its first unit rots as well
    ASSERT_TRUE(file->Write(0, std::string(kUnitBytes, '\0')).ok());
  }
  const std::int64_t kept = kUnitsPerFile - 2;  // the first message in the log
  Open(LogPosition(end));
  ASSERT_TRUE(store_->SetLogBegin(LogPosition(kept)).ok());
  ExpectHole(0, kUnitsPerFile + 1, "missing and rotten");
  const std::vector<QueueUnit> units = {LogUnit(kept), LogUnit(kept + 1), LogUnit(kept + 2)};
  ASSERT_TRUE(store_->Feed(q_, QueueOffset{kept}, units).ok());
  EXPECT_FALSE(store_->FindHole()->has_value());
  ExpectRange(q_, kept, end);
  ExpectReads(q_, kept, end);
}

TEST_F(ConsumeQueueTest, AFileThatRetentionDroppedIsNoHole) {
  const std::int64_t end = kUnitsPerFile + 5;
  Fill(q_, 0, end);
  ASSERT_TRUE(store_->SyncAll().ok());
  ASSERT_TRUE(store_->SetLogBegin(LogPosition(kUnitsPerFile + 2)).ok());
  ASSERT_FALSE(stdfs::exists(FilePath("T", 0, kFirstFile)));
  Open(LogPosition(end));
  ASSERT_TRUE(store_->SetLogBegin(LogPosition(kUnitsPerFile + 2)).ok());
  EXPECT_EQ(store_->queues_with_holes(), 0u);
  ExpectRange(q_, kUnitsPerFile + 2, end);
}

TEST_F(ConsumeQueueTest, ALogThatBeginsExactlyWithAFileClosesTheHoleInFrontOfIt) {
  const std::int64_t end = kUnitsPerFile + 5;
  Fill(q_, 0, end);
  ASSERT_TRUE(store_->SyncAll().ok());
  ASSERT_TRUE(store_->SetLogBegin(LogPosition(kUnitsPerFile)).ok());
  Open(LogPosition(end));
  ASSERT_TRUE(store_->SetLogBegin(LogPosition(kUnitsPerFile)).ok());
  ExpectHole(0, kUnitsPerFile, "it cannot know");
  ASSERT_TRUE(store_->CloseHole(q_).ok());  // as the repair does that found nothing in the log
  ExpectRange(q_, kUnitsPerFile, end);
  ExpectReads(q_, kUnitsPerFile, end);
}

TEST_F(ConsumeQueueTest, NoFlippedBitOfAUnitIsEverServed) {
  Fill(q_, 0, 10);
  ASSERT_TRUE(store_->SyncAll().ok());
  const std::string path = FilePath("T", 0, kFirstFile);
  const std::string whole = ReadFile(PosixFileSystem(), path).value();
  for (const std::size_t unit : {0u, 4u, 9u}) {
    for (std::size_t bit = 0; bit < 8 * kUnitBytes; ++bit) {
      SCOPED_TRACE("unit " + std::to_string(unit) + " bit " + std::to_string(bit));
      std::string rotten = whole;
      rotten[unit * kUnitBytes + bit / 8] ^= static_cast<char>(1 << bit % 8);
      ASSERT_TRUE(WriteFileAtomically(PosixFileSystem(), path, rotten).ok());
      Open(LogPosition(10));
      const auto bad = static_cast<std::int64_t>(unit);
      if (bad == 9) store_->ExtendTo(q_, QueueOffset{10});  // it was the last: the state knows it
      ExpectRange(q_, 0, 10);
      ExpectReads(q_, 0, bad);
      ExpectReads(q_, bad + 1, 10);
      ExpectHole(bad, bad + 1, "");
      FillHoles();
      ExpectReads(q_, 0, 10);
    }
    ASSERT_TRUE(WriteFileAtomically(PosixFileSystem(), path, whole).ok());
  }
}

TEST_F(ConsumeQueueTest, AUnitThatStandsAtAnotherOffsetIsNone) {
  Fill(q_, 0, 10);
  ASSERT_TRUE(store_->SyncAll().ok());
  const std::string path = FilePath("T", 0, kFirstFile);
  std::string bytes = ReadFile(PosixFileSystem(), path).value();
  bytes.replace(4 * kUnitBytes, kUnitBytes, bytes.substr(3 * kUnitBytes, kUnitBytes));
  ASSERT_TRUE(WriteFileAtomically(PosixFileSystem(), path, bytes).ok());
  Open(LogPosition(10));
  ExpectHole(4, 5, "");
}

TEST_F(ConsumeQueueTest, WhatALostQueueLacksInTheLogHasExpired) {
  store_->ExtendTo(q_, QueueOffset{10});
  ExpectRange(q_, 0, 10);
  ExpectHole(0, 10, "");
  Fill(q_, 10, 12);  // served from memory meanwhile
  ExpectReads(q_, 10, 12);
  ASSERT_TRUE(store_->WriteOut().ok());
  const std::vector<QueueUnit> kept = {LogUnit(7), LogUnit(8)};
  ASSERT_TRUE(store_->Feed(q_, QueueOffset{7}, kept).ok());
  ExpectRange(q_, 7, 12);
  FillHoles();
  ASSERT_TRUE(store_->SyncAll().ok());
  Open(LogPosition(12));
  ExpectRange(q_, 7, 12);
  ExpectReads(q_, 7, 12);
}

TEST_F(ConsumeQueueTest, AHoleOfWhichTheLogHasNothingIsClosed) {
  store_->ExtendTo(q_, QueueOffset{10});
  ASSERT_TRUE(store_->CloseHole(q_).ok());
  EXPECT_FALSE(store_->FindHole()->has_value());
  ExpectRange(q_, 10, 10);
  ASSERT_TRUE(store_->SyncAll().ok());
  Open(LogPosition(10));
  ExpectRange(q_, 10, 10);
  Fill(q_, 10, 12);
  ExpectReads(q_, 10, 12);
}

TEST_F(ConsumeQueueTest, TheMinimumFollowsRetentionAlsoWhenAHoleIsInTheWay) {
  Fill(q_, 0, 100);
  ASSERT_TRUE(store_->SyncAll().ok());
  store_.reset();
  {
    const auto file = PosixFileSystem().Open(FilePath("T", 0, kFirstFile), {}).value();
    ASSERT_TRUE(file->Write(kUnitBytes * 50, std::string(kUnitBytes, '\0')).ok());
  }
  Open(LogPosition(100));
  ASSERT_TRUE(store_->SetLogBegin(LogPosition(60)).ok());
  FillHoles();
  ExpectRange(q_, 60, 100);
}

TEST_F(ConsumeQueueTest, AHoleInAQueueThatIsDeletedIsForgotten) {
  Fill(q_, 0, 3);
  store_->ExtendTo(q_, QueueOffset{10});
  store_->DeleteTopic(Topic("T"));
  EXPECT_FALSE(store_->FindHole()->has_value());
  EXPECT_EQ(store_->queues_with_holes(), 0u);
  Fill(q_, 0, 2);
  ExpectReads(q_, 0, 2);
}

TEST(ConsumeQueueRoom, AFullDiskCostsAHoleThatIsFilledWhenThereIsRoom) {
  sim::SimFileSystem disk{1};
  disk.set_capacity(1u << 30);
  const auto store = ConsumeQueueStore::Open(disk, "/cq", PhysicalOffset{0}).value();
  const TopicQueue q = Queue("T", 0);
  const auto append = [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t n = from; n < to; ++n) store->Append(q, QueueOffset{n}, LogUnit(n));
  };
  append(0, 3000);
  ASSERT_TRUE(store->WriteOut().ok());
  disk.set_capacity(0);
  append(3000, 9000);
  EXPECT_EQ(store->Range(q)->max, QueueOffset{9000});
  EXPECT_EQ(store->Read(q, QueueOffset{8999}, 1)->front(), LogUnit(8999)) << "the newest";
  EXPECT_EQ(store->Read(q, QueueOffset{10}, 1)->front(), LogUnit(10)) << "the written";
  EXPECT_EQ(store->Read(q, QueueOffset{4000}, 1).status().code(), StatusCode::kUnavailable);
  const auto hole = store->FindHole().value();
  ASSERT_TRUE(hole.has_value());
  std::vector<QueueUnit> units;
  for (std::int64_t n = hole->begin.value(); n < hole->end.value(); ++n)
    units.push_back(LogUnit(n));
  EXPECT_EQ(store->Feed(q, hole->begin, units).code(), StatusCode::kNoSpace);
  disk.set_capacity(1u << 30);
  ASSERT_TRUE(store->Feed(q, hole->begin, units).ok());
  EXPECT_FALSE(store->FindHole()->has_value());
  append(9000, 9010);
  ASSERT_TRUE(store->WriteOut().ok());
  for (std::int64_t n = 0; n < 9010; ++n) {
    ASSERT_EQ(store->Read(q, QueueOffset{n}, 1)->front(), LogUnit(n)) << n;
  }
}

}  // namespace
}  // namespace triad::broker
