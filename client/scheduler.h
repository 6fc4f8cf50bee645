// Scheduler: runs short tasks at their time, on one thread of its own.
//
// Thread: every method is safe on every thread; tasks run on the scheduler's thread and must not
// block. Bounds: the callers'; each has at most one task waiting per queue, send or address.

#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "common/clock.h"

namespace triad::client {

class Scheduler {
 public:
  Scheduler();
  ~Scheduler();  // Stop
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Dropped after Stop.
  void After(std::chrono::milliseconds delay, std::function<void()> task);
  void Stop();

 private:
  void Run();

  std::mutex mutex_;  // leaf
  std::condition_variable changed_;
  std::multimap<TimePoint, std::function<void()>> tasks_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace triad::client
