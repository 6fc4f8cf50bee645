// LatencyWindow: how long something took lately: the last 30 to 60 seconds.
//
// Two histograms; every 30 s the older one is thrown away. Thread: any; one leaf mutex, held for a
// few nanoseconds by Record. Size: 32 KiB.

#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>

#include "common/clock.h"
#include "common/histogram.h"

namespace triad {

struct LatencySummary {
  std::uint64_t count = 0;
  std::chrono::microseconds p50{0};
  std::chrono::microseconds p99{0};
  std::chrono::microseconds max{0};
};

class LatencyWindow {
 public:
  static constexpr std::chrono::seconds kHalf{30};

  void Record(TimePoint now, std::chrono::nanoseconds took, std::uint64_t times = 1) {
    const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(took).count();
    const std::lock_guard hold(mutex_);
    MoveTo(now);
    current_.Record(static_cast<std::uint64_t>(std::max<std::int64_t>(micros, 0)), times);
  }

  Histogram Recent(TimePoint now) {
    const std::lock_guard hold(mutex_);
    MoveTo(now);
    Histogram all = current_;
    all.Merge(previous_);
    return all;
  }

  LatencySummary Read(TimePoint now) {
    const Histogram all = Recent(now);
    LatencySummary summary;
    summary.count = all.count();
    summary.p50 = std::chrono::microseconds(all.Percentile(0.5));
    summary.p99 = std::chrono::microseconds(all.Percentile(0.99));
    summary.max = std::chrono::microseconds(all.max());
    return summary;
  }

 private:
  void MoveTo(TimePoint now) {
    if (now - begun_at_ < kHalf) return;
    previous_ = now - begun_at_ < 2 * kHalf ? current_ : Histogram();
    current_ = Histogram();
    begun_at_ = now;
  }

  std::mutex mutex_;
  TimePoint begun_at_{};
  Histogram current_;
  Histogram previous_;
};

}  // namespace triad
