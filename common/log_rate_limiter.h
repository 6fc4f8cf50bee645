// LogRateLimiter: one line per interval, however often the event comes; the next line says how many
// were left out.
//
//   static LogRateLimiter limiter(std::chrono::seconds(5));
//   if (auto suppressed = limiter.Allow(SystemClock().MonoNow())) {
//     LOG(WARNING) << "append queue is full" << SuppressedNote(*suppressed);
//   }
//
// Safe on every thread, without a lock. The caller passes the time, so a test decides it.

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "common/clock.h"

namespace triad {

class LogRateLimiter {
 public:
  explicit LogRateLimiter(std::chrono::nanoseconds interval) : interval_ns_(interval.count()) {}

  // The number of events left out since the last line, when this one may be logged; else nullopt.
  std::optional<std::uint64_t> Allow(TimePoint now) {
    const std::int64_t now_ns = now.time_since_epoch().count();
    std::int64_t next = next_ns_.load(std::memory_order_relaxed);
    if (now_ns < next || !next_ns_.compare_exchange_strong(next, now_ns + interval_ns_)) {
      suppressed_.fetch_add(1, std::memory_order_relaxed);
      return std::nullopt;
    }
    return suppressed_.exchange(0, std::memory_order_relaxed);
  }

 private:
  const std::int64_t interval_ns_;
  std::atomic<std::int64_t> next_ns_{std::numeric_limits<std::int64_t>::min()};
  std::atomic<std::uint64_t> suppressed_{0};
};

// "" or " (17 more like this were left out)".
inline std::string SuppressedNote(std::uint64_t suppressed) {
  if (suppressed == 0) return {};
  return " (" + std::to_string(suppressed) + " more like this were left out)";
}

}  // namespace triad
