// SegmentPreparer: zeros really written ahead of the log, so that a sync there changes no metadata.
//
// The window reaches from the log's end to the end of its segment and into the next one, which is
// made, synced and its directory synced before it is handed out. Zeros are written in chunks of
// about 1 MiB, whole blocks (past the page cache if possible), each chunk synced, on the background
// thread; the log is written by the disk thread. The two never touch the same block: whoever needs
// a range beyond what is ready claims it first, and waits for at most one chunk. Locks: one leaf
// mutex, never held during IO. Source: architecture.md §3, testing.md rules J, K.

#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "common/file_system.h"
#include "common/ids.h"
#include "common/status.h"
#include "dledger/log/segment_file.h"

namespace triad::dledger {

class SegmentPreparer {
 public:
  SegmentPreparer(FileSystem& fs, std::string dir, std::uint64_t segment_bytes)
      : fs_(fs), dir_(std::move(dir)), segment_bytes_(static_cast<std::int64_t>(segment_bytes)) {}

  // ---- disk thread ----
  // The segment that holds the log's end, ready up to the file's end; `next` may be null. Without
  // `may_create_next` only this segment is prepared.
  Status Start(std::shared_ptr<SegmentFile> current, PhysicalOffset end,
               std::shared_ptr<SegmentFile> next, bool may_create_next);
  // Call before writing the current segment up to `end`. Afterwards no zeros go there. Returns the
  // zeros that stand behind `end` in its block: a block that is written whole need not be read.
  Result<std::string_view> Claim(PhysicalOffset end);
  // The log ends here now.
  void Advance(PhysicalOffset end);
  // So much was synced at once.
  void NoteSync(std::int64_t bytes);
  // Waits for the background thread, and stops preparing until Start. Returns the next segment, or
  // null.
  std::shared_ptr<SegmentFile> Stop();

  // ---- background thread ----
  // Until `ahead_bytes` are ready, or the current and the next segment are. Nothing while syncs are
  // large and there is ample space: zeros would double what the disk writes. Errors: kNoSpace.
  Status Prepare(std::uint64_t ahead_bytes);

  // ---- any thread ----
  std::uint64_t ready_bytes() const;

 private:
  struct Part {
    std::shared_ptr<SegmentFile> file;
    PhysicalOffset ready;  // zeros or log up to here
  };
  struct Job {
    std::shared_ptr<SegmentFile> file;  // null: make the segment at `begin`
    PhysicalOffset begin;
    PhysicalOffset end;
  };
  std::int64_t ReadyLocked() const;
  bool GrowsUnprepared() const;
  bool NextJobLocked(std::int64_t ahead_bytes, Job* job) const;
  Result<std::shared_ptr<SegmentFile>> Run(const Job& job);
  void FinishLocked(const Job& job, std::shared_ptr<SegmentFile> file);

  FileSystem& fs_;
  const std::string dir_;
  const std::int64_t segment_bytes_;
  std::atomic<std::int64_t> mean_sync_bytes_{0};  // of late
  mutable std::mutex mutex_;
  std::condition_variable idle_;
  bool running_ = false;
  bool busy_ = false;  // a job is at work, without the mutex
  bool may_create_next_ = true;
  PhysicalOffset end_;
  Part current_;
  Part next_;
};

}  // namespace triad::dledger
