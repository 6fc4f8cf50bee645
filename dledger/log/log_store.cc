#include "dledger/log/log_store.h"

#include <glog/logging.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "common/buggify.h"
#include "common/mutant.h"
#include "dledger/log/block_reader.h"
#include "dledger/log/checkpoint.h"
#include "dledger/log/entry_cache.h"
#include "dledger/log/entry_index.h"
#include "dledger/log/segment_file.h"
#include "dledger/log/segment_preparer.h"
#include "dledger/log/slot_files.h"
#include "dledger/log/store_guard.h"
#include "dledger/log/store_recovery.h"
#include "dledger/membership_codec.h"

namespace triad::dledger {
namespace {

class FileLogStore final : public LogStore {
 public:
  FileLogStore(FileSystem& fs, LogStoreOptions options, std::unique_ptr<StoreGuard> guard)
      : fs_(fs),
        options_(std::move(options)),
        guard_(std::move(guard)),
        cache_(options_.cache_bytes),
        preparer_(fs, options_.dir, options_.segment_bytes),
        checkpoint_(fs, options_.dir) {}

  Status Start(RecoveredStore store);

  const Recovered& recovered() const override { return recovered_; }
  bool lost_unsynced() const override { return lost_unsynced_; }
  LogTail tail() const override { return recovered_tail_; }

  Status SaveHardState(const HardState& state) override;
  Status SaveRecovering(bool recovering) override;
  Status Cut(LogIndex from) override;
  Status Append(std::span<const EntryRef> entries) override;
  Status Sync() override;
  Status Restart(const StoreBase& base) override;

  Status Prepare() override { return preparer_.Prepare(options_.prepare_bytes); }
  std::uint64_t prepared_bytes() const override { return preparer_.ready_bytes(); }
  Status WriteCheckpoint() override;
  Result<std::size_t> DropBefore(LogIndex keep_from) override;
  Result<Space> GetSpace() const override { return fs_.GetSpace(options_.dir); }

  EntryRef CachedAt(PhysicalOffset inside) const override {
    return TRIAD_BUGGIFY(6) ? nullptr : cache_.FindAt(inside);  // only the disk has it
  }
  EntryRef CachedIndex(LogIndex index) const override { return cache_.FindIndex(index); }
  PhysicalOffset begin_position() const override {
    return PhysicalOffset(begin_position_.load(std::memory_order_acquire));
  }
  StoreBase base() const override { return index_.base(); }
  std::vector<SegmentFacts> segments() const override { return index_.Segments(); }
  Result<StoreBase> BaseAt(const SegmentFacts& segment) override;
  PhysicalOffset end_position() const override {
    return PhysicalOffset(end_position_.load(std::memory_order_acquire));
  }

  Result<EntryRef> ReadAt(PhysicalOffset inside) override;
  Result<std::vector<EntryRef>> ReadRange(LogIndex from, LogIndex to,
                                          std::size_t max_bytes) override;
  RawLog& raw() override { return raw_; }
  Status Close() override;

 private:
  Status Broken(Status status);  // remembers the first failure: nothing is written after it
  Status AppendRun(std::span<const EntryRef> run);
  Status NoteGroup(const Entry& entry);
  Status Roll(PhysicalOffset base);
  Status CutBehind(const LogTail& tail, PhysicalOffset last_position);
  Result<PhysicalOffset> RemainsEnd() const;
  Status SaveVote(VoteRecord record);
  Result<std::vector<EntryRef>> LoadBlock(LogIndex index);
  void Distrust(const Status& damage);

  FileSystem& fs_;
  const LogStoreOptions options_;
  const std::unique_ptr<StoreGuard> guard_;
  Recovered recovered_;
  bool lost_unsynced_ = false;
  LogTail recovered_tail_;

  // ---- any thread ----
  EntryIndex index_;
  mutable EntryCache cache_;
  RawLog raw_{index_, cache_};
  SegmentPreparer preparer_;
  std::atomic<std::int64_t> begin_position_{0};
  std::atomic<std::int64_t> end_position_{0};
  std::atomic<bool> is_damaged_{false};  // a reader found a bad entry

  std::mutex segments_mutex_;  // for files_.segments; held by the disk thread also during IO

  // ---- disk thread ----
  StoreFiles files_;
  std::shared_ptr<SegmentFile> current_;
  LogTail live_tail_;
  PhysicalOffset synced_;
  PhysicalOffset hint_floor_;  // while the log is damaged: what had been synced before
  VoteRecord vote_;
  bool untrusted_remains_ = false;
  Status broken_;
  std::vector<std::string_view> parts_;  // of the write at hand, kept for its memory

  // ---- background thread, and whoever finds damage ----
  std::mutex checkpoint_mutex_;  // for what follows; held during IO
  CheckpointFile checkpoint_;
  EntryIndex::CheckpointMark checkpointed_;
};

Status FileLogStore::Start(RecoveredStore store) {
  files_ = std::move(store.files);
  live_tail_ = store.outline.tail;
  synced_ = store.synced;
  hint_floor_ = store.hint;
  vote_ = store.vote;
  untrusted_remains_ = store.untrusted_remains;
  current_ = files_.segments.at(live_tail_.segment_base);
  begin_position_ = store.outline.base.tail.position.value();
  end_position_ = live_tail_.position.value();

  recovered_tail_ = live_tail_;
  recovered_.hard_state = vote_.hard_state;
  const StoreBase& base = store.outline.base;
  recovered_.first_index = base.tail.next_index;
  recovered_.last_index = live_tail_.next_index - 1;
  recovered_.term_runs = store.outline.term_runs;
  recovered_.base_term = base.tail.last_term;
  if (!base.membership.voters.empty()) recovered_.base_membership = base.membership;
  recovered_.memberships = store.outline.memberships;
  recovered_.recovering = vote_.recovering;
  lost_unsynced_ = vote_.lost_unsynced;
  index_.Reset(std::move(store.outline), files_.segments);
  ReserveBegin(fs_, options_.dir);
  TRIAD_RETURN_IF_ERROR(
      preparer_.Start(current_, live_tail_.position, std::move(store.next), !untrusted_remains_));
  const Status prepared = preparer_.Prepare(options_.first_prepare_bytes);
  if (prepared.code() != StatusCode::kNoSpace) return prepared;
  LOG(WARNING) << options_.dir << ": no space to prepare the log ahead: " << prepared;
  return {};
}

Status FileLogStore::Broken(Status status) {
  if (broken_.ok()) broken_ = status;
  return status;
}

Status FileLogStore::SaveVote(VoteRecord record) {
  if (!broken_.ok()) return broken_;
  const Status saved = files_.vote->Save(record);
  if (!saved.ok()) return Broken(saved);
  vote_ = std::move(record);
  return {};
}

Status FileLogStore::SaveHardState(const HardState& state) {
  VoteRecord record = vote_;
  record.hard_state = state;
  return SaveVote(std::move(record));
}

Status FileLogStore::SaveRecovering(bool recovering) {
  if (!broken_.ok()) return broken_;
  if (!recovering && untrusted_remains_) {
    // The log is whole again up to its end; what lies behind is nobody's.
    TRIAD_RETURN_IF_ERROR(CutBehind(live_tail_, index_.last_position()));
  }
  VoteRecord record = vote_;
  record.recovering = recovering;
  record.lost_unsynced = record.lost_unsynced && recovering;
  return SaveVote(std::move(record));
}

Status FileLogStore::Append(std::span<const EntryRef> entries) {
  if (!broken_.ok()) return broken_;
  while (!entries.empty()) {
    const PhysicalOffset base = entries.front()->segment_base;
    const auto other = std::find_if(entries.begin(), entries.end(), [base](const EntryRef& entry) {
      return entry->segment_base != base;
    });
    const auto count = static_cast<std::size_t>(other - entries.begin());
    TRIAD_RETURN_IF_ERROR(AppendRun(entries.first(count)));
    entries = entries.subspan(count);
  }
  return {};
}

// Entries of one segment: one write.
Status FileLogStore::AppendRun(std::span<const EntryRef> run) {
  LogTail tail = live_tail_;
  parts_.clear();
  for (const EntryRef& entry : run) {
    TRIAD_RETURN_IF_ERROR(CheckFollows(tail, *entry));
    tail = TailAfter(*entry);
    parts_.push_back(entry->bytes);
  }
  const Entry& first = *run.front();
  TRIAD_RETURN_IF_ERROR(NoteGroup(first));
  if (first.segment_base != current_->base()) {
    TRIAD_RETURN_IF_ERROR(Sync());  // a window never spans two segments
    const Status rolled = Roll(first.segment_base);
    if (!rolled.ok()) return Broken(rolled);
  }
  const Result<std::string_view> padding = preparer_.Claim(tail.position);
  if (!padding.ok()) return Broken(padding.status());
  if (!untrusted_remains_) parts_.push_back(*padding);  // remains stay until they are judged
  const Status written = current_->Write(first.position, parts_);
  if (!written.ok()) return Broken(written);
  live_tail_ = tail;
  index_.Append(run, current_);
  cache_.Insert(run);
  end_position_.store(tail.position.value(), std::memory_order_release);
  preparer_.Advance(tail.position);
  return {};
}

// An entry that names the group takes the place of one that named another, and was never committed.
Status FileLogStore::NoteGroup(const Entry& entry) {
  Membership membership;
  if (entry.index != LogIndex(1) || vote_.group_id == 0) return {};
  if (!DecodeMembershipEntry(entry, &membership)) return {};
  if (membership.group_id == 0 || membership.group_id == vote_.group_id) return {};
  VoteRecord record = vote_;
  record.group_id = membership.group_id;
  return SaveVote(std::move(record));
}

Status FileLogStore::Roll(PhysicalOffset base) {
  const std::lock_guard hold(segments_mutex_);
  SegmentMap& segments = files_.segments;
  std::shared_ptr<SegmentFile> prepared = preparer_.Stop();
  std::shared_ptr<SegmentFile> unfit;
  if (prepared && prepared->base() != base) unfit.swap(prepared);
  if (unfit) TRIAD_RETURN_IF_ERROR(fs_.Remove(unfit->path()));
  if (prepared) {
    segments.emplace(base, std::move(prepared));
  } else if (!segments.contains(base)) {
    Result<std::shared_ptr<SegmentFile>> made = SegmentFile::Create(fs_, options_.dir, base);
    if (!made.ok()) return made.status();
    segments.emplace(base, std::move(made).value());
    if (!TRIAD_MUTANT(16)) TRIAD_RETURN_IF_ERROR(fs_.SyncDir(options_.dir));
  }
  current_ = segments.at(base);
  return preparer_.Start(current_, base, nullptr, !untrusted_remains_);
}

Status FileLogStore::Sync() {
  if (!broken_.ok()) return broken_;
  const PhysicalOffset end = live_tail_.position;
  if (synced_ == end) return {};
  Status synced = current_->WriteWindow(SyncWindow{.begin = synced_, .end = end});
  if (synced.ok()) synced = current_->Sync();
  if (!synced.ok()) return Broken(synced);
  preparer_.NoteSync(end - synced_);
  synced_ = end;
  index_.MarkSynced();
  const Status hint = files_.synced->WriteHint(std::max(end, hint_floor_));
  return hint.ok() ? hint : Broken(hint);
}

Status FileLogStore::Cut(LogIndex from) {
  if (!broken_.ok()) return broken_;
  if (from == LogIndex(0)) return Status::InvalidArgument("cut from index 0");
  if (from >= live_tail_.next_index) return {};
  LogTail tail = index_.base().tail;
  if (from < tail.next_index) return Status::InvalidArgument("cut before the log's begin");
  PhysicalOffset last_position;
  if (from > tail.next_index) {
    const Result<std::vector<EntryRef>> last = ReadRange(from - 1, from, 1);
    if (!last.ok()) return last.status();
    tail = TailAfter(*last->front());
    last_position = last->front()->position;
  }
  return CutBehind(tail, last_position);
}

// Where bytes may end that do not belong to the log: its own end, or that of the files.
Result<PhysicalOffset> FileLogStore::RemainsEnd() const {
  PhysicalOffset end = live_tail_.position;
  if (!untrusted_remains_) return end;
  for (const auto& [base, segment] : files_.segments) {
    const Result<PhysicalOffset> file_end = segment->FileEnd();
    if (!file_end.ok()) return file_end.status();
    end = std::max(end, *file_end);
  }
  return end;
}

Status FileLogStore::CutBehind(const LogTail& tail, PhysicalOffset last_position) {
  std::shared_ptr<SegmentFile> next = preparer_.Stop();
  const std::lock_guard hold(segments_mutex_);
  if (next) files_.segments.emplace(next->base(), next);
  const Result<PhysicalOffset> to = RemainsEnd();
  if (!to.ok()) return Broken(to.status());
  // Readers lose it first: nobody finds an entry that is about to become zeros.
  index_.CutTo(tail, last_position);
  cache_.DropFrom(tail.next_index);
  end_position_.store(tail.position.value(), std::memory_order_release);
  live_tail_ = tail;
  synced_ = std::min(synced_, tail.position);
  const RecordedCut cut{.from = tail.position, .to = *to};
  Status done;
  if (!TRIAD_MUTANT(31)) done = files_.synced->RecordCut(synced_, cut);
  if (done.ok()) done = ZeroRange(fs_, options_.dir, cut.from, cut.to, &files_.segments);
  if (done.ok()) done = files_.synced->ClearCut(synced_);
  if (!done.ok()) return Broken(done);
  hint_floor_ = synced_;
  untrusted_remains_ = false;
  current_ = files_.segments.at(tail.segment_base);
  return preparer_.Start(current_, tail.position, nullptr, true);
}

Status FileLogStore::Restart(const StoreBase& base) {
  if (!broken_.ok()) return broken_;
  preparer_.Stop();
  const std::lock_guard hold(segments_mutex_);
  LogOutline outline;
  outline.base = base;
  outline.tail = base.tail;
  // Readers lose the old log first.
  cache_.DropFrom(LogIndex(0));
  index_.Reset(outline, {});
  begin_position_.store(base.tail.position.value(), std::memory_order_release);
  end_position_.store(base.tail.position.value(), std::memory_order_release);
  current_.reset();
  const Status done = RestartLog(fs_, options_.dir, base, &files_);
  if (!done.ok()) return Broken(done);
  live_tail_ = base.tail;
  synced_ = base.tail.position;
  hint_floor_ = synced_;
  untrusted_remains_ = false;
  is_damaged_ = false;
  ReserveBegin(fs_, options_.dir);
  current_ = files_.segments.at(base.tail.segment_base);
  return preparer_.Start(current_, base.tail.position, nullptr, true);
}

Status FileLogStore::WriteCheckpoint() {
  const std::lock_guard hold(checkpoint_mutex_);
  // One that vouches for a damaged log would keep the next start from finding the damage.
  if (is_damaged_) return checkpoint_.Remove();
  const bool whole = checkpoint_.grown();
  EntryIndex::CheckpointMark mark = checkpointed_;
  const std::optional<EntryIndex::Synced> news = index_.SyncedSince(&mark, whole);
  if (!news) return {};
  TRIAD_RETURN_IF_ERROR(news->whole ? checkpoint_.WriteWhole(news->outline)
                                    : checkpoint_.Append(news->outline));
  checkpointed_ = mark;
  return {};
}

Result<StoreBase> FileLogStore::BaseAt(const SegmentFacts& segment) {
  const StoreBase begin = index_.base();
  if (segment.first == begin.tail.next_index) return begin;
  const Result<std::vector<EntryRef>> last = ReadRange(segment.first - 1, segment.first, 1);
  // What cannot be read any more its successor still knows.
  const Result<LogTail> tail =
      last.ok() ? Result<LogTail>(TailAfter(*last->front())) : raw_.TailBefore(segment);
  if (!tail.ok()) return last.status();
  StoreBase base{.tail = *tail, .membership = index_.MembershipBefore(segment.first)};
  base.tail.position = segment.base;
  base.tail.segment_base = segment.base;
  return base;
}

Result<std::size_t> FileLogStore::DropBefore(LogIndex keep_from) {
  std::vector<SegmentFacts> segments;
  std::size_t count = 0;
  {
    const std::lock_guard hold(segments_mutex_);  // no Restart between
    segments = index_.Segments();
    while (count + 1 < segments.size() && segments[count + 1].first <= keep_from) ++count;
    if (count == 0) return count;
    const Result<StoreBase> base = BaseAt(segments[count]);
    if (!base.ok()) return base.status();
    // From here on the old segments are nobody's, whatever a crash leaves of them.
    TRIAD_RETURN_IF_ERROR(WriteBegin(fs_, options_.dir, {.base = *base, .fresh = false}));
    index_.DropBefore(*base);
    cache_.DropBefore(base->tail.next_index);
    begin_position_.store(base->tail.position.value(), std::memory_order_release);
    SegmentMap& files = files_.segments;
    files.erase(files.begin(), files.lower_bound(base->tail.position));
  }
  for (std::size_t i = 0; i < count; ++i) {
    // One at a time: the disk thread may wait to roll.
    const std::lock_guard hold(segments_mutex_);
    if (files_.segments.contains(segments[i].base)) continue;  // of a log that began anew
    const Status removed = fs_.Remove(options_.dir + "/" + SegmentName(segments[i].base));
    // A log that began anew took it along.
    if (!removed.ok() && removed.code() != StatusCode::kNotFound) return removed;
  }
  TRIAD_RETURN_IF_ERROR(fs_.SyncDir(options_.dir));
  const std::lock_guard hold(segments_mutex_);  // Restart writes `begin` through the same file
  ReserveBegin(fs_, options_.dir);
  return count;
}

// A bad entry below the checkpoint: without it the next start scans everything, finds the damage
// and recovers from the others (rule G).
void FileLogStore::Distrust(const Status& damage) {
  if (is_damaged_.exchange(true)) return;
  LOG(ERROR) << damage << "; the next start of this peer verifies its whole log and fetches what "
             << "is damaged from the others";
  // At once: this process may end before the next checkpoint is due.
  const std::lock_guard hold(checkpoint_mutex_);
  const Status removed = checkpoint_.Remove();
  LOG_IF(ERROR, !removed.ok()) << "the log's checkpoint stays: " << removed;
}

// The entries of the block that holds `index`. A cut or a drop beside it may take them away.
Result<std::vector<EntryRef>> FileLogStore::LoadBlock(LogIndex index) {
  constexpr int kTriesMax = 3;
  Status why = Status::NotFound("no entry " + std::to_string(index.value()));
  for (int i = 0; i < kTriesMax; ++i) {
    const std::uint64_t generation = cache_.generation();
    const std::optional<EntryIndex::Block> block = index_.BlockOf(index);
    if (!block) return Status::NotFound("no entry " + std::to_string(index.value()));
    Result<std::vector<EntryRef>> entries = ReadBlock(*block);
    const bool undisturbed = generation == cache_.generation() && index_.BlockOf(index) &&
                             index_.BlockOf(index)->end == block->end;
    if (entries.ok() && index < entries->front()->index + entries->size()) {
      cache_.InsertIf(generation, *entries);
      return entries;
    }
    why = entries.ok() ? Status::NotFound("cut meanwhile") : entries.status();
    if (!undisturbed) continue;
    const bool damaged =
        why.code() == StatusCode::kCorruption || why.code() == StatusCode::kIoError;
    if (damaged) Distrust(why);
    return why;
  }
  return why.code() == StatusCode::kCorruption ? Status::NotFound("changed meanwhile") : why;
}

Result<EntryRef> FileLogStore::ReadAt(PhysicalOffset inside) {
  if (EntryRef cached = cache_.FindAt(inside)) return cached;
  const std::optional<EntryIndex::Block> block = index_.BlockAt(inside);
  if (block) {
    const Result<std::vector<EntryRef>> entries = LoadBlock(block->first);
    if (!entries.ok()) return entries.status();
    if (EntryRef found = FindAt(*entries, inside)) return found;
  }
  return Status::NotFound("no entry at position " + std::to_string(inside.value()));
}

Result<std::vector<EntryRef>> FileLogStore::ReadRange(LogIndex from, LogIndex to,
                                                      std::size_t max_bytes) {
  std::vector<EntryRef> found;
  std::vector<EntryRef> loaded;  // the block last read
  std::size_t bytes = 0;
  for (LogIndex index = from; index < to; ++index) {
    EntryRef entry = cache_.FindIndex(index);
    if (!entry) {
      if (loaded.empty() || index > loaded.back()->index) {
        // Not found: behind the end, or before the beginning.
        Result<std::vector<EntryRef>> entries = LoadBlock(index);
        if (!entries.ok() && found.empty()) return entries.status();
        if (!entries.ok()) break;
        loaded = std::move(entries).value();
      }
      entry = loaded[static_cast<std::size_t>(index.value() - loaded.front()->index.value())];
    }
    bytes += entry->size();
    if (!found.empty() && bytes > max_bytes) break;
    found.push_back(std::move(entry));
  }
  if (found.empty()) return Status::NotFound("no entry " + std::to_string(from.value()));
  return found;
}

Status FileLogStore::Close() {
  TRIAD_RETURN_IF_ERROR(Sync());
  IgnoreError(WriteCheckpoint(), "derived: without it the next start scans more");
  if (vote_.written_unsynced) {
    VoteRecord record = vote_;
    record.written_unsynced = false;  // all of it is synced now
    TRIAD_RETURN_IF_ERROR(SaveVote(std::move(record)));
  }
  preparer_.Stop();
  broken_ = Status::Unavailable("the store is closed");
  return {};
}

}  // namespace

Result<std::unique_ptr<LogStore>> LogStore::Open(FileSystem& fs, LogStoreOptions options,
                                                 const StoreStamp& stamp) {
  if (options.segment_bytes == 0 || options.segment_bytes % 8 != 0) {
    return Status::InvalidArgument("segment size must be a multiple of 8");
  }
  Result<std::unique_ptr<StoreGuard>> guard = StoreGuard::Lock(fs, options.dir);
  if (!guard.ok()) return guard.status();
  const Result<bool> made = (*guard)->CheckStamp(stamp);
  if (!made.ok()) return made.status();
  if (!*made) {
    TRIAD_RETURN_IF_ERROR(MakeStoreFiles(fs, options.dir));
    TRIAD_RETURN_IF_ERROR((*guard)->WriteStamp(stamp));
  }
  Result<RecoveredStore> recovered = StoreRecovery(fs, options).Run();
  if (!recovered.ok()) return recovered.status();
  auto store = std::make_unique<FileLogStore>(fs, std::move(options), std::move(guard).value());
  TRIAD_RETURN_IF_ERROR(store->Start(std::move(recovered).value()));
  return std::unique_ptr<LogStore>(std::move(store));
}

}  // namespace triad::dledger
