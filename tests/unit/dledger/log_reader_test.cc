// Readers beside a cut, at the worst moment: between the look at the index and the read.

#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "tests/unit/dledger/log_fixture.h"

namespace triad::dledger {
namespace {

// A file system that calls the test before each read of a file.
class HookedFileSystem : public FileSystem {
 public:
  HookedFileSystem(FileSystem& fs, std::function<void()>* before_read)
      : fs_(fs), before_read_(before_read) {}

  Result<std::unique_ptr<File>> Open(const std::string& path, OpenFlags flags) override {
    Result<std::unique_ptr<File>> file = fs_.Open(path, flags);
    if (!file.ok()) return file.status();
    return std::unique_ptr<File>(std::make_unique<HookedFile>(std::move(*file), before_read_));
  }
  Status Rename(const std::string& from, const std::string& to) override {
    return fs_.Rename(from, to);
  }
  Status Remove(const std::string& path) override { return fs_.Remove(path); }
  Status CreateDirs(const std::string& path) override { return fs_.CreateDirs(path); }
  Status SyncDir(const std::string& path) override { return fs_.SyncDir(path); }
  Result<std::vector<DirEntry>> List(const std::string& path) override { return fs_.List(path); }
  Result<Space> GetSpace(const std::string& path) override { return fs_.GetSpace(path); }
  bool Exists(const std::string& path) override { return fs_.Exists(path); }

 private:
  class HookedFile : public File {
   public:
    HookedFile(std::unique_ptr<File> file, std::function<void()>* before_read)
        : file_(std::move(file)), before_read_(before_read) {}
    Status Write(std::uint64_t offset, std::span<const std::string_view> parts) override {
      return file_->Write(offset, parts);
    }
    Result<std::size_t> Read(std::uint64_t offset, std::span<char> buffer) const override {
      // Once: what it does reads too.
      const std::function<void()> hook = std::exchange(*before_read_, nullptr);
      if (hook) hook();
      return file_->Read(offset, buffer);
    }
    Status Sync() override { return file_->Sync(); }
    Status SyncAll() override { return file_->SyncAll(); }
    Status Truncate(std::uint64_t size) override { return file_->Truncate(size); }
    Result<std::uint64_t> Size() const override { return file_->Size(); }
    Status Lock() override { return file_->Lock(); }

   private:
    const std::unique_ptr<File> file_;
    std::function<void()>* const before_read_;
  };

  FileSystem& fs_;
  std::function<void()>* const before_read_;
};

class LogReader : public LogStoreFixture {
 protected:
  LogReader() {
    options_.cache_bytes = 1;  // every read goes to the file
    options_.segment_bytes = model_.segment_bytes = 64 << 10;
    Result<std::unique_ptr<LogStore>> opened = LogStore::Open(hooked_, options_, stamp_);
    CHECK(opened.ok()) << opened.status();
    store_ = std::move(opened).value();
    Write(model_.MakeMany(10, 200));
  }
  ~LogReader() override { store_.reset(); }
  // Cuts at `from` and writes `count` others of `bytes` in their place.
  void Replace(LogIndex from, int count, std::size_t bytes) {
    ASSERT_TRUE(store_->Cut(from).ok());
    model_.CutFrom(from);
    model_.term = model_.term + 1;
    Write(model_.MakeMany(count, bytes));
  }

  std::function<void()> before_read_;
  HookedFileSystem hooked_{fs_, &before_read_};
};

TEST_F(LogReader, ACutAndANewTailUnderARunningReadAreNoDamage) {
  before_read_ = [this] { Replace(LogIndex(8), 3, 500); };
  const auto range = store_->ReadRange(LogIndex(5), LogIndex(6), 1);
  ASSERT_TRUE(range.ok()) << range.status();
  EXPECT_EQ(range->front()->bytes, model_.entries[4]->bytes);
  // And the store did not take it for damage: a start has a checkpoint.
  ASSERT_TRUE(store_->WriteCheckpoint().ok());
  EXPECT_TRUE(fs_.Exists(std::string(kLogDir) + "/checkpoint"));
}

TEST_F(LogReader, AnEntryThatWasCutUnderARunningReadIsNotFound) {
  before_read_ = [this] { Replace(LogIndex(8), 1, 900); };  // fewer entries in the same bytes
  const auto gone = store_->ReadRange(LogIndex(10), LogIndex(11), 1);
  EXPECT_EQ(gone.status().code(), StatusCode::kNotFound) << gone.status();
}

TEST_F(LogReader, ADropUnderARunningReadIsNoDamage) {
  Write(model_.MakeMany(200, 1000));
  before_read_ = [this] { ASSERT_TRUE(store_->DropBefore(LogIndex(150)).ok()); };
  const auto read = store_->ReadRange(LogIndex(3), LogIndex(4), 1);
  if (read.ok()) {
    EXPECT_EQ(read->front()->bytes, model_.entries[2]->bytes);
  } else {
    EXPECT_EQ(read.status().code(), StatusCode::kNotFound);
  }
  EXPECT_EQ(store_->ReadRange(LogIndex(3), LogIndex(4), 1).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace triad::dledger
