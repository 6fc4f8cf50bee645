#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/unit/dledger/log_fixture.h"

namespace triad::dledger {
namespace {

struct TempDir {
  TempDir()
      : path(std::filesystem::path(::testing::TempDir()) /
             ("triad-guard-" + std::to_string(::getpid()))) {}
  ~TempDir() { std::filesystem::remove_all(path); }
  const std::string path;
};

class StoreGuardTest : public LogStoreFixture {
 protected:
  static void Put(FileSystem& fs, const std::string& path, std::uint64_t size) {
    ASSERT_TRUE(fs.CreateDirs(path.substr(0, path.rfind('/'))).ok());
    Result<std::unique_ptr<File>> file = fs.Open(path, OpenFlags{.create = true});
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->Truncate(size).ok());
  }
  static void ExpectSays(const Status& status, StatusCode code, const std::string& part) {
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_NE(status.message().find(part), std::string::npos) << status;
  }
};

TEST_F(StoreGuardTest, OPS_1_ASecondProcessIsRefusedByNameAndPid) {
  Open();
  const Result<std::unique_ptr<LogStore>> second = LogStore::Open(fs_, options_, stamp_);
  ExpectSays(second.status(), StatusCode::kPermissionDenied, kLogDir);
  ExpectSays(second.status(), StatusCode::kPermissionDenied, std::to_string(::getpid()));
  fs_.Kill();
  Open();
}

TEST_F(StoreGuardTest, TheLockHoldsOnRealFiles) {
  const TempDir temporary;
  options_.dir = temporary.path;
  Result<std::unique_ptr<LogStore>> first = LogStore::Open(PosixFileSystem(), options_, stamp_);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = LogStore::Open(PosixFileSystem(), options_, stamp_);
  ExpectSays(second.status(), StatusCode::kPermissionDenied, std::to_string(::getpid()));
  first->reset();
  EXPECT_TRUE(LogStore::Open(PosixFileSystem(), options_, stamp_).ok());
}

TEST_F(StoreGuardTest, AForeignStoreIsRefusedNamingBoth) {
  Open();
  store_.reset();
  stamp_.peer_id = "n2";
  Status refused = TryOpen().status();
  ExpectSays(refused, StatusCode::kInvalidArgument, "peer n0 of group RaftBroker");
  ExpectSays(refused, StatusCode::kInvalidArgument, "peer n2 of group RaftBroker");
  stamp_ = StoreStamp{.group = "Other", .peer_id = "n0"};
  ExpectSays(TryOpen().status(), StatusCode::kInvalidArgument, "peer n0 of group Other");
  stamp_ = StoreStamp{.group = "RaftBroker", .peer_id = "n0", .format = 2};
  ExpectSays(TryOpen().status(), StatusCode::kInvalidArgument, "format 1");
}

TEST_F(StoreGuardTest, ADamagedStampIsRefused) {
  Open();
  store_.reset();
  fs_.Rot(std::string(kLogDir) + "/stamp", 10, 1);
  EXPECT_EQ(TryOpen().status().code(), StatusCode::kCorruption);
}

TEST_F(StoreGuardTest, ALogWithoutItsStampIsRefused) {
  Open();
  Write(model_.MakeMany(1, 10));
  store_.reset();
  ASSERT_TRUE(fs_.Remove(std::string(kLogDir) + "/stamp").ok());
  ExpectSays(TryOpen().status(), StatusCode::kCorruption, "stamp");
}

TEST_F(StoreGuardTest, AJavaStoreIsRefusedInWords) {
  struct Case {
    const char* path;
    std::uint64_t size;
    bool java;
  };
  const Case cases[] = {
      {"/store/config/topics.json", 10, true},
      {"/store/commitlog/00000000000000000000", 1u << 30, true},
      {"/store/commitlog/00000000000000000000", 4096, false},
      {"/store/consumequeue/TopicTest/0/00000000000000000000", 6'000'000, true},
      {"/store/consumequeue/TopicTest/0/00000000000000000000", 2000, false},
      {"/store/dledger-n0/data/00000000000000000000", 1u << 20, true},
      {"/store/other/data/00000000000000000000", 1u << 20, false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.path);
    const TempDir temporary;  // real, for its sparse files
    Put(PosixFileSystem(), temporary.path + c.path, c.size);
    options_.dir = temporary.path + "/store/log";
    const auto opened = LogStore::Open(PosixFileSystem(), options_, stamp_);
    if (c.java) {
      ExpectSays(opened.status(), StatusCode::kInvalidArgument, "Java");
    } else {
      EXPECT_TRUE(opened.ok()) << opened.status();
    }
  }
}

TEST_F(StoreGuardTest, AStoreWhoseMakingCrashedAnywhereIsMadeAnew) {
  for (std::uint64_t stop = 0;; ++stop) {
    SCOPED_TRACE(stop);
    bool made = false;
    for (int mode = 0; mode < sim::kCrashModes; ++mode) {
      sim::SimFileSystem fs(kSeed + stop);
      fs.StopAfter(stop);
      made = LogStore::Open(fs, options_, stamp_).ok();
      fs.Crash(static_cast<sim::CrashMode>(mode));
      const auto store = LogStore::Open(fs, options_, stamp_);
      ASSERT_TRUE(store.ok()) << store.status();
      EXPECT_FALSE((*store)->recovered().recovering);
      EXPECT_EQ((*store)->recovered().last_index, LogIndex(0));
    }
    if (made) break;
  }
}

}  // namespace
}  // namespace triad::dledger
