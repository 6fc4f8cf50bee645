// Zeros ahead of the log: where they are written, where they are not, and what they leave alone.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "common/zeroed_file.h"
#include "tests/unit/dledger/hooked_file_system.h"
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

// ---- past the page cache ----

// A simulated disk whose files take zeros past the cache, until that fails once.
class UncachedZeros final : public HookedFileSystem {
 public:
  explicit UncachedZeros(sim::SimFileSystem& fs) : HookedFileSystem(fs, [](Operation) {}) {}
  void FailNext(Status error) { error_ = std::move(error); }
  int written() const { return written_; }

  Result<std::unique_ptr<File>> Open(const std::string& path, OpenFlags flags) override {
    Result<std::unique_ptr<File>> file = HookedFileSystem::Open(path, flags);
    if (!file.ok()) return file.status();
    return std::unique_ptr<File>(std::make_unique<UncachedFile>(std::move(*file), *this));
  }

 private:
  class UncachedFile final : public File, public ZeroedFile {
   public:
    UncachedFile(std::unique_ptr<File> file, UncachedZeros& owner)
        : file_(std::move(file)), owner_(owner) {}
    Status Write(std::uint64_t offset, std::span<const std::string_view> parts) override {
      return file_->Write(offset, parts);
    }
    Result<std::size_t> Read(std::uint64_t offset, std::span<char> buffer) const override {
      return file_->Read(offset, buffer);
    }
    Status Sync() override { return file_->Sync(); }
    Status SyncAll() override { return file_->SyncAll(); }
    Status Truncate(std::uint64_t size) override { return file_->Truncate(size); }
    Result<std::uint64_t> Size() const override { return file_->Size(); }
    Status Lock() override { return file_->Lock(); }
    Status WriteZerosUncached(std::uint64_t offset, std::uint64_t size) override {
      TRIAD_RETURN_IF_ERROR(std::exchange(owner_.error_, Status::Ok()));
      ++owner_.written_;
      return file_->Write(offset, std::string_view(std::string(size, '\0')));
    }

   private:
    const std::unique_ptr<File> file_;
    UncachedZeros& owner_;
  };

  Status error_;
  int written_ = 0;
};

TEST_F(Blocks, ZerosThatCannotPassByTheCacheAreReportedAndWrittenByTheNextAttempt) {
  UncachedZeros disk(fs_);
  store_.reset();
  store_ = LogStore::Open(disk, options_, stamp_).value();
  int written = 0;
  for (const StatusCode code : {StatusCode::kIoError, StatusCode::kNoSpace}) {
    Write(model_.MakeMany(10, 4000));
    const std::uint64_t before = store_->prepared_bytes();
    ASSERT_LT(before, options_.prepare_bytes);
    disk.FailNext(Status(code, "no zeros"));
    EXPECT_EQ(store_->Prepare().code(), code);
    EXPECT_EQ(store_->prepared_bytes(), before) << "nothing rests on what was not written";
    ASSERT_TRUE(store_->Prepare().ok());
    EXPECT_GE(store_->prepared_bytes(), options_.prepare_bytes);
    EXPECT_GT(disk.written(), std::exchange(written, disk.written()));
  }
  store_.reset();
  fs_.Crash(CrashMode::kDropAll);
  Open();
  ExpectHolds(20);
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
