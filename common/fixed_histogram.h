// FixedHistogram: how many recordings fell into each of a few given ranges, since the start.
//
// For exported metrics: nothing is ever forgotten, so that every number only grows. Thread: any;
// relaxed atomics, two additions per recording. A reading may miss what is being recorded, and its
// sum may be a recording ahead of its counts or behind them. Size: kBoundsMax ranges and one above.

#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace triad {

class FixedHistogram {
 public:
  static constexpr std::size_t kBoundsMax = 15;

  // `bounds`: ascending, the largest value of each range.
  FixedHistogram(std::initializer_list<std::int64_t> bounds)
      : size_(std::min(bounds.size(), kBoundsMax)) {
    std::copy_n(bounds.begin(), size_, bounds_.begin());
  }

  void Record(std::int64_t value, std::uint64_t times = 1) {
    const std::int64_t counted = std::max<std::int64_t>(value, 0);
    std::size_t range = 0;
    while (range < size_ && counted > bounds_[range]) ++range;
    counts_[range].fetch_add(times, std::memory_order_relaxed);
    sum_.fetch_add(static_cast<std::uint64_t>(counted) * times, std::memory_order_relaxed);
  }

  struct Reading {
    std::vector<std::int64_t> bounds;
    std::vector<std::uint64_t> counts;  // one more than bounds: those above the last
    std::uint64_t sum = 0;
  };
  Reading Read() const {
    Reading reading;
    reading.bounds.assign(bounds_.begin(), bounds_.begin() + static_cast<std::ptrdiff_t>(size_));
    for (std::size_t i = 0; i <= size_; ++i) {
      reading.counts.push_back(counts_[i].load(std::memory_order_relaxed));
    }
    reading.sum = sum_.load(std::memory_order_relaxed);
    return reading;
  }

 private:
  const std::size_t size_;
  std::array<std::int64_t, kBoundsMax> bounds_{};
  std::array<std::atomic<std::uint64_t>, kBoundsMax + 1> counts_{};
  std::atomic<std::uint64_t> sum_{0};
};

}  // namespace triad
