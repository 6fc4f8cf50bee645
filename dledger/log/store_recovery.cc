#include "dledger/log/store_recovery.h"

#include <glog/logging.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dledger/log/checkpoint.h"

namespace triad::dledger {
namespace {

// Names this boot of the machine; empty where there is none.
std::string BootId(FileSystem& fs) {
  Result<std::string> id = ReadFile(fs, "/proc/sys/kernel/random/boot_id");
  if (!id.ok()) return {};
  std::string text = std::move(id).value();
  while (!text.empty() && (text.back() == '\n' || text.back() == '\0')) text.pop_back();
  return text.substr(0, 64);
}

// What the log's memberships say; 0: nothing yet.
std::uint64_t GroupIdOf(const LogOutline& outline) {
  return outline.MembershipBefore(outline.tail.next_index).group_id;
}

}  // namespace

Status MakeStoreFiles(FileSystem& fs, const std::string& dir) {
  const Result<std::vector<DirEntry>> names = fs.List(dir);
  if (!names.ok()) return names.status();
  for (const DirEntry& name : *names) {  // of an attempt that did not finish
    const bool is_old = ParseSegmentName(name.name) || name.name == "begin";
    if (is_old) TRIAD_RETURN_IF_ERROR(fs.Remove(dir + "/" + name.name));
  }
  TRIAD_RETURN_IF_ERROR(CreateSlotFile(fs, dir + "/vote"));
  TRIAD_RETURN_IF_ERROR(CreateSlotFile(fs, dir + "/synced"));
  const Result<std::shared_ptr<SegmentFile>> first =
      SegmentFile::Create(fs, dir, PhysicalOffset(0));
  if (!first.ok()) return first.status();
  TRIAD_RETURN_IF_ERROR(fs.SyncDir(dir));
  Result<std::unique_ptr<VoteFile>> vote = VoteFile::Open(fs, dir + "/vote");
  if (!vote.ok()) return vote.status();
  TRIAD_RETURN_IF_ERROR((*vote)->Save(VoteRecord{}));
  Result<std::unique_ptr<SyncedFile>> synced = SyncedFile::Open(fs, dir + "/synced");
  if (!synced.ok()) return synced.status();
  return (*synced)->ClearCut(PhysicalOffset(0));
}

Status RestartLog(FileSystem& fs, const std::string& dir, const StoreBase& base,
                  StoreFiles* files) {
  TRIAD_RETURN_IF_ERROR(WriteBegin(fs, dir, {.base = base, .fresh = true}));
  files->segments.clear();
  const Result<std::vector<DirEntry>> names = fs.List(dir);
  if (!names.ok()) return names.status();
  for (const DirEntry& name : *names) {
    if (ParseSegmentName(name.name)) TRIAD_RETURN_IF_ERROR(fs.Remove(dir + "/" + name.name));
  }
  TRIAD_RETURN_IF_ERROR(fs.SyncDir(dir));
  const PhysicalOffset begin = base.tail.position;
  Result<std::shared_ptr<SegmentFile>> first = SegmentFile::Create(fs, dir, begin);
  if (!first.ok()) return first.status();
  files->segments.emplace(begin, std::move(first).value());
  TRIAD_RETURN_IF_ERROR(fs.SyncDir(dir));
  TRIAD_RETURN_IF_ERROR(files->synced->ClearCut(begin));
  return WriteBegin(fs, dir, {.base = base, .fresh = false});
}

Result<RecoveredStore> StoreRecovery::Run() {
  TRIAD_RETURN_IF_ERROR(OpenFiles());
  TRIAD_RETURN_IF_ERROR(FindBegin());
  TRIAD_RETURN_IF_ERROR(FinishRecordedCut());
  LoadCheckpoint();
  TRIAD_RETURN_IF_ERROR(Judge());
  TRIAD_RETURN_IF_ERROR(MakeDurable());
  // A mark of recovering is durable before a segment that was missing is made anew: empty, it would
  // look as if there had never been an entry.
  TRIAD_RETURN_IF_ERROR(SaveVote());
  TRIAD_RETURN_IF_ERROR(DropSparePrepared());
  return std::move(store_);
}

Status StoreRecovery::OpenFiles() {
  const std::string& dir = options_.dir;
  // The last life may have ended between making a file and syncing its name: what is found here
  // must not vanish with the power once something rests on it.
  TRIAD_RETURN_IF_ERROR(fs_.SyncDir(dir));
  Result<SegmentMap> segments = OpenSegments(fs_, dir);
  if (!segments.ok()) return segments.status();
  store_.files.segments = std::move(segments).value();
  Result<std::unique_ptr<VoteFile>> vote = VoteFile::Open(fs_, dir + "/vote");
  if (!vote.ok()) return vote.status();
  store_.files.vote = std::move(vote).value();
  Result<std::unique_ptr<SyncedFile>> synced = SyncedFile::Open(fs_, dir + "/synced");
  if (!synced.ok()) return synced.status();
  store_.files.synced = std::move(synced).value();
  const std::optional<VoteRecord>& record = store_.files.vote->record();
  if (!record) LOG(ERROR) << dir << "/vote is damaged: this peer begins recovering";
  recovering_ = !record || record->recovering;
  return {};
}

// Where the log begins. What lies before it is removed: a drop or an install that a crash stopped.
Status StoreRecovery::FindBegin() {
  const Result<BeginRecord> begin = ReadBegin(fs_, options_.dir);
  if (options_.restart_at) {
    const StoreBase& wanted = *options_.restart_at;
    const bool is_there =
        begin.ok() && !begin->fresh && begin->base.tail.next_index >= wanted.tail.next_index;
    if (!is_there) {
      store_.outline.base = wanted;
      store_.outline.tail = wanted.tail;
      return RestartLog(fs_, options_.dir, wanted, &store_.files);
    }
  }
  if (begin.status().code() == StatusCode::kNotFound) return {};
  if (begin.status().code() == StatusCode::kCorruption) {
    // Nobody knows any more what the first entries follow: as good as an empty log.
    LOG(ERROR) << begin.status() << ": this peer begins recovering";
    recovering_ = true;
    return {};
  }
  if (!begin.ok()) return begin.status();
  store_.outline.base = begin->base;
  store_.outline.tail = begin->base.tail;
  if (begin->fresh) {
    return RestartLog(fs_, options_.dir, begin->base, &store_.files);
  }
  SegmentMap& segments = store_.files.segments;
  bool removed = false;
  while (!segments.empty() && segments.begin()->first < begin->base.tail.position) {
    TRIAD_RETURN_IF_ERROR(fs_.Remove(segments.begin()->second->path()));
    segments.erase(segments.begin());
    removed = true;
  }
  return removed ? fs_.SyncDir(options_.dir) : Status::Ok();
}

Status StoreRecovery::FinishRecordedCut() {
  SyncedFile& synced = *store_.files.synced;
  const std::optional<SyncedRecord> record = synced.record();
  if (!record) return {};
  hint_ = record->synced;
  if (!record->cut) return {};
  TRIAD_RETURN_IF_ERROR(
      ZeroRange(fs_, options_.dir, record->cut->from, record->cut->to, &store_.files.segments));
  return synced.ClearCut(hint_);
}

void StoreRecovery::LoadCheckpoint() {
  std::optional<LogOutline> outline =
      CheckpointFile(fs_, options_.dir).Load(store_.outline.base, store_.files.segments);
  if (outline) store_.outline = std::move(*outline);
}

Status StoreRecovery::Judge() {
  SegmentMap& segments = store_.files.segments;
  Status stopped = ScanEntries(segments, &store_.outline);
  const bool foreign = IsForeign();
  if (foreign) {
    stopped = Status::Corruption(
        "the log here is that of group id " + std::to_string(GroupIdOf(store_.outline)) +
        ", and this store's is " + std::to_string(store_.files.vote->record()->group_id));
    const StoreBase base = store_.outline.base;
    store_.outline = LogOutline{};
    store_.outline.base = base;
    store_.outline.tail = base.tail;
  }
  const LogTail& tail = store_.outline.tail;
  window_ = LastWindow(segments);
  Remains remains = LookBehind(segments, tail, window_ ? window_->end : tail.position);
  if (stopped.code() == StatusCode::kIoError || !segments.contains(tail.segment_base)) {
    remains.unreadable = true;
  }
  state_ = JudgeTail(tail, remains, hint_, window_);
  const bool no_hint = !store_.files.synced->record();
  if (no_hint || foreign) state_ = TailState::kCorrupt;
  if (state_ == TailState::kCorrupt) {
    recovering_ = true;
    store_.untrusted_remains = true;
    LOG(ERROR) << options_.dir << ": the log is damaged behind entry "
               << (tail.next_index - 1).value() << " at position " << tail.position << " ("
               << (no_hint        ? "the synced file is damaged"
                   : stopped.ok() ? "its entries end there"
                                  : stopped.ToString())
               << "), below what was synced; nothing is cut, this peer begins recovering and "
                  "copies the rest from the others";
    return {};
  }
  if (state_ == TailState::kClean) return {};
  if (recovering_) {
    store_.untrusted_remains = true;
    return {};
  }
  LOG(WARNING) << options_.dir << ": cutting a torn tail at position " << tail.position << " ("
               << (stopped.ok() ? "zeros, then remains" : stopped.message()) << ")";
  return CutTornTail(remains);
}

// Files that somebody put there, the first segment among them: a whole log, and not this store's. A
// log that begins later has its chain to tell.
bool StoreRecovery::IsForeign() const {
  const std::optional<VoteRecord>& record = store_.files.vote->record();
  const std::uint64_t found = GroupIdOf(store_.outline);
  if (store_.outline.base.dropped()) return false;
  return record && record->group_id != 0 && found != 0 && found != record->group_id;
}

Status StoreRecovery::CutTornTail(const Remains& remains) {
  const PhysicalOffset durable = window_ ? std::max(hint_, window_->begin) : hint_;
  const PhysicalOffset from = store_.outline.tail.position;
  TRIAD_RETURN_IF_ERROR(
      store_.files.synced->RecordCut(durable, RecordedCut{.from = from, .to = remains.end}));
  TRIAD_RETURN_IF_ERROR(ZeroRange(fs_, options_.dir, from, remains.end, &store_.files.segments));
  return store_.files.synced->ClearCut(durable);
}

// What was read may so far stand in the page cache only, even after a sync that failed in the last
// life: written again and synced, it is durable.
Status StoreRecovery::MakeDurable() {
  const PhysicalOffset end = store_.outline.tail.position;
  const PhysicalOffset durable = window_ ? std::max(hint_, window_->begin) : hint_;
  for (const auto& [base, span] : store_.outline.spans) {
    if (span.end <= durable) continue;
    TRIAD_RETURN_IF_ERROR(
        Rewrite(*store_.files.segments.at(base), std::max(base, durable), span.end));
  }
  store_.synced = end;
  store_.hint = std::max(durable, end);
  if (state_ == TailState::kCorrupt) return {};
  TRIAD_RETURN_IF_ERROR(store_.files.synced->ClearCut(end));
  if (store_.untrusted_remains) return {};
  // A window that reaches behind the end would make the next torn tail look like corruption.
  for (const auto& [base, segment] : store_.files.segments) {
    const std::optional<SyncWindow> window = segment->window();
    if (!window || window->end <= end) continue;
    TRIAD_RETURN_IF_ERROR(segment->ClearWindows());
    TRIAD_RETURN_IF_ERROR(segment->Sync());
  }
  return {};
}

Status StoreRecovery::Rewrite(SegmentFile& segment, PhysicalOffset begin, PhysicalOffset end) {
  std::string buffer(static_cast<std::size_t>(std::min<std::int64_t>(end - begin, kZeroChunkBytes)),
                     '\0');
  while (begin < end) {
    const std::size_t size = std::min(buffer.size(), static_cast<std::size_t>(end - begin));
    const Result<std::size_t> n = segment.Read(begin, std::span<char>(buffer.data(), size));
    if (!n.ok()) return n.status();
    if (*n != size) return Status::Corruption(segment.path() + " became shorter");
    const std::string_view bytes(buffer.data(), size);
    TRIAD_RETURN_IF_ERROR(segment.Write(begin, std::span<const std::string_view>(&bytes, 1)));
    begin += static_cast<std::int64_t>(size);
  }
  return segment.Sync();
}

// Behind the last segment at most one is kept: the next, if it begins where this peer expects it.
Status StoreRecovery::DropSparePrepared() {
  SegmentMap& segments = store_.files.segments;
  const PhysicalOffset base = store_.outline.tail.segment_base;
  if (!segments.contains(base)) {
    // Nothing but the first segment can be missing here; recovering, it is filled again.
    Result<std::shared_ptr<SegmentFile>> made = SegmentFile::Create(fs_, options_.dir, base);
    if (!made.ok()) return made.status();
    segments.emplace(base, std::move(made).value());
    return fs_.SyncDir(options_.dir);
  }
  if (store_.untrusted_remains) return {};
  const PhysicalOffset expected = base + static_cast<std::int64_t>(options_.segment_bytes);
  bool removed = false;
  for (auto it = segments.upper_bound(base); it != segments.end();) {
    if (it->first == expected) {
      store_.next = it->second;
      ++it;
      continue;
    }
    TRIAD_RETURN_IF_ERROR(fs_.Remove(it->second->path()));
    it = segments.erase(it);
    removed = true;
  }
  if (store_.next) segments.erase(expected);
  return removed ? fs_.SyncDir(options_.dir) : Status::Ok();
}

Status StoreRecovery::SaveVote() {
  VoteRecord record = store_.files.vote->record().value_or(VoteRecord{});
  const std::string boot_id = BootId(fs_);
  const LogOutline& outline = store_.outline;
  const bool empty = outline.tail.next_index == outline.base.tail.next_index;
  if (record.written_unsynced && (boot_id.empty() || boot_id != record.boot_id) && !empty) {
    LOG(ERROR) << options_.dir << ": the machine was restarted while flushDiskType=ASYNC_FLUSH was "
               << "in force: acknowledged messages behind position " << hint_
               << " may be missing here; this peer begins recovering";
    record.lost_unsynced = !recovering_;
    recovering_ = true;
  }
  if (state_ == TailState::kCorrupt) record.lost_unsynced = false;
  record.recovering = recovering_;
  record.written_unsynced = !options_.sync;
  record.boot_id = boot_id;
  // Of a group that was never more than this peer's first entry, a received state knows better.
  const std::uint64_t group_id = GroupIdOf(outline);
  const bool better = record.group_id == 0 || outline.base.dropped();
  if (better && group_id != 0) record.group_id = group_id;
  store_.vote = record;
  return store_.files.vote->Save(record);
}

}  // namespace triad::dledger
