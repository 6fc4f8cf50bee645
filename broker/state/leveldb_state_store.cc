#include "broker/state/leveldb_state_store.h"

#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/write_batch.h>

#include "common/file_system.h"

namespace triad::broker {
namespace {

constexpr std::size_t kCacheBytes = 1u << 20;  // records are only read at the start
// Small: at most kFlushRecordsKept batches then stand in LevelDB's own log, so every one it could
// skip at recovery is missed (replicated_state.cc).
constexpr std::size_t kWriteBufferBytes = 1u << 20;
constexpr int kOpenFilesMax = 64;
constexpr std::uint64_t kRoomBytes = 8u << 20;  // for a batch and the compaction it may start

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
  LevelDbStateStore(std::string dir, std::uint64_t room_bytes,
                    std::unique_ptr<leveldb::Cache> cache, std::unique_ptr<leveldb::DB> db)
      : dir_(std::move(dir)),
        room_bytes_(room_bytes),
        cache_(std::move(cache)),
        db_(std::move(db)) {}

  Status ForEach(
      const std::function<void(std::string_view key, std::string_view value)>& visit) override {
    const std::unique_ptr<StateRecords> records = Records();
    std::string_view key;
    std::string_view value;
    while (records->Next(&key, &value)) visit(key, value);
    return records->status();
  }

  Result<std::unique_ptr<StateRecords>> NewImage() override { return Records(); }

  // Refuses before LevelDB meets a full disk: it would leave half a record in its log.
  Status Write(const StateBatch& batch) override {
    const Result<Space> space = PosixFileSystem().GetSpace(dir_);
    if (space.ok() && space->available_bytes < room_bytes_) {
      return Status::NoSpace(dir_ + ": " + std::to_string(space->available_bytes) +
                             " bytes free, " + std::to_string(room_bytes_) + " are needed");
    }
    leveldb::WriteBatch changes;
    for (const auto& [key, value] : batch.puts) changes.Put(key, value);
    for (const std::string& key : batch.deletes) changes.Delete(key);
    leveldb::WriteOptions options;
    options.sync = true;
    return FromLevelDb(db_->Write(options, &changes), dir_);
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
  const std::uint64_t room_bytes_;
  const std::unique_ptr<leveldb::Cache> cache_;  // outlives db_
  const std::unique_ptr<leveldb::DB> db_;
};

}  // namespace

Result<std::unique_ptr<StateStore>> OpenLevelDbStateStore(const std::string& dir) {
  return OpenLevelDbWithRoom(dir, kRoomBytes);
}

Result<std::unique_ptr<StateStore>> OpenLevelDbWithRoom(const std::string& dir,
                                                        std::uint64_t room_bytes) {
  TRIAD_RETURN_IF_ERROR(PosixFileSystem().CreateDirs(dir));
  std::unique_ptr<leveldb::Cache> cache(leveldb::NewLRUCache(kCacheBytes));
  leveldb::Options options;
  options.create_if_missing = true;
  options.write_buffer_size = kWriteBufferBytes;
  options.max_open_files = kOpenFilesMax;
  options.block_cache = cache.get();
  leveldb::DB* db = nullptr;
  TRIAD_RETURN_IF_ERROR(FromLevelDb(leveldb::DB::Open(options, dir, &db), dir));
  return std::unique_ptr<StateStore>(std::make_unique<LevelDbStateStore>(
      dir, room_bytes, std::move(cache), std::unique_ptr<leveldb::DB>(db)));
}

}  // namespace triad::broker
