// WorkerPool: the threads that run listeners.
//
// Thread: Submit on every thread. Bounds: the callers'; what waits are batches of messages that
// flow control let in.

#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace triad::client {

class WorkerPool {
 public:
  WorkerPool(std::size_t threads, const std::string& name);
  ~WorkerPool();  // Stop
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Dropped after Stop.
  void Submit(std::function<void()> task);
  // Drops what has not begun, waits for what runs. Never on a thread of the pool.
  void Stop();

 private:
  void Run();

  std::mutex mutex_;  // leaf
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace triad::client
