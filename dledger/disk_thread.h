// DiskThread: writes and syncs what the core decided, in order.
//
// Owner of the log store's writer side: its one thread. Whole batches are swapped in; one Sync
// covers all appends taken together. A failed write or sync ends the process (rule F). Without
// sync_flush an append counts as done when written and is synced every 10 ms; votes, cuts and marks
// are synced all the same. Bounds: what may be un-synced is bounded by the leader (log_driver.h)
// and by the core's in-flight limit; kReplacementsMax replacements.

#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "common/latency_window.h"
#include "dledger/disk_writer.h"
#include "dledger/log/log_store.h"
#include "dledger/raft/types.h"

namespace triad::dledger {

inline constexpr std::size_t kReplacementsMax = 16;

class DiskThread {
 public:
  struct Events {
    std::function<void(Token)> on_done;  // disk thread: everything up to the token is durable
    std::function<void()> on_written;    // disk thread, behind each batch
    std::function<Status()> on_reset;    // disk thread: install the snapshot that waits
  };
  // `log` outlives it.
  DiskThread(LogStore& log, bool sync_flush, Events events);
  ~DiskThread();

  void Start();
  // Any thread. Takes the content, in order.
  void Push(std::vector<StorageOp>* ops);
  // Any thread. An entry to be written over damaged bytes of the log. False when too many wait or
  // it is stopping.
  struct Replacement {
    EntryRef entry;
    std::function<void(Status)> done;  // disk thread
  };
  bool PushReplacement(Replacement replacement);
  // Does what is queued, syncs, joins. Idempotent.
  void Stop();
  // Any thread: bytes of entries that were pushed and are not durable yet.
  std::uint64_t unsynced_bytes() const { return unsynced_bytes_; }
  // Any thread: how long a sync of the log took lately.
  LatencySummary sync_latency() { return sync_latency_.Read(std::chrono::steady_clock::now()); }

 private:
  void Run();
  // Waits for work; false when stopped and nothing is left.
  bool Take(std::vector<StorageOp>* batch, std::vector<Replacement>* replacements);
  void Execute(const std::vector<StorageOp>& batch);
  void SyncNow();

  LogStore& log_;
  const bool sync_flush_;
  const Events events_;
  std::thread thread_;

  // The disk thread's own.
  DiskWriter writer_;
  std::chrono::steady_clock::time_point synced_at_{};
  std::uint64_t dirty_bytes_ = 0;  // of unsynced_bytes_, written
  LatencyWindow sync_latency_;

  std::atomic<std::uint64_t> unsynced_bytes_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<StorageOp> queue_;
  std::vector<Replacement> replacements_;  // at most kReplacementsMax
  bool stopping_ = false;
};

}  // namespace triad::dledger
