// BackgroundThread: keeps the log prepared ahead of its tail, its recovery short and its disk from
// filling up.
//
// Never on the hot path. A full disk is not fatal: `is_full` turns true and the leader builds
// nothing more until there is space again (rule K). Retention: see log_cleaner.h.

#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "common/clock.h"
#include "dledger/log/log_store.h"
#include "dledger/log_cleaner.h"

namespace triad::dledger {

class BackgroundThread {
 public:
  using Facts = LogCleaner::Facts;

  // `log` and `clock` outlive it. `facts` is called on the thread, and `on_dropped` when the log
  // begins at another entry.
  BackgroundThread(LogStore& log, const Clock& clock, std::uint64_t prepare_bytes,
                   RetentionOptions retention, std::function<Facts()> facts,
                   std::function<void(LogIndex first)> on_dropped);
  ~BackgroundThread();

  void Start();
  // Any thread, cheap: the tail moved.
  void OnWritten();
  // Any thread: in force from the next look on, but for the interval.
  void SetRetention(RetentionOptions retention);
  // Any thread: a look at the old segments at once, which takes the hour for one of retention's.
  void CleanNow();
  bool is_full() const { return is_full_.load(std::memory_order_relaxed); }
  void Stop();

 private:
  using SteadyPoint = std::chrono::steady_clock::time_point;

  void Run();
  void PrepareIfNeeded();
  void WriteCheckpoint();
  void Clean(bool is_asked);

  LogStore& log_;
  const std::uint64_t prepare_bytes_;
  LogCleaner cleaner_;
  const std::function<Facts()> facts_;
  std::thread thread_;
  std::atomic<bool> is_full_;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool is_due_ = true;
  bool is_clean_asked_ = false;
  std::optional<RetentionOptions> next_retention_;
  bool stopping_ = false;
};

}  // namespace triad::dledger
