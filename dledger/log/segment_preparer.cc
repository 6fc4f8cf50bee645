#include "dledger/log/segment_preparer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/mutant.h"
#include "common/zeroed_file.h"

namespace triad::dledger {
namespace {

// Syncs of more cost the disk less than the zeros in front of them would, although they change
// metadata; provided that nobody has to fear a full disk.
constexpr std::int64_t kLargeSyncBytes = 768 << 10;
constexpr std::uint64_t kAmpleBytes = 1u << 30;

PhysicalOffset BlockEnd(PhysicalOffset at, PhysicalOffset base) {
  static_assert(kSegmentHeadBytes % kZeroAlign == 0);
  constexpr auto kBlock = static_cast<std::int64_t>(kZeroAlign);
  return base + (at - base + kBlock - 1) / kBlock * kBlock;
}

std::string_view ZerosBehind(PhysicalOffset end, PhysicalOffset base, PhysicalOffset ready) {
  static constexpr std::array<char, kZeroAlign> kZeros{};
  return {kZeros.data(), static_cast<std::size_t>(std::min(BlockEnd(end, base), ready) - end)};
}

}  // namespace

Status SegmentPreparer::Start(std::shared_ptr<SegmentFile> current, PhysicalOffset end,
                              std::shared_ptr<SegmentFile> next, bool may_create_next) {
  const Result<PhysicalOffset> ready = current->FileEnd();
  if (!ready.ok()) return ready.status();
  Part next_part;
  if (next) {
    const Result<PhysicalOffset> next_ready = next->FileEnd();
    if (!next_ready.ok()) return next_ready.status();
    next_part = Part{.file = std::move(next), .ready = *next_ready};
  }
  const std::lock_guard hold(mutex_);
  CHECK(!busy_);
  current_ = Part{.file = std::move(current), .ready = std::max(*ready, end)};
  next_ = std::move(next_part);
  end_ = end;
  may_create_next_ = may_create_next;
  running_ = true;
  return {};
}

Result<std::string_view> SegmentPreparer::Claim(PhysicalOffset end) {
  std::shared_ptr<SegmentFile> overrun;
  std::string_view padding;
  {
    std::unique_lock hold(mutex_);
    if (end > current_.ready) {
      idle_.wait(hold, [this] { return !busy_; });
      current_.ready = std::max(current_.ready, end);
    }
    padding = ZerosBehind(end, current_.file->base(), current_.ready);
    // The leader's segments are longer than expected: this is not where the next one begins.
    if (next_.file && end > next_.file->base()) {
      idle_.wait(hold, [this] { return !busy_; });
      overrun = std::move(next_.file);
      next_ = Part{};
    }
  }
  if (!overrun) return padding;
  TRIAD_RETURN_IF_ERROR(fs_.Remove(overrun->path()));
  TRIAD_RETURN_IF_ERROR(fs_.SyncDir(dir_));
  return padding;
}

void SegmentPreparer::Advance(PhysicalOffset end) {
  const std::lock_guard hold(mutex_);
  end_ = end;
}

void SegmentPreparer::NoteSync(std::int64_t bytes) {
  mean_sync_bytes_ += (bytes - mean_sync_bytes_) / 4;
}

bool SegmentPreparer::GrowsUnprepared() const {
  if (mean_sync_bytes_ < kLargeSyncBytes) return false;
  const Result<Space> space = fs_.GetSpace(dir_);
  return space.ok() && space->available_bytes >= kAmpleBytes;
}

std::shared_ptr<SegmentFile> SegmentPreparer::Stop() {
  std::unique_lock hold(mutex_);
  idle_.wait(hold, [this] { return !busy_; });
  running_ = false;
  return std::exchange(next_, Part{}).file;
}

std::int64_t SegmentPreparer::ReadyLocked() const {
  if (!running_) return 0;
  return current_.ready - end_ + (next_.file ? next_.ready - next_.file->base() : 0);
}

std::uint64_t SegmentPreparer::ready_bytes() const {
  const std::lock_guard hold(mutex_);
  return static_cast<std::uint64_t>(ReadyLocked());
}

bool SegmentPreparer::NextJobLocked(std::int64_t ahead_bytes, Job* job) const {
  const std::int64_t missing = ahead_bytes - ReadyLocked();
  if (!running_ || missing <= 0) return false;
  const std::int64_t chunk = std::min<std::int64_t>(missing, kZeroChunkBytes);
  const PhysicalOffset limit = current_.file->base() + segment_bytes_;
  // Beyond its expected size a segment ends nobody knows where.
  const bool open_ended = end_ > limit;
  if (open_ended || current_.ready < limit) {
    const PhysicalOffset end = BlockEnd(current_.ready + chunk, current_.file->base());
    *job = Job{current_.file, current_.ready, open_ended ? end : std::min(end, limit)};
    return true;
  }
  if (!next_.file) {
    if (!may_create_next_) return false;
    *job = Job{nullptr, limit, limit};
    return true;
  }
  const PhysicalOffset next_limit = next_.file->base() + segment_bytes_;
  if (next_.ready >= next_limit) return false;
  const PhysicalOffset end = BlockEnd(next_.ready + chunk, next_.file->base());
  *job = Job{next_.file, next_.ready, std::min(end, next_limit)};
  return true;
}

Result<std::shared_ptr<SegmentFile>> SegmentPreparer::Run(const Job& job) {
  if (job.file) {
    TRIAD_RETURN_IF_ERROR(job.file->WriteZeros(job.begin, job.end));
    TRIAD_RETURN_IF_ERROR(job.file->Sync());
    return job.file;
  }
  Result<std::shared_ptr<SegmentFile>> made = SegmentFile::Create(fs_, dir_, job.begin);
  if (!made.ok()) {
    if (made.status().code() == StatusCode::kNoSpace) {
      IgnoreError(fs_.Remove(dir_ + "/" + SegmentName(job.begin)), "the next attempt reports it");
    }
    return made.status();
  }
  if (!TRIAD_MUTANT(16)) TRIAD_RETURN_IF_ERROR(fs_.SyncDir(dir_));
  return made;
}

void SegmentPreparer::FinishLocked(const Job& job, std::shared_ptr<SegmentFile> file) {
  if (!job.file) {
    const PhysicalOffset base = file->base();
    next_ = Part{.file = std::move(file), .ready = base};
    return;
  }
  Part& part = job.file == current_.file ? current_ : next_;
  part.ready = std::max(part.ready, job.end);
}

Status SegmentPreparer::Prepare(std::uint64_t ahead_bytes) {
  if (GrowsUnprepared()) return {};
  while (true) {
    Job job;
    {
      const std::lock_guard hold(mutex_);
      CHECK(!busy_) << "two threads prepare";
      if (!NextJobLocked(static_cast<std::int64_t>(ahead_bytes), &job)) return {};
      busy_ = true;
    }
    Result<std::shared_ptr<SegmentFile>> done = Run(job);
    const std::lock_guard hold(mutex_);
    busy_ = false;
    if (done.ok()) FinishLocked(job, std::move(done).value());
    idle_.notify_all();
    if (!done.ok()) return done.status();
  }
}

}  // namespace triad::dledger
