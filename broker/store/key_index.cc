#include "broker/store/key_index.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "common/broken_ground.h"
#include "common/mutant.h"

namespace triad::broker {
namespace {

constexpr std::size_t kRunNameDigits = 20;

std::string NameOf(PhysicalOffset base) {
  const std::string digits = std::to_string(base.value());
  return std::string(kRunNameDigits - std::min(digits.size(), kRunNameDigits), '0') + digits;
}

std::optional<PhysicalOffset> BaseOf(const DirEntry& entry) {
  std::int64_t base = 0;
  const char* const end = entry.name.data() + entry.name.size();
  const auto [parsed_to, error] = std::from_chars(entry.name.data(), end, base);
  if (entry.is_directory || entry.name.size() != kRunNameDigits || error != std::errc() ||
      parsed_to != end || base < 0) {
    return std::nullopt;
  }
  return PhysicalOffset{base};
}

// Records on their way into a run. The apply thread appends; readers see the first `size` of them.
struct OpenRun {
  std::unique_ptr<KeyRecord[]> records =
      std::make_unique_for_overwrite<KeyRecord[]>(kRunRecordsMax);
  std::atomic<std::uint32_t> size{0};
};

// The runs of one file. Immutable: a longer one replaces it.
struct SegmentRuns {
  PhysicalOffset base;
  std::vector<KeyRun> runs;

  std::uint64_t size_bytes() const {
    return runs.empty() ? 0 : runs.back().file_offset + runs.back().size_bytes();
  }
};
using SegmentRunsPtr = std::shared_ptr<const SegmentRuns>;

Status ReadExactly(const File& file, std::uint64_t offset, std::span<char> to) {
  const Result<std::size_t> read = file.Read(offset, to);
  if (!read.ok()) return read.status();
  if (read.value() == to.size()) return Status::Ok();
  return Status::Corruption("a file of the key index is too short");
}

class FileKeyIndex final : public KeyIndex {
 public:
  FileKeyIndex(FileSystem& fs, std::string dir, std::uint64_t synced)
      : fs_(fs), dir_(std::move(dir)), sequence_(synced), open_(std::make_shared<OpenRun>()) {}

  Status Recover(PhysicalOffset log_begin);

  LogIndex last() const override { return last_; }
  PhysicalOffset end() const override { return end_; }
  bool damaged() const override {
    const std::lock_guard hold(mutex_);
    return damaged_.has_value();
  }
  void DropDamaged() override;
  bool waits_for_room() const override { return waits_for_room_; }
  void BeginEntry(const dledger::Entry& entry) override;
  void Add(std::uint64_t hash, PhysicalOffset position) override;
  void EndEntry(const dledger::Entry& entry) override;
  void SkipTo(LogIndex last, PhysicalOffset end) override;
  void Seal() override {
    if (last_ != run_before_) WriteRun();
  }
  Status CheckNth(std::size_t nth) const override;
  PendingSync PrepareSync() override;
  Status SetLogBegin(PhysicalOffset begin) override;
  Status Find(std::uint64_t hash, const TimeRange& times,
              const std::function<bool(PhysicalOffset)>& visit) const override;
  Newest newest() const override {
    const std::lock_guard hold(mutex_);
    return newest_;
  }

 private:
  std::string PathOf(PhysicalOffset base) const { return dir_ + "/" + NameOf(base); }
  Status RecoverFile(const std::string& path, PhysicalOffset base, std::uint64_t synced);
  void WriteRun();
  Status WriteBytes(const std::string& bytes, std::uint64_t at);
  void ForgetOpenRun();
  Status Damaged(PhysicalOffset base, const Status& damage) const;
  Status FindInRun(const File& file, const KeyRun& run, std::uint64_t hash,
                   const std::function<bool(PhysicalOffset)>& visit, bool* go_on) const;

  FileSystem& fs_;
  const std::string dir_;

  // Apply thread only.
  std::uint64_t sequence_;  // of the last run
  LogIndex last_;
  PhysicalOffset end_;        // of last_
  LogIndex run_before_;       // the run in memory holds (run_before_, last_]
  PhysicalOffset run_begin_;  // and covers [run_begin_, end_)
  PhysicalOffset base_{-1};   // of the segment it belongs to; -1: none yet
  std::int64_t entry_time_ms_ = 0;
  std::int64_t first_time_ms_ = 0;  // of the records in memory
  std::int64_t last_time_ms_ = -1;
  bool skips_entry_ = false;  // the entry at hand does not follow any more
  bool waits_for_room_ = false;
  std::set<std::string> unsynced_;

  mutable std::mutex mutex_;  // for what follows; a leaf
  std::shared_ptr<OpenRun> open_;
  std::map<PhysicalOffset, SegmentRunsPtr> segments_;
  Newest newest_;
  mutable std::optional<PhysicalOffset> damaged_;  // the first file that readers found so
};

// ---- Recovery -----------------------------------------------------------------------------------

Status FileKeyIndex::Recover(PhysicalOffset log_begin) {
  TRIAD_RETURN_IF_ERROR(fs_.CreateDirs(dir_));
  const Result<std::vector<DirEntry>> entries = fs_.List(dir_);
  if (!entries.ok()) return entries.status();
  const std::uint64_t synced = sequence_;
  std::vector<PhysicalOffset> bases;
  for (const DirEntry& entry : entries.value()) {
    if (const auto base = BaseOf(entry)) bases.push_back(*base);
  }
  std::sort(bases.begin(), bases.end());
  bool first = true;
  for (const PhysicalOffset base : bases) {
    TRIAD_RETURN_IF_ERROR(RecoverFile(PathOf(base), base, synced));
    const auto found = segments_.find(base);
    if (found == segments_.end()) continue;
    if (found->second->runs.back().end <= log_begin) {  // a crash kept what retention removed
      TRIAD_RETURN_IF_ERROR(fs_.Remove(PathOf(base)));
      segments_.erase(found);
      continue;
    }
    for (const KeyRun& run : found->second->runs) {
      if (first && run.begin > log_begin) {
        return Status::Corruption("the key index begins behind the log");
      }
      if (!first && run.before != last_) {
        return Status::Corruption("the key index lacks a run in front of " + PathOf(base));
      }
      first = false;
      last_ = run.last;
      end_ = run.end;
      if (run.last_time_ms >= 0) newest_ = {run.last_time_ms, run.end};
    }
  }
  run_before_ = last_;
  run_begin_ = end_;
  return Status::Ok();
}

// Reads the headers of the synced runs and cuts the rest off.
Status FileKeyIndex::RecoverFile(const std::string& path, PhysicalOffset base,
                                 std::uint64_t synced) {
  const Result<std::unique_ptr<File>> file = fs_.Open(path, {});
  if (!file.ok()) return file.status();
  const Result<std::uint64_t> size = file.value()->Size();
  if (!size.ok()) return size.status();
  auto segment = std::make_shared<SegmentRuns>();
  segment->base = base;
  std::uint64_t at = 0;
  while (at + kRunHeaderBytes <= size.value()) {
    std::array<char, kRunHeaderBytes> header{};
    TRIAD_RETURN_IF_ERROR(ReadExactly(*file.value(), at, header));
    Result<KeyRun> run = DecodeKeyRunHeader({header.data(), header.size()});
    // Behind the last synced run anything may stand; a damaged synced one is missed by its number.
    if (!run.ok() || run.value().sequence > synced) break;
    run.value().file_offset = at;
    if (at + run.value().size_bytes() > size.value()) break;
    at += run.value().size_bytes();
    segment->runs.push_back(run.value());
  }
  if (segment->runs.empty()) return fs_.Remove(path);
  if (at < size.value()) TRIAD_RETURN_IF_ERROR(file.value()->Truncate(at));
  segments_[base] = std::move(segment);
  return Status::Ok();
}

// ---- Apply thread -------------------------------------------------------------------------------

void FileKeyIndex::BeginEntry(const dledger::Entry& entry) {
  CHECK_EQ(entry.index, last_ + 1);
  if (entry.segment_base != base_) Seal();
  skips_entry_ = entry.index != last_ + 1;
  if (skips_entry_) return;
  base_ = entry.segment_base;
  if (run_before_ == last_) run_begin_ = entry.position;
  entry_time_ms_ = entry.store_time_ms;
}

void FileKeyIndex::Add(std::uint64_t hash, PhysicalOffset position) {
  if (skips_entry_) return;
  // Only this thread replaces open_, so it may look at it without the lock.
  std::uint32_t size = open_->size.load(std::memory_order_relaxed);
  if (size == kRunRecordsMax) {
    // In the middle of an entry: the run covers the entries in front of it, and records too much.
    WriteRun();
    if (skips_entry_) return;
    size = 0;
  }
  if (last_time_ms_ < 0) first_time_ms_ = entry_time_ms_;
  last_time_ms_ = entry_time_ms_;
  open_->records[size] = {hash, position.value()};
  open_->size.store(size + 1, std::memory_order_release);
}

void FileKeyIndex::EndEntry(const dledger::Entry& entry) {
  if (std::exchange(skips_entry_, false)) return;
  last_ = entry.index;
  end_ = entry.end();
  const std::uint32_t size = open_->size.load(std::memory_order_relaxed);
  if (size > 0) {
    const std::lock_guard hold(mutex_);
    newest_ = {last_time_ms_, PhysicalOffset{open_->records[size - 1].position}};
  }
  if (end_ - run_begin_ >= kRunLogBytesMax) WriteRun();
}

// The records in memory become a run behind the others.
void FileKeyIndex::WriteRun() {
  const std::uint32_t size = open_->size.load(std::memory_order_relaxed);
  KeyRun run;
  run.sequence = ++sequence_;
  run.before = run_before_;
  run.last = last_;
  run.begin = std::min(run_begin_, end_);
  run.end = end_;
  run.first_time_ms = first_time_ms_;
  run.last_time_ms = last_time_ms_;
  const std::string bytes = EncodeKeyRun({open_->records.get(), size}, &run);
  auto segment = std::make_shared<SegmentRuns>();
  segment->base = base_;
  if (const auto found = segments_.find(base_); found != segments_.end()) {
    *segment = *found->second;
  }
  run.file_offset = segment->size_bytes();
  const Status written = WriteBytes(bytes, run.file_offset);
  if (written.code() == StatusCode::kNoSpace) {
    LOG_IF(ERROR, !waits_for_room_) << "the key index waits for room on the disk: " << written
                                    << ". Nothing is lost, it is in the log; free space";
    waits_for_room_ = true;
    skips_entry_ = true;
    ForgetOpenRun();
    last_ = run_before_;
    end_ = run_begin_;
    return;
  }
  if (!written.ok()) {
    DieOfBrokenGround("cannot write the key index: " + written.ToString() +
                      ". Check the disk, then start again: the index is rebuilt from the log.");
  }
  LOG_IF(INFO, waits_for_room_) << "there is room on the disk again, the key index is written";
  waits_for_room_ = false;
  segment->runs.push_back(run);
  {
    const std::lock_guard hold(mutex_);
    segments_[base_] = std::move(segment);
    open_ = std::make_shared<OpenRun>();
  }
  run_before_ = last_;
  run_begin_ = end_;
  last_time_ms_ = -1;
}

Status FileKeyIndex::WriteBytes(const std::string& bytes, std::uint64_t at) {
  const std::string path = PathOf(base_);
  // One that could not be removed may stand where a new one begins.
  const Result<std::unique_ptr<File>> file = fs_.Open(path, {.create = true, .truncate = at == 0});
  if (!file.ok()) return file.status();
  unsynced_.insert(path);
  return file.value()->Write(at, bytes);
}

void FileKeyIndex::ForgetOpenRun() {
  last_time_ms_ = -1;
  const std::lock_guard hold(mutex_);
  open_ = std::make_shared<OpenRun>();
}

void FileKeyIndex::DropDamaged() {
  std::vector<SegmentRunsPtr> dropped;
  {
    const std::lock_guard hold(mutex_);
    const std::optional<PhysicalOffset> from = std::exchange(damaged_, std::nullopt);
    if (!from) return;
    for (auto it = segments_.lower_bound(*from); it != segments_.end();) {
      dropped.push_back(it->second);
      it = segments_.erase(it);
    }
  }
  if (dropped.empty()) return;  // retention was faster
  for (const SegmentRunsPtr& segment : dropped) {
    const Status removed = fs_.Remove(PathOf(segment->base));
    LOG_IF(WARNING, !removed.ok()) << "a damaged file of the key index stays: " << removed;
  }
  ForgetOpenRun();
  last_ = run_before_ = dropped.front()->runs.front().before;
  end_ = run_begin_ = dropped.front()->runs.front().begin;
}

void FileKeyIndex::SkipTo(LogIndex last, PhysicalOffset end) {
  const Status dropped = SetLogBegin(PhysicalOffset{INT64_MAX});
  if (!dropped.ok()) {
    DieOfBrokenGround("cannot empty the key index: " + dropped.ToString() +
                      ". Check the permissions of " + dir_ + ", or remove it, then start again.");
  }
  ForgetOpenRun();
  last_ = run_before_ = last;
  end_ = run_begin_ = end;
}

KeyIndex::PendingSync FileKeyIndex::PrepareSync() {
  PendingSync pending;
  pending.synced = sequence_;
  pending.sync = [&fs = fs_, dir = dir_, paths = std::exchange(unsynced_, {})] {
    if (TRIAD_MUTANT(35)) return Status::Ok();
    for (const std::string& path : paths) {
      const Result<std::unique_ptr<File>> file = fs.Open(path, {});
      if (file.status().code() == StatusCode::kNotFound) continue;  // dropped meanwhile
      if (!file.ok()) return file.status();
      TRIAD_RETURN_IF_ERROR(file.value()->SyncAll());
    }
    return paths.empty() ? Status::Ok() : fs.SyncDir(dir);
  };
  return pending;
}

Status FileKeyIndex::SetLogBegin(PhysicalOffset begin) {
  std::vector<PhysicalOffset> dropped;
  {
    const std::lock_guard hold(mutex_);
    std::erase_if(segments_, [&](const auto& segment) {
      const bool gone = segment.second->runs.back().end <= begin && segment.first != base_;
      if (gone || begin.value() == INT64_MAX) dropped.push_back(segment.first);
      return gone || begin.value() == INT64_MAX;
    });
  }
  Status all;
  for (const PhysicalOffset base : dropped) {
    const Status removed = fs_.Remove(PathOf(base));
    if (all.ok()) all = removed;
  }
  return all;
}

// ---- Readers ------------------------------------------------------------------------------------

Status FileKeyIndex::Find(std::uint64_t hash, const TimeRange& times,
                          const std::function<bool(PhysicalOffset)>& visit) const {
  std::shared_ptr<OpenRun> open;
  std::vector<SegmentRunsPtr> segments;
  {
    const std::lock_guard hold(mutex_);
    open = open_;
    for (const auto& [base, segment] : segments_) segments.push_back(segment);
  }
  for (std::uint32_t i = open->size.load(std::memory_order_acquire); i > 0; --i) {
    const KeyRecord& record = open->records[i - 1];
    if (record.hash == hash && !visit(PhysicalOffset{record.position})) return Status::Ok();
  }
  for (auto segment = segments.rbegin(); segment != segments.rend(); ++segment) {
    std::unique_ptr<File> file;
    for (auto run = (*segment)->runs.rbegin(); run != (*segment)->runs.rend(); ++run) {
      if (run->count == 0 || run->first_time_ms > times.end_ms ||
          run->last_time_ms < times.begin_ms) {
        continue;
      }
      if (file == nullptr) {
        Result<std::unique_ptr<File>> opened =
            fs_.Open(PathOf((*segment)->base), {.read_only = true});
        if (opened.status().code() == StatusCode::kNotFound) {
          return Damaged((*segment)->base, opened.status());
        }
        if (!opened.ok()) return opened.status();
        file = std::move(opened.value());
      }
      bool go_on = true;
      const Status found = FindInRun(*file, *run, hash, visit, &go_on);
      if (found.code() == StatusCode::kCorruption) return Damaged((*segment)->base, found);
      TRIAD_RETURN_IF_ERROR(found);
      if (!go_on) return Status::Ok();
    }
  }
  return Status::Ok();
}

// OK when the file is not the index's any more: retention took it.
Status FileKeyIndex::Damaged(PhysicalOffset base, const Status& damage) const {
  const std::lock_guard hold(mutex_);
  if (!segments_.contains(base)) return Status::Ok();
  const bool is_new = !damaged_ || base < *damaged_;
  if (is_new) damaged_ = base;
  LOG_IF(ERROR, is_new) << PathOf(base) << " is damaged (" << damage.message()
                        << "); the key index is rebuilt from the log from there on";
  return Status::Unavailable("the key index is damaged and is being rebuilt from the log");
}

Status FileKeyIndex::CheckNth(std::size_t nth) const {
  SegmentRunsPtr segment;
  {
    const std::lock_guard hold(mutex_);
    for (const auto& [base, candidate] : segments_) {
      segment = candidate;
      if (nth < segment->runs.size()) break;
      nth -= segment->runs.size();
      segment = nullptr;
    }
  }
  if (segment == nullptr) return Status::NotFound("no such run");
  const KeyRun& run = segment->runs[nth];
  const Result<std::unique_ptr<File>> file = fs_.Open(PathOf(segment->base), {.read_only = true});
  if (file.status().code() == StatusCode::kNotFound) return Damaged(segment->base, file.status());
  if (!file.ok()) return file.status();
  std::string bytes(run.size_bytes() - kRunHeaderBytes, '\0');
  Status checked = ReadExactly(**file, run.file_offset + kRunHeaderBytes, bytes);
  if (checked.ok()) checked = CheckRun(run, bytes);
  return checked.code() == StatusCode::kCorruption ? Damaged(segment->base, checked) : checked;
}

Status FileKeyIndex::FindInRun(const File& file, const KeyRun& run, std::uint64_t hash,
                               const std::function<bool(PhysicalOffset)>& visit,
                               bool* go_on) const {
  const ByteRange where = BucketEnds(run, hash);
  std::array<char, 16> ends{};
  const std::span<char> wanted = std::span<char>(ends).first(where.bytes);
  TRIAD_RETURN_IF_ERROR(ReadExactly(file, run.file_offset + where.offset, wanted));
  const Result<ByteRange> records = BucketRecords(run, {wanted.data(), wanted.size()});
  if (!records.ok()) return records.status();
  std::string bytes(records.value().bytes, '\0');
  TRIAD_RETURN_IF_ERROR(ReadExactly(file, run.file_offset + records.value().offset, bytes));
  TRIAD_RETURN_IF_ERROR(CheckBucket({wanted.data(), wanted.size()}, bytes));
  for (std::size_t end = bytes.size(); end > 0; end -= kKeyRecordBytes) {
    const KeyRecord record = DecodeKeyRecord(bytes.data() + end - kKeyRecordBytes);
    if (record.hash != hash || visit(PhysicalOffset{record.position})) continue;
    *go_on = false;
    return Status::Ok();
  }
  return Status::Ok();
}

}  // namespace

Result<std::unique_ptr<KeyIndex>> KeyIndex::Open(FileSystem& fs, const std::string& dir,
                                                 std::uint64_t synced, PhysicalOffset log_begin) {
  auto index = std::make_unique<FileKeyIndex>(fs, dir, synced);
  TRIAD_RETURN_IF_ERROR(index->Recover(log_begin));
  return std::unique_ptr<KeyIndex>(std::move(index));
}

Status KeyIndex::Discard(FileSystem& fs, const std::string& dir) {
  const Result<std::vector<DirEntry>> entries = fs.List(dir);
  if (!entries.ok()) return entries.status();
  for (const DirEntry& entry : entries.value()) {
    if (BaseOf(entry)) TRIAD_RETURN_IF_ERROR(fs.Remove(dir + "/" + entry.name));
  }
  return Status::Ok();
}

}  // namespace triad::broker
