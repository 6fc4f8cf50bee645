#include "broker/state/memory_state_store.h"

#include <map>

#include "common/byte_order.h"
#include "common/crc32c.h"
#include "common/mutant.h"

namespace triad::broker {
namespace {

constexpr std::size_t kRecordHeaderBytes = 8;
constexpr std::uint64_t kRewriteMinBytes = 1u << 20;
constexpr char kPut = 'p';
constexpr char kDelete = 'd';

using Records = std::map<std::string, std::string, std::less<>>;

void AppendString(std::string_view text, std::string* out) {
  AppendBe32(out, static_cast<std::uint32_t>(text.size()));
  out->append(text);
}

std::string EncodeBatch(const StateBatch& batch) {
  std::string body;
  for (const auto& [key, value] : batch.puts) {
    body.push_back(kPut);
    AppendString(key, &body);
    AppendString(value, &body);
  }
  for (const std::string& key : batch.deletes) {
    body.push_back(kDelete);
    AppendString(key, &body);
  }
  std::string record;
  AppendBe32(&record, static_cast<std::uint32_t>(body.size()));
  AppendBe32(&record, Crc32c(body));
  return record + body;
}

bool TakeString(std::string_view* rest, std::string* out) {
  if (rest->size() < 4) return false;
  const std::size_t size = LoadBe32(rest->data());
  if (size > rest->size() - 4) return false;
  *out = rest->substr(4, size);
  rest->remove_prefix(4 + size);
  return true;
}

bool ApplyBody(std::string_view body, Records* records) {
  std::string key;
  std::string value;
  while (!body.empty()) {
    const char kind = body.front();
    body.remove_prefix(1);
    if (!TakeString(&body, &key)) return false;
    if (kind == kDelete) {
      records->erase(key);
    } else if (kind == kPut && TakeString(&body, &value)) {
      (*records)[key] = value;
    } else {
      return false;
    }
  }
  return true;
}

// Applies whole records from the front. Returns where the first torn one begins.
Result<std::size_t> Replay(std::string_view journal, Records* records) {
  std::size_t at = 0;
  while (journal.size() - at >= kRecordHeaderBytes) {
    const std::size_t size = LoadBe32(journal.data() + at);
    const std::uint32_t crc = LoadBe32(journal.data() + at + 4);
    if (size == 0 || size > journal.size() - at - kRecordHeaderBytes) break;
    const std::string_view body = journal.substr(at + kRecordHeaderBytes, size);
    if (Crc32c(body) != crc) break;
    if (!ApplyBody(body, records)) return Status::Corruption("state journal: a malformed batch");
    at += kRecordHeaderBytes + size;
  }
  return at;
}

class RecordsCopy final : public StateRecords {
 public:
  explicit RecordsCopy(Records records) : records_(std::move(records)), next_(records_.begin()) {}

  bool Next(std::string_view* key, std::string_view* value) override {
    if (next_ == records_.end()) return false;
    *key = next_->first;
    *value = next_->second;
    ++next_;
    return true;
  }
  Status status() const override { return Status::Ok(); }

 private:
  const Records records_;
  Records::const_iterator next_;
};

class MemoryStateStore final : public StateStore {
 public:
  MemoryStateStore(FileSystem& fs, std::string dir) : fs_(fs), dir_(std::move(dir)) {}

  Status Open() {
    TRIAD_RETURN_IF_ERROR(fs_.CreateDirs(dir_));
    const Result<std::string> journal = ReadFile(fs_, path());
    if (!journal.ok() && journal.status().code() != StatusCode::kNotFound) return journal.status();
    if (journal.ok()) {
      const Result<std::size_t> whole = Replay(journal.value(), &records_);
      if (!whole.ok()) return whole.status();
    }
    return Rewrite();
  }

  Status ForEach(
      const std::function<void(std::string_view key, std::string_view value)>& visit) override {
    for (const auto& [key, value] : records_) visit(key, value);
    return Status::Ok();
  }

  Result<std::unique_ptr<StateRecords>> NewImage() override {
    return std::unique_ptr<StateRecords>(std::make_unique<RecordsCopy>(records_));
  }

  Status Write(const StateBatch& batch) override {
    const std::string record = EncodeBatch(batch);
    TRIAD_RETURN_IF_ERROR(file_->Write(size_bytes_, record));
    if (!TRIAD_MUTANT(32)) TRIAD_RETURN_IF_ERROR(file_->Sync());
    size_bytes_ += record.size();
    CHECK(ApplyBody(std::string_view(record).substr(kRecordHeaderBytes), &records_));
    if (size_bytes_ < std::max(kRewriteMinBytes, 4 * rewritten_bytes_)) return Status::Ok();
    return Rewrite();
  }

 private:
  std::string path() const { return dir_ + "/journal"; }

  Status Rewrite() {
    StateBatch everything;
    everything.puts.assign(records_.begin(), records_.end());
    const std::string content = records_.empty() ? std::string() : EncodeBatch(everything);
    file_.reset();
    TRIAD_RETURN_IF_ERROR(WriteFileAtomically(fs_, path(), content));
    Result<std::unique_ptr<File>> file = fs_.Open(path(), {});
    if (!file.ok()) return file.status();
    file_ = std::move(file.value());
    size_bytes_ = rewritten_bytes_ = content.size();
    return Status::Ok();
  }

  FileSystem& fs_;
  const std::string dir_;
  Records records_;
  std::unique_ptr<File> file_;
  std::uint64_t size_bytes_ = 0;
  std::uint64_t rewritten_bytes_ = 0;
};

}  // namespace

Result<std::unique_ptr<StateStore>> OpenMemoryStateStore(FileSystem& fs, const std::string& dir) {
  auto store = std::make_unique<MemoryStateStore>(fs, dir);
  TRIAD_RETURN_IF_ERROR(store->Open());
  return std::unique_ptr<StateStore>(std::move(store));
}

}  // namespace triad::broker
