// ApplyThread: hands committed entries to the application, in order, each once.
//
// The log thread hands entries over; beyond kApplyQueueBytesMax only their number is remembered and
// the thread reads them back from the log, so a slow application never holds up commits nor fills
// the memory. An entry that cannot be read is fatal: the state must not skip one.

#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "dledger/log/log_store.h"
#include "dledger/node.h"

namespace triad::dledger {

inline constexpr std::size_t kApplyQueueBytesMax = 32u << 20;
inline constexpr std::size_t kApplyBatchBytesMax = 4u << 20;

class ApplyThread {
 public:
  // Entries up to `applied` are never handed to the application. `on_applied`: apply thread, behind
  // each batch.
  ApplyThread(LogStore& log, Application& application, LogIndex applied,
              std::function<void()> on_applied);
  ~ApplyThread();

  void Start();
  // Log thread. Everything up to `upto` is committed; `entries` are the last of it, ascending.
  // Entries at or below `durable` can be read back from this peer's log.
  void Commit(LogIndex upto, std::vector<EntryRef> entries, LogIndex durable);
  // Any thread. Runs `task` between two batches.
  void Post(std::function<void()> task);
  // From inside such a task: the application holds everything up to `applied` by other means.
  void TakeOver(LogIndex applied);
  // Any thread.
  LogIndex applied() const { return LogIndex(applied_.load(std::memory_order_acquire)); }
  // Ends behind the batch at hand, joins. Idempotent.
  void Stop();

 private:
  void Run();
  void RunTasks();
  // Waits; empty when there is nothing to do just now.
  std::vector<EntryRef> Take();
  std::vector<EntryRef> ReadBack(LogIndex from, LogIndex to);
  void Apply(const std::vector<EntryRef>& batch);
  bool is_stopping();

  LogStore& log_;
  Application& application_;
  const std::function<void()> on_applied_;
  std::atomic<std::uint64_t> applied_;
  std::thread thread_;

  std::mutex mutex_;
  std::condition_variable wake_;
  LogIndex committed_;
  std::deque<EntryRef> queue_;  // ascending; gaps are read back
  std::size_t queue_bytes_ = 0;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
};

}  // namespace triad::dledger
