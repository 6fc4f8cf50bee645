// Clock: the only way to ask for the time. Tests and simulators bring their own.
//
// Owner: none; implementations are safe on every thread.

#pragma once

#include <chrono>
#include <cstdint>

namespace triad {

// A point of the monotonic clock. Only differences mean something.
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint MonoNow() const = 0;
  // Milliseconds since 1970-01-01 UTC. May jump either way.
  virtual std::int64_t WallNowMs() const = 0;
};

// The machine's clocks. Lives for ever.
const Clock& SystemClock();

inline TimePoint MonoNow() {
  return SystemClock().MonoNow();
}
inline std::int64_t WallNowMs() {
  return SystemClock().WallNowMs();
}

// Whole milliseconds from `now` to `deadline`, rounded up; 0 when it has passed.
inline std::chrono::milliseconds TimeLeft(TimePoint deadline, TimePoint now) {
  if (deadline <= now) return std::chrono::milliseconds(0);
  return std::chrono::ceil<std::chrono::milliseconds>(deadline - now);
}

}  // namespace triad
