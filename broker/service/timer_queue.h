// TimerQueue: runs tasks later, on one thread of its own. Tasks must be short and must not block.
// The other form has no thread: its owner (a simulator) runs what is due.
//
// Thread: every method is safe on every thread. Bounds: max_timers; beyond it Schedule returns 0.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "common/clock.h"

namespace triad::broker {

class TimerQueue {
 public:
  using Id = std::uint64_t;
  explicit TimerQueue(std::size_t max_timers = 1000000);
  explicit TimerQueue(const Clock& clock, std::size_t max_timers = 1000000);  // without a thread
  ~TimerQueue();  // stops and joins; what has not run never runs

  Id Schedule(std::chrono::milliseconds delay, std::function<void()> task);
  // True when it will not run any more (false: ran, running or unknown).
  bool Cancel(Id id);
  void Stop();

  // ---- without a thread ----
  std::optional<TimePoint> NextDue() const;
  bool RunOne();  // the first task, if it is due

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
};

}  // namespace triad::broker
