#include "dledger/log/segment_preparer.h"

#include <algorithm>
#include <utility>

#include "common/mutant.h"

namespace triad::dledger {

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

Status SegmentPreparer::Claim(PhysicalOffset end) {
  std::shared_ptr<SegmentFile> overrun;
  {
    std::unique_lock hold(mutex_);
    if (end > current_.ready) {
      idle_.wait(hold, [this] { return !busy_; });
      current_.ready = std::max(current_.ready, end);
    }
    // The leader's segments are longer than expected: this is not where the next one begins.
    if (next_.file && end > next_.file->base()) {
      idle_.wait(hold, [this] { return !busy_; });
      overrun = std::move(next_.file);
      next_ = Part{};
    }
  }
  if (!overrun) return {};
  TRIAD_RETURN_IF_ERROR(fs_.Remove(overrun->path()));
  return fs_.SyncDir(dir_);
}

void SegmentPreparer::Advance(PhysicalOffset end) {
  const std::lock_guard hold(mutex_);
  end_ = end;
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
    const PhysicalOffset end = current_.ready + chunk;
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
  *job = Job{next_.file, next_.ready, std::min(next_.ready + chunk, next_limit)};
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
