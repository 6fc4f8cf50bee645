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

}  // namespace triad
