// BackgroundThread: keeps the log prepared ahead of its tail, its recovery short and its disk from
// filling up.
//
// Never on the hot path. A full disk is not fatal: `is_full` turns true and the leader builds
// nothing more until there is space again (rule K). Retention: see retention.h; nothing is ever
// dropped behind what the application holds durably.

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
#include "dledger/retention.h"

namespace triad::dledger {

class BackgroundThread {
 public:
  // What retention needs to know of the rest of the node.
  struct Facts {
    LogIndex durable;  // entries in front of it and itself may go; 0: none
    std::int64_t log_time_ms = 0;
    std::optional<LogIndex> wanted;  // from here on a peer that catches up still needs them
  };
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
  bool is_full() const { return is_full_.load(std::memory_order_relaxed); }
  void Stop();

 private:
  using SteadyPoint = std::chrono::steady_clock::time_point;

  void Run();
  void PrepareIfNeeded();
  void WriteCheckpoint();
  void Clean();
  // Drops the oldest segment if it may go.
  bool CleanOne(const Facts& facts);
  static bool Postpone(const Status& why);  // false

  LogStore& log_;
  const Clock& clock_;
  const std::uint64_t prepare_bytes_;
  Retention retention_;
  const std::function<Facts()> facts_;
  const std::function<void(LogIndex first)> on_dropped_;
  std::thread thread_;
  std::atomic<bool> is_full_;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool is_due_ = true;
  std::optional<RetentionOptions> next_retention_;
  bool stopping_ = false;
};

}  // namespace triad::dledger
