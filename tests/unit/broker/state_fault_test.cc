// The state's store on disks that fail, are full or rot: every failure is reported as what it is,
// and what was flushed before it is there.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <random>

#include "broker/state/leveldb_state_store.h"
#include "common/byte_order.h"
#include "common/crc32c.h"
#include "tests/sim/level_env.h"
#include "tests/sim/sim_file_system.h"
#include "tests/unit/broker/image_support.h"
#include "tests/unit/broker/state_support.h"

namespace triad::broker {
namespace {

namespace stdfs = std::filesystem;

// Of a state that ends with entry 50.
RecordList SomeImage() {
  sim::SimFileSystem fs(1);
  const auto state = OpenState([&] { return OpenMemoryStateStore(fs, "/other"); }).value();
  for (std::uint64_t i = 1; i <= 50; ++i) ApplyTopic(state.get(), i);
  CHECK(state->Flush({}).ok());
  return ImageOf(*state).value();
}

TEST(StateFault, EveryOperationThatFailsIsReportedAndCostsNothingFlushed) {
  const RecordList image = SomeImage();
  std::uint64_t count = 0;
  for (bool failed = true; failed && !HasFailure(); ++count) {
    SCOPED_TRACE("operation " + std::to_string(count) + " fails");
    sim::SimFileSystem fs(7 + count);
    const auto open = [&] { return OpenMemoryStateStore(fs, "/state"); };
    LogIndex flushed;
    const auto live = [&]() -> Status {
      for (std::uint64_t index = 1; index <= 6; index += 3) {
        const auto state = OpenState(open);
        if (!state.ok()) return state.status();
        for (std::uint64_t i = index; i < index + 3; ++i) {
          ApplyTopic(state->get(), i);
          TRIAD_RETURN_IF_ERROR((*state)->Flush({}));
          flushed = LogIndex(i);
        }
      }
      const auto state = OpenState(open);
      if (!state.ok()) return state.status();
      TRIAD_RETURN_IF_ERROR(Install(state->get(), image));
      flushed = LogIndex(50);
      return Status::Ok();
    };
    fs.FailAfter(count);
    const Status lived = live();
    failed = fs.has_failed();
    EXPECT_EQ(lived.ok(), !failed) << lived;
    fs.Crash(sim::CrashMode::kDropAll);
    const auto state = OpenState(open);
    ASSERT_TRUE(state.ok()) << state.status();
    EXPECT_GE((*state)->applied_index(), flushed);
    EXPECT_EQ((*state)->Topics().size(), (*state)->applied_index().value());
  }
  EXPECT_GE(count, 30u);
}

TEST(StateFault, AJournalThatSaysWhatCannotBeIsCorruption) {
  sim::SimFileSystem fs(1);
  const std::string body = "?neither put nor delete";
  std::string journal;
  AppendBe32(&journal, static_cast<std::uint32_t>(body.size()));
  AppendBe32(&journal, Crc32c(body));
  ASSERT_TRUE(fs.CreateDirs("/state").ok());
  ASSERT_TRUE(WriteFileAtomically(fs, "/state/journal", journal + body).ok());
  EXPECT_EQ(OpenMemoryStateStore(fs, "/state").status().code(), StatusCode::kCorruption);
}

// ---- LevelDB ------------------------------------------------------------------------------------

class LevelDbFault : public testing::Test {
 protected:
  std::string path() const { return dir_.path() + "/state"; }
  auto Open() const {
    return OpenState([this] { return OpenLevelDbStateStore(path()); });
  }
  // Every table that LevelDB wrote, where it stands.
  int SpoilTables() const {
    int spoilt = 0;
    for (const auto& entry : stdfs::directory_iterator(path())) {
      if (entry.path().extension() != ".ldb") continue;
      ++spoilt;
      std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      for (std::uintmax_t at = 0; at < entry.file_size() / 2; at += 512) {
        file.seekp(static_cast<std::streamoff>(at));
        file.put('\xa5');
      }
    }
    return spoilt;
  }

  StoreTempDir dir_;
};

TEST_F(LevelDbFault, RotIsFoundByEveryoneWhoReads) {
  const RecordList image = SomeImage();
  {
    const auto state = Open();
    ASSERT_TRUE(state.ok()) << state.status();
    std::mt19937_64 random(3);
    std::string noise(3u << 20, '\0');  // more than LevelDB keeps in memory
    for (char& c : noise) c = static_cast<char>(random());
    ApplyTopic(state->get(), 1);
    ASSERT_TRUE((*state)->Flush({{"noise", noise}}).ok());
  }
  const auto state = Open();
  ASSERT_TRUE(state.ok()) << state.status();
  ASSERT_GT(SpoilTables(), 0);
  EXPECT_EQ(ImageOf(**state).status().code(), StatusCode::kCorruption);
  EXPECT_EQ(Install(state->get(), image).code(), StatusCode::kCorruption);
  EXPECT_TRUE((*state)->FindTopic(Topic("T1")).has_value());
}

TEST_F(LevelDbFault, RotIsFoundByAStart) {
  {
    const auto state = Open();
    ASSERT_TRUE(state.ok()) << state.status();
    ApplyTopic(state->get(), 1);
    ASSERT_TRUE((*state)->Flush({{"much", std::string(3u << 20, 'x')}}).ok());
  }
  ASSERT_TRUE(Open().ok());  // makes a table of its log
  ASSERT_GT(SpoilTables(), 0);
  EXPECT_EQ(Open().status().code(), StatusCode::kCorruption);
}

TEST_F(LevelDbFault, AFullDiskIsCalledSo) {
  ASSERT_TRUE(stdfs::create_directories(path()));
  stdfs::create_symlink("/dev/full", path() + "/MANIFEST-000001");  // where LevelDB writes first
  EXPECT_EQ(Open().status().code(), StatusCode::kNoSpace);
}

TEST_F(LevelDbFault, AWriteThatTheDiskHasNoRoomForIsRefusedBeforeLevelDbSeesIt) {
  {
    const auto state =
        OpenState([this] { return OpenLevelDb({.room_bytes = ~std::uint64_t{0}}, path()); });
    ASSERT_TRUE(state.ok()) << state.status();
    ApplyTopic(state->get(), 1);
    EXPECT_EQ((*state)->Flush({}).code(), StatusCode::kNoSpace);
  }
  const auto state = Open();
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ((*state)->applied_index(), LogIndex(0));
  ApplyTopic(state->get(), 1);
  EXPECT_TRUE((*state)->Flush({}).ok());
}

TEST_F(LevelDbFault, ADirectoryThatCannotBeUsedIsAnIoError) {
  ASSERT_TRUE(stdfs::create_directories(path() + "/CURRENT"));
  EXPECT_EQ(Open().status().code(), StatusCode::kIoError);
  stdfs::remove_all(path());
  std::ofstream(path()) << "a file";
  EXPECT_FALSE(Open().ok());
}

// ---- LevelDB on a simulated disk ----------------------------------------------------------------

class LevelDbDisk : public testing::Test {
 protected:
  static constexpr std::uint64_t kFlushes = 12;
  static constexpr std::size_t kNoiseBytes = 20u << 10;  // LevelDB keeps 64 KiB in memory

  // Entry `index`, and so much else that LevelDB makes logs, tables and manifests for it.
  Status Flush(ReplicatedState* state, std::uint64_t index) {
    ApplyTopic(state, index);
    std::string noise(kNoiseBytes, '\0');
    for (char& c : noise) c = static_cast<char>(random_());
    TRIAD_RETURN_IF_ERROR(state->Flush({{"noise" + std::to_string(index % 4), noise}}));
    flushed_ = LogIndex(index);
    return Status::Ok();
  }
  static auto Open(FileSystem& fs) {
    return OpenState([&] { return sim::OpenLevelDbOn(fs, kDir); });
  }
  // Two lives; the first error ends them.
  Status Live(FileSystem& fs) {
    flushed_ = LogIndex(0);
    for (std::uint64_t index = 1; index <= kFlushes;) {
      const auto state = Open(fs);
      if (!state.ok()) return state.status();
      EXPECT_EQ((*state)->applied_index(), flushed_) << "a start lost a flush without a word";
      if ((*state)->applied_index() != flushed_) return Status::Corruption("a flush is lost");
      for (std::uint64_t end = index + kFlushes / 2; index < end; ++index) {
        TRIAD_RETURN_IF_ERROR(Flush(state->get(), index));
      }
    }
    return Open(fs).status();
  }
  void ExpectFlushed(sim::SimFileSystem& fs) const {
    fs.Crash(sim::CrashMode::kDropAll);
    const auto state = Open(fs);
    ASSERT_TRUE(state.ok()) << state.status();
    EXPECT_GE((*state)->applied_index(), flushed_);
    EXPECT_EQ((*state)->Topics().size(), (*state)->applied_index().value());
  }

  static constexpr char kDir[] = "/state";
  std::mt19937_64 random_{5};
  LogIndex flushed_;
};

TEST_F(LevelDbDisk, NoOperationThatFailsCostsWhatWasFlushed) {
  std::uint64_t count = 0;
  std::uint64_t unneeded = 0;  // LevelDB removes old files when it can
  for (bool failed = true; failed && !HasFailure(); ++count) {
    SCOPED_TRACE("operation " + std::to_string(count) + " fails");
    sim::SimFileSystem fs(7 + count);
    fs.FailAfter(count);
    const Status lived = Live(fs);
    failed = fs.has_failed();
    EXPECT_TRUE(lived.ok() || failed) << lived;
    if (lived.ok() && failed) ++unneeded;
    ExpectFlushed(fs);
  }
  EXPECT_GE(count, 150u);
  EXPECT_LE(unneeded, count / 3);
}

// Rule J: nothing is flushed into a file whose name may be gone after a crash.
TEST_F(LevelDbDisk, ANameThatIsNotDurableEndsTheFlushThatNeedsItAndIsNamed) {
  std::uint64_t count = 0;
  std::uint64_t unneeded = 0;  // a compaction behind a life's last flush; the next life does it
  for (bool failed = true; failed && !HasFailure(); ++count) {
    SCOPED_TRACE("directory sync " + std::to_string(count) + " fails");
    sim::SimFileSystem fs(7);
    fs.FailNext(sim::SimFault::kSyncDir, kDir, count);
    const Status lived = Live(fs);
    failed = fs.met().errors > 0;
    if (lived.ok()) {
      if (failed) ++unneeded;
    } else {
      EXPECT_EQ(lived.code(), StatusCode::kIoError);
      EXPECT_NE(lived.message().find(std::string("sync directory ") + kDir), std::string::npos)
          << lived;
    }
    fs.ClearFaults();
    ExpectFlushed(fs);
  }
  EXPECT_GE(count, 12u);
  EXPECT_LE(unneeded, 2u);
}

}  // namespace
}  // namespace triad::broker
