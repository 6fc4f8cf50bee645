// Zeros ahead of the log: where they are written, where they are not, and what they leave alone.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "tests/unit/dledger/log_fixture.h"

namespace triad::dledger {
namespace {

using sim::CrashMode;

// ---- large syncs ----

class LargeSyncs : public LogStoreFixture {
 protected:
  static constexpr std::uint64_t kPrepared = 1u << 20;
  static constexpr std::size_t kLarge = 900u << 10;

  LargeSyncs() {
    options_.segment_bytes = model_.segment_bytes = 64u << 20;
    options_.prepare_bytes = options_.first_prepare_bytes = kPrepared;
    Open();
    for (int i = 0; i < 10; ++i) Write(model_.MakeMany(1, kLarge));
  }
};

TEST_F(LargeSyncs, NothingIsPreparedInFrontOfThem) {
  ASSERT_TRUE(store_->Prepare().ok());
  EXPECT_EQ(store_->prepared_bytes(), 0u);
  Write(model_.MakeMany(3, kLarge));
  CrashAndOpen(CrashMode::kDropAll);
  ExpectHolds(13);
}

TEST_F(LargeSyncs, SmallOnesAreAgain) {
  for (int i = 0; i < 20; ++i) Write(model_.MakeMany(1, 1000));
  ASSERT_TRUE(store_->Prepare().ok());
  EXPECT_GE(store_->prepared_bytes(), kPrepared);
}

TEST_F(LargeSyncs, OnAScarceDiskTheirRoomIsTakenAhead) {
  fs_.set_capacity(512u << 20);
  ASSERT_TRUE(store_->Prepare().ok());
  EXPECT_GE(store_->prepared_bytes(), kPrepared);
}

// ---- whole blocks ----

class Blocks : public LogStoreFixture {
 protected:
  Blocks() {
    options_.segment_bytes = model_.segment_bytes = 1u << 20;
    options_.prepare_bytes = options_.first_prepare_bytes = 64u << 10;
    Open();
  }
  std::string FileBytes() {
    const Result<std::string> bytes = ReadFile(fs_, SegmentPath(0));
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    return bytes.ok() ? *bytes : std::string();
  }
};

TEST_F(Blocks, BehindTheTailStandZerosWhateverTheCrash) {
  for (const CrashMode mode : {CrashMode::kDropAll, CrashMode::kTorn}) {
    Write(model_.MakeMany(3, 700));
    const auto tail = static_cast<std::size_t>(FileOffset(model_.tail.position, PhysicalOffset(0)));
    CrashAndOpen(mode);
    ExpectHolds(model_.entries.size());
    EXPECT_EQ(FileBytes().find_first_not_of('\0', tail), std::string::npos);
  }
}

// A recovering peer's log may be whole behind the damage: what was not sent again stays.
TEST_F(Blocks, RemainsBehindAnEntryThatIsFilledInStayAsTheyAre) {
  Write(model_.MakeMany(4, 300));
  store_.reset();
  const EntryRef second = model_.entries[1];
  auto file = fs_.Open(SegmentPath(0), {});
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Write(FileOffset(second->payload_position(), PhysicalOffset(0)), "?").ok());
  file->reset();
  const std::string damaged = FileBytes();
  Open();
  ASSERT_TRUE(store_->recovered().recovering);
  ASSERT_EQ(last(), LogIndex(1));
  Write({second});
  const auto behind = static_cast<std::size_t>(FileOffset(second->end(), PhysicalOffset(0)));
  const std::string filled = FileBytes().substr(0, damaged.size());  // more may be prepared
  EXPECT_TRUE(filled.substr(behind) == damaged.substr(behind));
}

// ---- the machine's disk ----

TEST(LogOnDisk, WhatIsAppendedWhileZerosAreWrittenAheadIsThere) {
  std::string dir = testing::TempDir() + "/triad_prepare_XXXXXX";
  ASSERT_NE(mkdtemp(dir.data()), nullptr);
  LogStoreOptions options;
  options.dir = dir + "/log";
  options.segment_bytes = 3u << 20;
  options.prepare_bytes = 256u << 10;
  options.first_prepare_bytes = 10'000;
  const StoreStamp stamp{.group = "RaftBroker", .peer_id = "n0"};
  ModelLog model;
  model.segment_bytes = options.segment_bytes;
  for (int life = 0; life < 3; ++life) {
    auto store = LogStore::Open(PosixFileSystem(), options, stamp);
    ASSERT_TRUE(store.ok()) << store.status();
    std::atomic<bool> is_over{false};
    std::thread preparing([&] {
      while (!is_over) EXPECT_TRUE((*store)->Prepare().ok());
    });
    for (int i = 0; i < 400; ++i) {
      const std::vector<EntryRef> entry =
          model.MakeMany(1, 1 + 7919u * static_cast<unsigned>(i % 7) % 6000);
      EXPECT_TRUE((*store)->Append(entry).ok());
      if (i % 4 != 0) continue;
      EXPECT_TRUE((*store)->Sync().ok());
    }
    is_over = true;
    preparing.join();
    const LogIndex last(model.entries.size());
    EXPECT_TRUE(Contents(**store, last) == BytesOf(model.entries));
    EXPECT_TRUE((*store)->Close().ok());
  }
  const auto store = LogStore::Open(PosixFileSystem(), options, stamp);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_FALSE((*store)->recovered().recovering);
  EXPECT_EQ((*store)->recovered().last_index, LogIndex(model.entries.size()));
  EXPECT_TRUE(Contents(**store, LogIndex(model.entries.size())) == BytesOf(model.entries));
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace triad::dledger
