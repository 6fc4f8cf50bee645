#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "common/byte_order.h"
#include "common/crc32c.h"
#include "tests/unit/broker/consume_queue_fixture.h"

namespace triad::broker {
namespace {

TEST_F(ConsumeQueueTest, KnowsNothingOfAQueueNeverWritten) {
  EXPECT_FALSE(store_->Range(q_).has_value());
  EXPECT_TRUE(store_->ReadNow(q_, QueueOffset{0}, 10)->empty());
  EXPECT_TRUE(store_->Read(q_, QueueOffset{0}, 10)->empty());
}

TEST_F(ConsumeQueueTest, TheNewestUnitsAreInMemory) {
  Fill(q_, 0, 3);
  ExpectRange(q_, 0, 3);
  EXPECT_THAT(*store_->ReadNow(q_, QueueOffset{0}, 10),
              testing::ElementsAre(LogUnit(0), LogUnit(1), LogUnit(2)));
  EXPECT_THAT(*store_->ReadNow(q_, QueueOffset{1}, 1), testing::ElementsAre(LogUnit(1)));
  EXPECT_FALSE(stdfs::exists(root() + "/T")) << "no file before WriteOut";
}

TEST_F(ConsumeQueueTest, OutsideOfTheRangeThereIsNothing) {
  Fill(q_, 5, 8);
  ExpectRange(q_, 5, 8);
  for (const std::int64_t outside : {-1, 0, 4, 8, 9}) {
    EXPECT_TRUE(store_->ReadNow(q_, QueueOffset{outside}, 10)->empty()) << outside;
    EXPECT_TRUE(store_->Read(q_, QueueOffset{outside}, 10)->empty()) << outside;
  }
}

TEST_F(ConsumeQueueTest, OldUnitsLeaveTheMemoryAndAreReadFromFiles) {
  constexpr std::int64_t kCount = 5000;
  Fill(q_, 0, kCount);
  EXPECT_FALSE(store_->ReadNow(q_, QueueOffset{0}, 10).has_value());
  const auto newest = static_cast<std::int64_t>(kRingUnitsMax);
  EXPECT_TRUE(store_->ReadNow(q_, QueueOffset{kCount - newest}, 10).has_value());
  EXPECT_FALSE(store_->ReadNow(q_, QueueOffset{kCount - newest - 1}, 10).has_value());
  ExpectReads(q_, 0, kCount);
}

TEST_F(ConsumeQueueTest, UnitsHaveTwentyBytesBigEndianAndACrc) {
  store_->Append(q_, QueueOffset{0}, {PhysicalOffset{65536}, 127, 2598919});  // wire.md §14.7
  ASSERT_TRUE(store_->WriteOut().ok());
  const std::string bytes = ReadFile(PosixFileSystem(), FilePath("T", 0, kFirstFile)).value();
  const char expected[] = "\0\0\0\0\0\1\0\0\0\0\0\x7f\0\0\0\0\0\x27\xa8\x07";
  EXPECT_EQ(bytes.substr(0, 20), std::string(expected, 20));
  ASSERT_EQ(bytes.size(), kUnitBytes);
  const std::string bound = bytes.substr(0, 20) + std::string(8, '\0');  // and the offset, 0
  EXPECT_EQ(LoadBe32(bytes.data() + 20), Crc32c(bound));
}

TEST_F(ConsumeQueueTest, UnitsBelowTheEndAreIgnoredInAReplay) {
  Fill(q_, 0, 10);
  store_->Append(q_, QueueOffset{4}, LogUnit(999));
  ExpectRange(q_, 0, 10);
  ExpectReads(q_, 0, 10);
}

TEST_F(ConsumeQueueTest, AGapIsAMistake) {
  Fill(q_, 0, 3);
  EXPECT_DEATH(store_->Append(q_, QueueOffset{4}, LogUnit(4)), "a gap");
}

TEST_F(ConsumeQueueTest, ReopeningKeepsWhatIsInFrontOfTheCheckpoint) {
  Fill(q_, 0, 3000);
  Fill(Queue("T", 1), 0, 10);
  ASSERT_TRUE(store_->SyncAll().ok());
  for (const std::int64_t kept : {3000, 2999, 1500, 1}) {
    Open(LogPosition(kept));
    ExpectRange(q_, 0, kept);
    ExpectReads(q_, 0, kept);
  }
  Open(LogPosition(0));
  EXPECT_FALSE(store_->Range(q_).has_value());
  EXPECT_FALSE(stdfs::exists(FilePath("T", 0, kFirstFile)));
}

TEST_F(ConsumeQueueTest, ContinuesBehindTheCutAndIgnoresWhatItHas) {
  Fill(q_, 0, 50);
  ASSERT_TRUE(store_->SyncAll().ok());
  Open(LogPosition(30));
  Fill(q_, 20, 60);  // the replay begins a little in front
  ExpectRange(q_, 0, 60);
  ASSERT_TRUE(store_->SyncAll().ok());
  Open(LogPosition(60));
  ExpectRange(q_, 0, 60);
  ExpectReads(q_, 0, 60);
}

TEST_F(ConsumeQueueTest, AnEmptyQueueMayStartAnywhere) {
  Fill(q_, 12345, 12350);
  ASSERT_TRUE(store_->SyncAll().ok());
  EXPECT_TRUE(stdfs::exists(FilePath("T", 0, "00000000000000296280")));
  Open(LogPosition(12350));
  ExpectRange(q_, 12345, 12350);
  ExpectReads(q_, 12345, 12350);
}

TEST_F(ConsumeQueueTest, FilesRollAndTheFirstMayBeginInTheMiddle) {
  const std::int64_t begin = kUnitsPerFile - 5;
  Fill(q_, begin, kUnitsPerFile + 5);
  ASSERT_TRUE(store_->SyncAll().ok());
  EXPECT_EQ(stdfs::file_size(FilePath("T", 0, "00000000000007199880")), 5 * kUnitBytes);
  EXPECT_EQ(stdfs::file_size(FilePath("T", 0, kSecondFile)), 5 * kUnitBytes);
  for (const std::int64_t kept : {kUnitsPerFile + 5, kUnitsPerFile + 1, kUnitsPerFile, begin + 2}) {
    Open(LogPosition(kept));
    ExpectRange(q_, begin, kept);
    ExpectReads(q_, begin, kept);
  }
  EXPECT_FALSE(stdfs::exists(FilePath("T", 0, kSecondFile)));
}

TEST_F(ConsumeQueueTest, TornUnitsBehindTheCheckpointAreCutAtEveryByte) {
  Fill(q_, 0, 4);
  ASSERT_TRUE(store_->SyncAll().ok());
  FileSystem& fs = PosixFileSystem();
  const std::string path = FilePath("T", 0, kFirstFile);
  const std::string synced = ReadFile(fs, path).value();
  Fill(q_, 4, 8);
  ASSERT_TRUE(store_->WriteOut().ok());
  const std::string whole = ReadFile(fs, path).value();
  for (std::size_t size = synced.size(); size <= whole.size(); ++size) {
    for (const char* rest : {"absent", "zeros"}) {
      SCOPED_TRACE(std::to_string(size) + rest);
      std::string torn = whole.substr(0, size);
      if (rest == std::string("zeros")) torn.resize(whole.size() + 100);
      ASSERT_TRUE(WriteFileAtomically(fs, path, torn).ok());
      Open(LogPosition(4));
      ExpectRange(q_, 0, 4);
      Fill(q_, 4, 8);
      ASSERT_TRUE(store_->WriteOut().ok());
      ExpectReads(q_, 0, 8);
    }
  }
}

TEST_F(ConsumeQueueTest, UnitsThatDoNotFollowInTheLogAreCut) {
  Fill(q_, 0, 4);
  ASSERT_TRUE(store_->SyncAll().ok());
  const std::string path = FilePath("T", 0, kFirstFile);
  const std::string synced = ReadFile(PosixFileSystem(), path).value();
  const std::string old_unit = synced.substr(2 * kUnitBytes, kUnitBytes);
  ASSERT_TRUE(WriteFileAtomically(PosixFileSystem(), path, synced + old_unit).ok());
  Open(LogPosition(4));
  ExpectRange(q_, 0, 4);
}

TEST_F(ConsumeQueueTest, DeletingATopicTakesItsQueuesAndNoOthers) {
  for (const char* topic : {"T", "T2"}) {
    for (int queue : {0, 1}) Fill(Queue(topic, queue), 0, 5);
  }
  ASSERT_TRUE(store_->WriteOut().ok());
  Fill(q_, 5, 6);  // waits to be written
  store_->DeleteTopic(Topic("T"));
  EXPECT_FALSE(store_->Range(q_).has_value());
  EXPECT_FALSE(store_->Range(Queue("T", 1)).has_value());
  EXPECT_FALSE(stdfs::exists(root() + "/T"));
  ExpectRange(Queue("T2", 1), 0, 5);
  ASSERT_TRUE(store_->SyncAll().ok());
  Fill(q_, 0, 2);  // created again: from the beginning
  ASSERT_TRUE(store_->SyncAll().ok());
  Open(LogPosition(5));
  ExpectRange(q_, 0, 2);
  ExpectRange(Queue("T2", 0), 0, 5);
}

TEST_F(ConsumeQueueTest, AHalfDeletedTopicIsGoneAfterTheStart) {
  Fill(q_, 0, 5);
  ASSERT_TRUE(store_->SyncAll().ok());
  store_.reset();
  stdfs::rename(root() + "/T", root() + "/~1");
  Open(LogPosition(5));
  EXPECT_FALSE(store_->Range(q_).has_value());
  EXPECT_FALSE(stdfs::exists(root() + "/~1"));
}

TEST_F(ConsumeQueueTest, AnyTopicNameIsASafeDirectory) {
  const std::string names[] = {
      "%RETRY%g", "a|b", "..", ".", "a/b", "=41", "A", "~1", "x\n", "\xff", std::string("n\0l", 3)};
  for (const std::string& name : names) Fill(Queue(name, 0), 0, 3);
  ASSERT_TRUE(store_->SyncAll().ok());
  EXPECT_TRUE(stdfs::exists(root() + "/%RETRY%g/0")) << "a legal name stands as it is";
  Open(LogPosition(3));
  for (const std::string& name : names) ExpectRange(Queue(name, 0), 0, 3);
  for (const std::string& name : names) store_->DeleteTopic(Topic(name));
  EXPECT_TRUE(stdfs::is_empty(root()));
}

TEST_F(ConsumeQueueTest, ForeignDirectoriesAreLeftAlone) {
  stdfs::create_directories(root() + "/not.ours/0");
  stdfs::create_directories(root() + "/T/lost+found");
  Open(LogPosition(0));
  EXPECT_TRUE(stdfs::exists(root() + "/not.ours/0"));
}

TEST_F(ConsumeQueueTest, RetentionMovesTheMinimum) {
  Fill(q_, 0, 100);
  ASSERT_TRUE(store_->SetLogBegin(PhysicalOffset{40 * kLogMessageBytes + 1}).ok());
  ExpectRange(q_, 41, 100);
  EXPECT_TRUE(store_->ReadNow(q_, QueueOffset{40}, 1)->empty());
  EXPECT_TRUE(store_->Read(q_, QueueOffset{40}, 1)->empty());
  ExpectReads(q_, 41, 100);
  ASSERT_TRUE(store_->SetLogBegin(LogPosition(20)).ok());
  ExpectRange(q_, 41, 100);
  ASSERT_TRUE(store_->SetLogBegin(LogPosition(1000)).ok());
  ExpectRange(q_, 100, 100);
  Fill(q_, 100, 101);
  ExpectRange(q_, 100, 101);
}

TEST_F(ConsumeQueueTest, RetentionMayGoQueueByQueue) {
  for (int i = 0; i < 5; ++i) Fill(Queue("T", i), 0, 10);
  int steps = 1;
  while (!store_->StepLogBegin(LogPosition(4), 2).value()) ++steps;
  EXPECT_EQ(steps, 3);
  for (int i = 0; i < 5; ++i) ExpectRange(Queue("T", i), 4, 10);
  EXPECT_TRUE(store_->StepLogBegin(LogPosition(4), 2).value());
  EXPECT_FALSE(store_->StepLogBegin(LogPosition(6), 2).value());
  store_->DeleteTopic(Topic("T"));
  EXPECT_TRUE(store_->StepLogBegin(LogPosition(6), 5).value());
}

TEST_F(ConsumeQueueTest, AnExpiredQueueKeepsItsPlaceWithoutAUnit) {
  ASSERT_TRUE(store_->StartEmpty(q_, QueueOffset{70}).ok());
  ExpectRange(q_, 70, 70);
  ASSERT_TRUE(store_->SyncAll().ok());
  Open(LogPosition(80));
  ExpectRange(q_, 70, 70);
  EXPECT_TRUE(store_->Read(q_, QueueOffset{69}, 1)->empty());
  Fill(q_, 70, 75);
  ASSERT_TRUE(store_->SyncAll().ok());
  Open(LogPosition(80));
  ExpectRange(q_, 70, 75);
  ExpectReads(q_, 70, 75);
}

TEST_F(ConsumeQueueTest, ARebuildBeginsWithoutTheEmptyFiles) {
  ASSERT_TRUE(store_->StartEmpty(q_, QueueOffset{70}).ok());
  ASSERT_TRUE(store_->SyncAll().ok());
  Open(PhysicalOffset{0});
  EXPECT_FALSE(store_->Range(q_).has_value());
  Fill(q_, 71, 75);
  ExpectRange(q_, 71, 75);
}

TEST_F(ConsumeQueueTest, ClearedNothingIsLeft) {
  Fill(q_, 0, 100);
  ASSERT_TRUE(store_->SyncAll().ok());
  Fill(q_, 100, 110);
  ASSERT_TRUE(store_->Clear().ok());
  EXPECT_FALSE(store_->Range(q_).has_value());
  Fill(q_, 50, 60);
  ASSERT_TRUE(store_->SyncAll().ok());
  Open(LogPosition(60));
  ExpectRange(q_, 50, 60);
}

TEST_F(ConsumeQueueTest, RetentionDropsWholeFilesButTheLast) {
  const std::int64_t end = 2 * kUnitsPerFile + 5;
  Fill(q_, kUnitsPerFile - 1, end);
  ASSERT_TRUE(store_->SyncAll().ok());
  ASSERT_TRUE(store_->SetLogBegin(LogPosition(kUnitsPerFile + 1)).ok());
  EXPECT_FALSE(stdfs::exists(FilePath("T", 0, "00000000000007199976")));
  EXPECT_TRUE(stdfs::exists(FilePath("T", 0, kSecondFile)));
  ExpectRange(q_, kUnitsPerFile + 1, end);
  ASSERT_TRUE(store_->SetLogBegin(LogPosition(end)).ok());
  EXPECT_FALSE(stdfs::exists(FilePath("T", 0, kSecondFile)));
  Open(LogPosition(end));
  ExpectRange(q_, 2 * kUnitsPerFile, end);
  ASSERT_TRUE(store_->SetLogBegin(LogPosition(end)).ok());
  ExpectRange(q_, end, end);
}

TEST_F(ConsumeQueueTest, ASyncTaskCoversWhatWasAppendedBeforeIt) {
  Fill(q_, 0, 10);
  const std::function<Status()> sync = store_->PrepareSync(LogPosition(20)).value();
  Fill(q_, 10, 20);  // meanwhile
  ASSERT_TRUE(sync().ok());
  store_->DeleteTopic(Topic("T"));
  const std::function<Status()> after = store_->PrepareSync(LogPosition(20)).value();
  ASSERT_TRUE(sync().ok()) << "a file that is gone needs no sync";
  ASSERT_TRUE(after().ok());
}

TEST_F(ConsumeQueueTest, TenThousandQueuesStayCheap) {
  for (std::int32_t queue = 0; queue < 10000; ++queue) Fill(Queue("T", queue), 0, 1);
  ExpectRange(Queue("T", 9999), 0, 1);
  EXPECT_FALSE(stdfs::exists(root() + "/T"));
}

TEST_F(ConsumeQueueTest, RingsTogetherStayBoundedAndGiveWay) {
  const auto full = static_cast<std::int64_t>(kRingUnitsMax);
  const auto queues = static_cast<std::int32_t>(kRingUnitsTotalMax / kRingUnitsMax + 8);
  for (std::int32_t queue = 0; queue < queues; ++queue) Fill(Queue("T", queue), 0, full);
  const TopicQueue last = Queue("T", queues - 1);
  EXPECT_FALSE(store_->ReadNow(last, QueueOffset{0}, 1).has_value()) << "its ring could not grow";
  ExpectReads(last, 0, full);
  // Idle queues give memory back when others want it.
  ASSERT_TRUE(store_->WriteOut().ok());
  for (int i = 0; i < 2; ++i) {
    Fill(last, full + i * 100, full + (i + 1) * 100);
    ASSERT_TRUE(store_->WriteOut().ok());
  }
  EXPECT_FALSE(store_->ReadNow(q_, QueueOffset{0}, 1).has_value());
  EXPECT_TRUE(store_->ReadNow(q_, QueueOffset{full - 1}, 1).has_value());
  Fill(last, full + 200, 2 * full + 200);
  EXPECT_TRUE(store_->ReadNow(last, QueueOffset{full + 300}, 1).has_value()) << "now it could";
}

TEST_F(ConsumeQueueTest, ReadersMayReadWhileItGrowsAndRolls) {
  constexpr std::int64_t kCount = 40000;
  Fill(q_, 0, 1);
  std::atomic<bool> stop{false};
  std::atomic<std::int64_t> checked{0};
  std::thread reader([&] {
    std::int64_t from = 0;
    while (!stop) {
      const QueueRange range = *store_->Range(q_);
      from = (from * 31 + 17) % range.max.value();
      const auto units = store_->Read(q_, QueueOffset{from}, 64);
      ASSERT_TRUE(units.ok()) << units.status();
      ASSERT_FALSE(units.value().empty());
      for (std::size_t i = 0; i < units.value().size(); ++i) {
        ASSERT_EQ(units.value()[i], LogUnit(from + static_cast<std::int64_t>(i)));
      }
      ++checked;
    }
  });
  for (std::int64_t n = 1; n < kCount || checked < 100; ++n) Fill(q_, n, n + 1);
  stop = true;
  reader.join();
}

}  // namespace
}  // namespace triad::broker
