// A checkpoint of many queues: what is in memory only goes into one file, and is there again at the
// next start.

#include "broker/store/queue_tails.h"
#include "tests/unit/broker/consume_queue_fixture.h"

namespace triad::broker {
namespace {

constexpr std::int32_t kManyQueues = 100;

class QueueTailsTest : public ConsumeQueueTest {
 protected:
  // Units [from, to) of each queue. Unit n of every queue is message n: enough for a test.
  void FillAll(std::int64_t from, std::int64_t to, std::int32_t queues = kManyQueues) {
    for (std::int32_t queue = 0; queue < queues; ++queue) Fill(Queue("T", queue), from, to);
  }
  void ExpectAll(std::int64_t min, std::int64_t max, std::int32_t queues = kManyQueues) {
    for (std::int32_t queue = 0; queue < queues; ++queue) {
      ExpectRange(Queue("T", queue), min, max);
      ExpectReads(Queue("T", queue), min, max);
    }
  }
  // A checkpoint at message `end`.
  void Sync(std::int64_t end) {
    const auto sync = store_->PrepareSync(LogPosition(end));
    ASSERT_TRUE(sync.ok() && sync.value()().ok());
  }
  void Damage(std::int64_t at) {
    const auto file = PosixFileSystem().Open(tails(), {});
    ASSERT_TRUE(file.ok() && (*file)->Write(static_cast<std::uint64_t>(at), "rot").ok());
  }
  std::string tails() const { return root() + "/tails"; }
};

TEST_F(QueueTailsTest, ManyQueuesTakeOneFileAndAreThereAgain) {
  FillAll(0, 10);
  Sync(10);
  EXPECT_TRUE(stdfs::exists(tails()));
  EXPECT_FALSE(stdfs::exists(root() + "/T"));
  for (int start = 0; start < 2; ++start) {
    Open(LogPosition(10));
    ExpectAll(0, 10);
  }
  Open(LogPosition(7));  // the checkpoint before, the power went between the two
  ExpectAll(0, 7);
  FillAll(7, 20);
  Sync(20);
  Open(LogPosition(20));
  ExpectAll(0, 20);
}

TEST_F(QueueTailsTest, WhatMemoryDoesNotHoldStandsInFrontOfTheTail) {
  FillAll(0, kRingUnitsMax + 100);  // each wrote its ring out once
  Sync(kRingUnitsMax + 100);
  FillAll(kRingUnitsMax + 100, 2 * kRingUnitsMax + 200);  // and again: behind the checkpoint
  Open(LogPosition(kRingUnitsMax + 100));
  ExpectAll(0, kRingUnitsMax + 100);
}

// What a queue's file has behind the checkpoint's tail was not synced.
TEST_F(QueueTailsTest, TheTailCountsForMoreThanTheFileBehindIt) {
  FillAll(0, 10);
  Sync(10);
  FillAll(10, 20);
  ASSERT_TRUE(store_->WriteOut().ok());
  const auto file = PosixFileSystem().Open(FilePath("T", 5, kFirstFile), {});
  ASSERT_TRUE(file.ok() && (*file)->Write(3 * kUnitBytes, "torn").ok());
  Open(LogPosition(10));
  ExpectAll(0, 10);
}

TEST_F(QueueTailsTest, FewQueuesGetTheirFilesAndTheTailsGo) {
  FillAll(0, 10);
  Sync(10);
  Open(LogPosition(10));
  ASSERT_TRUE(store_->WriteOut().ok());
  Fill(q_, 10, 20);
  Sync(20);
  EXPECT_FALSE(stdfs::exists(tails()));
  Open(LogPosition(20));
  ExpectRange(q_, 0, 20);
  ExpectReads(q_, 0, 20);
  ExpectRange(Queue("T", kManyQueues - 1), 0, 10);
}

// A program that knows no tails ran in between, and wrote the queues for a later checkpoint.
TEST_F(QueueTailsTest, TailsOfAnOlderCheckpointDoNotCount) {
  FillAll(0, 10);
  Sync(10);
  stdfs::copy(tails(), dir_.path() + "/old");
  FillAll(10, 20);
  ASSERT_TRUE(store_->WriteOut().ok());
  Sync(20);
  stdfs::copy(dir_.path() + "/old", tails(), stdfs::copy_options::overwrite_existing);
  Open(LogPosition(20));
  ExpectAll(0, 20);
}

TEST_F(QueueTailsTest, DamagedOnesAreLeftOut) {
  FillAll(0, 10);
  Sync(10);
  Damage(5000);
  Open(LogPosition(10));
  EXPECT_FALSE(store_->Range(q_).has_value()) << "the log has it";
  FillAll(0, 10);
  Sync(10);
  Damage(9);  // its checkpoint
  Open(LogPosition(10));
  EXPECT_FALSE(store_->Range(q_).has_value());
}

TEST_F(QueueTailsTest, FilesThatAreLostAreAHoleInFrontOfTheTail) {
  FillAll(0, 10);
  ASSERT_TRUE(store_->WriteOut().ok());
  FillAll(10, 20);
  Sync(20);
  const auto file = PosixFileSystem().Open(FilePath("T", 0, kFirstFile), {});
  ASSERT_TRUE(file.ok() && (*file)->Truncate(6 * kUnitBytes).ok());
  stdfs::remove_all(root() + "/T/1");
  Open(LogPosition(20));
  EXPECT_FALSE(store_->Range(Queue("T", 1)).has_value()) << "its tail alone would hide the loss";
  ExpectRange(q_, 0, 20);
  ExpectHole(6, 10, "the file lost its end");
  FillHoles();
  ExpectReads(q_, 0, 20);
}

TEST_F(QueueTailsTest, ADeletedTopicIsNotInTheNextOnes) {
  FillAll(0, 10);
  for (std::int32_t queue = 0; queue < kManyQueues; ++queue) Fill(Queue("U", queue), 0, 10);
  Sync(10);
  store_->DeleteTopic(Topic("T"));
  Sync(11);
  Open(LogPosition(11));
  EXPECT_FALSE(store_->Range(q_).has_value());
  ExpectRange(Queue("U", 0), 0, 10);
  ASSERT_TRUE(store_->Clear().ok());
  Open(LogPosition(11));
  EXPECT_TRUE(store_->Queues().empty());
}

// An expired queue of which only the tail said where it continues.
TEST_F(QueueTailsTest, TheMinimumFollowsTheLogInsideOfTheTail) {
  FillAll(0, 10);
  ASSERT_TRUE(store_->SetLogBegin(LogPosition(4)).ok());
  Sync(10);
  Open(LogPosition(10));
  ASSERT_TRUE(store_->SetLogBegin(LogPosition(4)).ok());
  ExpectAll(4, 10);
  ASSERT_TRUE(store_->SetLogBegin(LogPosition(10)).ok());
  ExpectRange(q_, 10, 10);
  Fill(q_, 10, 11);
  ExpectRange(q_, 10, 11);
}

TEST_F(QueueTailsTest, WhatACrashLeftOfNewOnesIsRemoved) {
  FillAll(0, 10);
  ASSERT_TRUE(store_->PrepareSync(LogPosition(10)).ok());  // its task never ran
  EXPECT_TRUE(stdfs::exists(root() + "/tails.1"));
  Open(LogPosition(0));
  EXPECT_FALSE(stdfs::exists(root() + "/tails.1"));
  EXPECT_FALSE(store_->Range(q_).has_value());
}

// They write out for it what the tails would have kept in memory.
TEST_F(QueueTailsTest, IdleQueuesGiveTheirMemoryBack) {
  const auto full = static_cast<std::int64_t>(kRingUnitsMax);
  const auto queues = static_cast<std::int32_t>(kRingUnitsTotalMax / kRingUnitsMax + 8);
  FillAll(0, full, queues);
  for (int i = 0; i < 2; ++i) {
    Fill(Queue("T", queues - 1), full + i * 100, full + (i + 1) * 100);
    Sync(full + 200);
  }
  EXPECT_FALSE(store_->ReadNow(q_, QueueOffset{0}, 1).has_value());
  Open(LogPosition(full));
  ExpectAll(0, full, queues);
}

}  // namespace
}  // namespace triad::broker
