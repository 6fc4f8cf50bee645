// BackgroundThread: keeps the log prepared ahead of its tail, and its recovery short.
//
// Never on the hot path. A full disk is not fatal: `is_full` turns true and the leader builds
// nothing more until there is space again (rule K).

#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "dledger/log/log_store.h"

namespace triad::dledger {

class BackgroundThread {
 public:
  BackgroundThread(LogStore& log, std::uint64_t prepare_bytes);
  ~BackgroundThread();

  void Start();
  // Any thread, cheap: the tail moved.
  void OnWritten();
  bool is_full() const { return is_full_.load(std::memory_order_relaxed); }
  void Stop();

 private:
  void Run();
  void PrepareIfNeeded();
  void CheckpointIfMoved();

  LogStore& log_;
  const std::uint64_t prepare_bytes_;
  std::thread thread_;
  std::atomic<bool> is_full_{false};
  PhysicalOffset checkpoint_at_;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool is_due_ = true;
  bool stopping_ = false;
};

}  // namespace triad::dledger
