// TimerQueue: runs tasks later, on one thread of its own. Tasks must be short and must not block.
//
// Thread: every method is safe on every thread. Bounds: max_timers; beyond it Schedule returns 0.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace triad::broker {

class TimerQueue {
 public:
  using Id = std::uint64_t;
  explicit TimerQueue(std::size_t max_timers = 1000000);
  ~TimerQueue();  // stops and joins; what has not run never runs

  Id Schedule(std::chrono::milliseconds delay, std::function<void()> task);
  // True when it will not run any more (false: ran, running or unknown).
  bool Cancel(Id id);
  void Stop();

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
};

}  // namespace triad::broker
