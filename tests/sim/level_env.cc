#include "tests/sim/level_env.h"

#include <glog/logging.h>
#include <leveldb/env.h>

#include <algorithm>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "broker/state/leveldb_state_store.h"

namespace triad::sim {
namespace {

constexpr std::size_t kWriteBufferBytes = 64u << 10;  // LevelDB takes no less
constexpr std::size_t kFileBufferBytes = 64u << 10;   // as LevelDB's own

leveldb::Status FromOurs(const Status& status) {
  if (status.ok()) return leveldb::Status::OK();
  if (status.code() == StatusCode::kNotFound)
    return leveldb::Status::NotFound(std::string(status.message()));
  return leveldb::Status::IOError(std::string(status.message()));
}

std::string DirOf(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

class ReadFileOfLevel {
 public:
  explicit ReadFileOfLevel(std::unique_ptr<File> file) : file_(std::move(file)) {}
  leveldb::Status Read(std::uint64_t offset, std::size_t n, leveldb::Slice* result,
                       char* scratch) const {
    const Result<std::size_t> read = file_->Read(offset, std::span<char>(scratch, n));
    *result = leveldb::Slice(scratch, read.ok() ? *read : 0);
    return FromOurs(read.status());
  }

 private:
  const std::unique_ptr<File> file_;
};

class InOrder final : public leveldb::SequentialFile {
 public:
  explicit InOrder(std::unique_ptr<File> file) : file_(std::move(file)) {}
  leveldb::Status Read(std::size_t n, leveldb::Slice* result, char* scratch) override {
    const leveldb::Status status = file_.Read(at_, n, result, scratch);
    at_ += result->size();
    return status;
  }
  leveldb::Status Skip(std::uint64_t n) override {
    at_ += n;
    return leveldb::Status::OK();
  }

 private:
  const ReadFileOfLevel file_;
  std::uint64_t at_ = 0;
};

class Anywhere final : public leveldb::RandomAccessFile {
 public:
  explicit Anywhere(std::unique_ptr<File> file) : file_(std::move(file)) {}
  leveldb::Status Read(std::uint64_t offset, std::size_t n, leveldb::Slice* result,
                       char* scratch) const override {
    return file_.Read(offset, n, result, scratch);
  }

 private:
  const ReadFileOfLevel file_;
};

class Written final : public leveldb::WritableFile {
 public:
  Written(FileSystem& fs, std::string path, std::unique_ptr<File> file)
      : fs_(fs), path_(std::move(path)), file_(std::move(file)) {}
  ~Written() override { IgnoreError(Write(), "LevelDB's own does the same"); }

  leveldb::Status Append(const leveldb::Slice& data) override {
    buffer_.append(data.data(), data.size());
    return FromOurs(buffer_.size() < kFileBufferBytes ? Status::Ok() : Write());
  }
  leveldb::Status Close() override { return FromOurs(Write()); }
  leveldb::Status Flush() override { return FromOurs(Write()); }
  leveldb::Status Sync() override {
    if (path_.find("/MANIFEST") != std::string::npos) {
      const Status named = fs_.SyncDir(DirOf(path_));
      if (!named.ok()) return FromOurs(named);
    }
    const Status written = Write();
    return FromOurs(written.ok() ? file_->Sync() : written);
  }

 private:
  Status Write() {
    if (buffer_.empty()) return Status::Ok();
    const std::string bytes = std::exchange(buffer_, {});
    size_ += bytes.size();
    return file_->Write(size_ - bytes.size(), bytes);
  }

  FileSystem& fs_;
  const std::string path_;
  const std::unique_ptr<File> file_;
  std::string buffer_;
  std::uint64_t size_ = 0;
};

class Silent final : public leveldb::Logger {
  void Logv(const char*, std::va_list) override {}
};

class SimEnv final : public leveldb::Env {
 public:
  explicit SimEnv(FileSystem& fs) : fs_(fs) {}

  // What LevelDB left for its background thread; it may leave more while this runs.
  void DoBackgroundWork() {
    while (!background_.empty()) {
      const auto [function, argument] = background_.front();
      background_.pop_front();
      function(argument);
    }
  }

  leveldb::Status NewSequentialFile(const std::string& path,
                                    leveldb::SequentialFile** file) override {
    return OpenAs<InOrder>(path, file);
  }
  leveldb::Status NewRandomAccessFile(const std::string& path,
                                      leveldb::RandomAccessFile** file) override {
    return OpenAs<Anywhere>(path, file);
  }
  leveldb::Status NewWritableFile(const std::string& path, leveldb::WritableFile** file) override {
    *file = nullptr;
    Result<std::unique_ptr<File>> opened = fs_.Open(path, {.create = true, .truncate = true});
    if (opened.ok()) *file = new Written(fs_, path, std::move(*opened));
    return FromOurs(opened.status());
  }
  bool FileExists(const std::string& path) override { return fs_.Exists(path); }
  leveldb::Status GetChildren(const std::string& dir, std::vector<std::string>* names) override {
    names->clear();
    const Result<std::vector<DirEntry>> entries = fs_.List(dir);
    if (!entries.ok()) return FromOurs(entries.status());
    for (const DirEntry& entry : *entries) names->push_back(entry.name);
    return leveldb::Status::OK();
  }
  leveldb::Status RemoveFile(const std::string& path) override {
    return FromOurs(fs_.Remove(path));
  }
  leveldb::Status CreateDir(const std::string& dir) override {
    return FromOurs(fs_.CreateDirs(dir));
  }
  leveldb::Status RemoveDir(const std::string& dir) override { return FromOurs(fs_.Remove(dir)); }
  leveldb::Status GetFileSize(const std::string& path, std::uint64_t* size) override {
    const Result<std::unique_ptr<File>> file = fs_.Open(path, {.read_only = true});
    if (!file.ok()) return FromOurs(file.status());
    const Result<std::uint64_t> found = (*file)->Size();
    *size = found.ok() ? *found : 0;
    return FromOurs(found.status());
  }
  leveldb::Status RenameFile(const std::string& from, const std::string& to) override {
    return FromOurs(fs_.Rename(from, to));
  }
  leveldb::Status LockFile(const std::string&, leveldb::FileLock** lock) override {
    *lock = new leveldb::FileLock;
    return leveldb::Status::OK();
  }
  leveldb::Status UnlockFile(leveldb::FileLock* lock) override {
    delete lock;
    return leveldb::Status::OK();
  }
  void Schedule(void (*function)(void*), void* argument) override {
    background_.emplace_back(function, argument);
  }
  void StartThread(void (*)(void*), void*) override { LOG(FATAL) << "LevelDB starts no thread"; }
  leveldb::Status GetTestDirectory(std::string*) override {
    return leveldb::Status::NotSupported("not here");
  }
  leveldb::Status NewLogger(const std::string&, leveldb::Logger** logger) override {
    *logger = new Silent;
    return leveldb::Status::OK();
  }
  std::uint64_t NowMicros() override { return ++now_; }
  void SleepForMicroseconds(int) override {}

 private:
  template <typename Kind, typename Base>
  leveldb::Status OpenAs(const std::string& path, Base** file) {
    *file = nullptr;
    Result<std::unique_ptr<File>> opened = fs_.Open(path, {.read_only = true});
    if (opened.ok()) *file = new Kind(std::move(*opened));
    return FromOurs(opened.status());
  }

  FileSystem& fs_;
  std::deque<std::pair<void (*)(void*), void*>> background_;
  std::uint64_t now_ = 0;
};

class LevelDbInOneThread final : public broker::StateStore {
 public:
  explicit LevelDbInOneThread(FileSystem& fs) : fs_(fs), env_(fs) {}
  ~LevelDbInOneThread() override {
    env_.DoBackgroundWork();  // the store waits for it
    store_.reset();
  }

  Status Open(const std::string& dir) {
    auto opened = broker::OpenLevelDb(
        {.fs = &fs_, .env = &env_, .room_bytes = 0, .write_buffer_bytes = kWriteBufferBytes}, dir);
    if (!opened.ok()) return opened.status();
    store_ = std::move(*opened);
    env_.DoBackgroundWork();
    return Status::Ok();
  }
  Status ForEach(
      const std::function<void(std::string_view key, std::string_view value)>& visit) override {
    const Status status = store_->ForEach(visit);
    env_.DoBackgroundWork();
    return status;
  }
  Result<std::unique_ptr<broker::StateRecords>> NewImage() override { return store_->NewImage(); }
  Status Write(const broker::StateBatch& batch) override {
    const Status status = store_->Write(batch);
    env_.DoBackgroundWork();
    return status;
  }

 private:
  FileSystem& fs_;
  SimEnv env_;
  std::unique_ptr<broker::StateStore> store_;
};

}  // namespace

Result<std::unique_ptr<broker::StateStore>> OpenLevelDbOn(FileSystem& fs, const std::string& dir) {
  auto store = std::make_unique<LevelDbInOneThread>(fs);
  TRIAD_RETURN_IF_ERROR(store->Open(dir));
  return std::unique_ptr<broker::StateStore>(std::move(store));
}

}  // namespace triad::sim
