#include "broker/state/leveldb_state_store.h"

#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/env.h>
#include <leveldb/write_batch.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "broker/state/leveldb_log_check.h"
#include "common/mutant.h"

namespace triad::broker {
namespace {

constexpr std::size_t kCacheBytes = 1u << 20;  // records are only read at the start
constexpr int kOpenFilesMax = 64;

Status FromLevelDb(const leveldb::Status& status, const std::string& dir) {
  if (status.ok()) return Status::Ok();
  const std::string text = dir + ": " + status.ToString();
  if (status.IsCorruption()) return Status::Corruption(text);
  if (text.find("No space left") != std::string::npos ||
      text.find("Disk quota exceeded") != std::string::npos) {
    return Status::NoSpace(text);
  }
  return Status::IoError(text);
}

// A file that notes the first read of it that failed.
class NotedReads final : public leveldb::SequentialFile {
 public:
  NotedReads(leveldb::SequentialFile* file, leveldb::Status* failed)
      : file_(file), failed_(*failed) {}
  leveldb::Status Read(std::size_t n, leveldb::Slice* result, char* scratch) override {
    return Noted(file_->Read(n, result, scratch));
  }
  leveldb::Status Skip(std::uint64_t n) override { return Noted(file_->Skip(n)); }

 private:
  leveldb::Status Noted(leveldb::Status status) {
    if (failed_.ok()) failed_ = status;
    return status;
  }

  const std::unique_ptr<leveldb::SequentialFile> file_;
  leveldb::Status& failed_;
};

// The whole records of a log, in memory. It is small: a write buffer and a batch, or what a life's
// compactions left in the manifest.
class WholeRecords final : public leveldb::SequentialFile {
 public:
  explicit WholeRecords(std::string bytes) : bytes_(std::move(bytes)) {}
  leveldb::Status Read(std::size_t n, leveldb::Slice* result, char* scratch) override {
    const std::size_t size = std::min(n, bytes_.size() - at_);
    std::memcpy(scratch, bytes_.data() + at_, size);  // the reader gathers there
    *result = leveldb::Slice(scratch, size);
    at_ += size;
    return leveldb::Status::OK();
  }
  leveldb::Status Skip(std::uint64_t n) override {
    at_ += static_cast<std::size_t>(std::min<std::uint64_t>(n, bytes_.size() - at_));
    return leveldb::Status::OK();
  }

 private:
  const std::string bytes_;
  std::size_t at_ = 0;
};

// Its manifest, or one of those with batches.
bool IsLog(const std::string& name) {
  return name.ends_with(".log") || name.find("/MANIFEST-") != std::string::npos;
}

// Where LevelDB leaves its files more to chance than this store may.
//
// It syncs its directory before it syncs its manifest, and at no other time: not before it
// acknowledges writes to a new log, nor before the manifest's bytes that name a new table may reach
// the disk, nor before it removes the manifest that the old CURRENT names. Here a name is durable
// before anything rests on it (rule J).
//
// It takes a log that cannot be read for one that ends there, begins a new one and removes the old.
// Here nothing is written any more once a file could not be read from its front to its end, which
// LevelDB does at its start only. What of a log is torn and what is damaged is decided here, too
// (leveldb_log_check.h): LevelDB gets to see whole records only.
class CarefulEnv final : public leveldb::EnvWrapper {
 public:
  CarefulEnv(FileSystem* fs, leveldb::Env* env) : EnvWrapper(env), fs_(*fs) {}

  leveldb::Status NewSequentialFile(const std::string& name,
                                    leveldb::SequentialFile** file) override {
    *file = nullptr;
    const leveldb::Status status =
        IsLog(name) ? ReadLog(name, file) : target()->NewSequentialFile(name, file);
    if (failed_read_.ok()) failed_read_ = status;
    if (status.ok() && !IsLog(name)) *file = new NotedReads(*file, &failed_read_);
    return status;
  }
  leveldb::Status NewWritableFile(const std::string& name, leveldb::WritableFile** file) override {
    *file = nullptr;
    if (!failed_read_.ok()) return failed_read_;
    leveldb::Status status = target()->NewWritableFile(name, file);
    if (!status.ok()) return status;
    status = SyncDirOf(name);
    if (!status.ok()) delete std::exchange(*file, nullptr);
    return status;
  }
  leveldb::Status RenameFile(const std::string& from, const std::string& to) override {
    const leveldb::Status status = target()->RenameFile(from, to);
    return status.ok() ? SyncDirOf(to) : status;
  }

 private:
  leveldb::Status ReadLog(const std::string& name, leveldb::SequentialFile** file) {
    std::string bytes;
    const leveldb::Status read = leveldb::ReadFileToString(target(), name, &bytes);
    if (!read.ok()) return read;
    const Result<std::size_t> end = WholeRecordsEnd(bytes);
    if (!end.ok()) return leveldb::Status::Corruption(name, std::string(end.status().message()));
    bytes.resize(*end);
    *file = new WholeRecords(std::move(bytes));
    return leveldb::Status::OK();
  }
  leveldb::Status SyncDirOf(const std::string& name) {
    if (TRIAD_MUTANT(34)) return leveldb::Status::OK();
    const Status synced = fs_.SyncDir(name.substr(0, name.rfind('/')));
    return synced.ok() ? leveldb::Status::OK()
                       : leveldb::Status::IOError(std::string(synced.message()));
  }

  FileSystem& fs_;
  leveldb::Status failed_read_;
};

// An iterator of LevelDB sees the moment of its making.
class LevelDbRecords final : public StateRecords {
 public:
  LevelDbRecords(std::string dir, std::unique_ptr<leveldb::Iterator> it)
      : dir_(std::move(dir)), it_(std::move(it)) {
    it_->SeekToFirst();
  }

  bool Next(std::string_view* key, std::string_view* value) override {
    if (started_ && it_->Valid()) it_->Next();
    started_ = true;
    if (!it_->Valid()) return false;
    *key = {it_->key().data(), it_->key().size()};
    *value = {it_->value().data(), it_->value().size()};
    return true;
  }
  Status status() const override { return FromLevelDb(it_->status(), dir_); }

 private:
  const std::string dir_;
  const std::unique_ptr<leveldb::Iterator> it_;
  bool started_ = false;
};

class LevelDbStateStore final : public StateStore {
 public:
  LevelDbStateStore(std::string dir, const LevelDbGround& ground)
      : dir_(std::move(dir)),
        fs_(*ground.fs),
        room_bytes_(ground.room_bytes),
        env_(ground.fs, ground.env != nullptr ? ground.env : leveldb::Env::Default()),
        cache_(leveldb::NewLRUCache(kCacheBytes)) {}

  Status Open(std::size_t write_buffer_bytes) {
    TRIAD_RETURN_IF_ERROR(fs_.CreateDirs(dir_));
    leveldb::Options options;
    options.create_if_missing = true;
    options.env = &env_;
    options.write_buffer_size = write_buffer_bytes;
    options.max_open_files = kOpenFilesMax;
    options.block_cache = cache_.get();
    leveldb::DB* db = nullptr;
    const Status opened = FromLevelDb(leveldb::DB::Open(options, dir_, &db), dir_);
    db_.reset(db);
    return opened;
  }

  Status ForEach(
      const std::function<void(std::string_view key, std::string_view value)>& visit) override {
    const std::unique_ptr<StateRecords> records = Records();
    std::string_view key;
    std::string_view value;
    while (records->Next(&key, &value)) visit(key, value);
    return records->status();
  }

  Result<std::unique_ptr<StateRecords>> NewImage() override { return Records(); }

  // Refuses before LevelDB meets a full disk: it would leave half a record in its log. When it did
  // so all the same nothing is written behind that half: to a start it would be damage.
  Status Write(const StateBatch& batch) override {
    const Result<Space> space = fs_.GetSpace(dir_);
    if (space.ok() && space->available_bytes < room_bytes_) {
      return Status::NoSpace(dir_ + ": " + std::to_string(space->available_bytes) +
                             " bytes free, " + std::to_string(room_bytes_) + " are needed");
    }
    if (failed_write_) {
      return Status::IoError(dir_ +
                             ": a write failed before this one, and LevelDB's log may hold " +
                             "half of it; the next start begins another log");
    }
    leveldb::WriteBatch changes;
    for (const auto& [key, value] : batch.puts) changes.Put(key, value);
    for (const std::string& key : batch.deletes) changes.Delete(key);
    leveldb::WriteOptions options;
    options.sync = true;  // each, or a record behind a damaged one would prove nothing
    const leveldb::Status written = db_->Write(options, &changes);
    failed_write_ = !written.ok();
    return FromLevelDb(written, dir_);
  }

 private:
  std::unique_ptr<StateRecords> Records() const {
    leveldb::ReadOptions options;
    options.verify_checksums = true;
    options.fill_cache = false;
    return std::make_unique<LevelDbRecords>(
        dir_, std::unique_ptr<leveldb::Iterator>(db_->NewIterator(options)));
  }

  const std::string dir_;
  FileSystem& fs_;
  const std::uint64_t room_bytes_;
  CarefulEnv env_;  // outlives db_, as the cache does
  const std::unique_ptr<leveldb::Cache> cache_;
  std::unique_ptr<leveldb::DB> db_;
  bool failed_write_ = false;
};

}  // namespace

Result<std::unique_ptr<StateStore>> OpenLevelDbStateStore(const std::string& dir) {
  return OpenLevelDb({}, dir);
}

Result<std::unique_ptr<StateStore>> OpenLevelDb(const LevelDbGround& ground,
                                                const std::string& dir) {
  auto store = std::make_unique<LevelDbStateStore>(dir, ground);
  TRIAD_RETURN_IF_ERROR(store->Open(ground.write_buffer_bytes));
  return std::unique_ptr<StateStore>(std::move(store));
}

}  // namespace triad::broker
