// Histogram: latencies in log-linear buckets (64 per power of two: 1.6 % wide), from 1 us to about
// 70 minutes.
//
// Pure. Owner: one thread; merge afterwards.

#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace triad {

class Histogram {
 public:
  void Record(std::uint64_t micros, std::uint64_t times = 1) {
    buckets_[BucketOf(micros)] += times;
    count_ += times;
    if (micros > max_) max_ = micros;
  }
  void Merge(const Histogram& other) {
    for (std::size_t i = 0; i < buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
    count_ += other.count_;
    if (other.max_ > max_) max_ = other.max_;
  }
  std::uint64_t count() const { return count_; }
  std::uint64_t max() const { return max_; }

  // Recordings of at most so many us; of a few more where these share a bucket.
  std::uint64_t CountUpTo(std::uint64_t micros) const {
    std::uint64_t found = 0;
    for (std::size_t i = 0; i <= BucketOf(micros); ++i) found += buckets_[i];
    return found;
  }

  // The latency in us that `fraction` (0..1) of all recordings do not exceed; 0 without any.
  std::uint64_t Percentile(double fraction) const {
    const auto wanted = static_cast<std::uint64_t>(fraction * static_cast<double>(count_) + 0.5);
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      seen += buckets_[i];
      if (seen >= wanted && seen > 0) return std::min(UpperBound(i), max_);
    }
    return max_;
  }

 private:
  static constexpr std::size_t kSubBits = 7;
  static std::size_t BucketOf(std::uint64_t value) {
    const std::uint64_t v = std::min(value, std::uint64_t{1} << 32);
    if (v < (1u << kSubBits)) return static_cast<std::size_t>(v);
    const auto exponent = static_cast<std::size_t>(std::bit_width(v)) - kSubBits;
    return (exponent << (kSubBits - 1)) + static_cast<std::size_t>(v >> exponent);
  }
  static std::uint64_t UpperBound(std::size_t bucket) {
    if (bucket < (1u << kSubBits)) return bucket;
    const std::size_t half = std::size_t{1} << (kSubBits - 1);
    const std::size_t exponent = (bucket - half) / half;
    const std::size_t sub = (bucket - half) % half + half;
    return ((static_cast<std::uint64_t>(sub) + 1) << exponent) - 1;
  }

  std::array<std::uint64_t, 2048> buckets_{};
  std::uint64_t count_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace triad
