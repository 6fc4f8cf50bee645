// Counters: what a broker counts for GET_BROKER_RUNTIME_INFO (admin.md §2.9) and for its metrics.
// Relaxed atomics, and two windows of times.
//
// The processors count; TpsWindows (sampled once a second) turns totals into rates.

#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>

#include "common/clock.h"
#include "common/fixed_histogram.h"
#include "common/latency_window.h"

namespace triad::broker {

struct Counters {
  std::atomic<std::int64_t> put_messages{0};  // acknowledged
  // Of put_messages and get_messages, without those of system topics: what tools call a day's.
  std::atomic<std::int64_t> put_user_messages{0};
  std::atomic<std::int64_t> get_user_messages{0};
  // As records, while this peer led: what was sent, and what the broker stored itself (retries,
  // delayed messages coming due).
  std::atomic<std::int64_t> stored_messages{0};
  std::atomic<std::int64_t> stored_bytes{0};
  std::atomic<std::int64_t> put_failed{0};
  std::atomic<std::int64_t> put_duplicates{0};  // answered with the first one's result
  std::atomic<std::int64_t> retry_copies{0};    // clients' own sends to %RETRY%: copies
  // Strict topics that another group takes messages of, as last seen while this peer leads; else 0.
  std::atomic<std::int64_t> split_topics{0};
  std::atomic<std::int64_t> get_messages{0};  // handed out by pulls
  std::atomic<std::int64_t> get_bytes{0};
  std::atomic<std::int64_t> get_found{0};  // pulls
  std::atomic<std::int64_t> get_miss{0};
  mutable LatencyWindow put_times;  // of stored messages, from their arrival to the answer
  mutable LatencyWindow get_times;  // of pulls that found something, without the time they waited
  // Since the start, for metrics: the same times in microseconds, and bodies in bytes.
  FixedHistogram put_latency{500,    1000,   2000,   5000,    10000,   20000,  50000,
                             100000, 200000, 500000, 1000000, 2000000, 5000000};
  FixedHistogram get_latency{100,   200,   500,    1000,   2000,    5000,   10000,
                             20000, 50000, 100000, 200000, 1000000, 5000000};
  FixedHistogram put_sizes{1 << 10, 4 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20};

  void NotePut(TimePoint now, std::chrono::nanoseconds took, std::uint64_t messages) {
    put_times.Record(now, took, messages);
    put_latency.Record(std::chrono::duration_cast<std::chrono::microseconds>(took).count(),
                       messages);
  }
  void NoteStored(std::int64_t messages, std::int64_t bytes) {
    stored_messages.fetch_add(messages, std::memory_order_relaxed);
    stored_bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
  void NoteGet(TimePoint now, std::chrono::nanoseconds took) {
    get_times.Record(now, took);
    get_latency.Record(std::chrono::duration_cast<std::chrono::microseconds>(took).count());
  }
};

// Rates of one counter over the last 10, 60 and 600 seconds. Owner: one timer; reads anywhere.
class RateWindow {
 public:
  void Sample(TimePoint now, std::int64_t total);
  // "1.0 0.5 0.1": three doubles, one blank between them.
  std::string Text() const;

 private:
  mutable std::mutex mutex_;
  struct Point {
    TimePoint at;
    std::int64_t total = 0;
  };
  std::deque<Point> points_;  // at most 601, oldest first
};

}  // namespace triad::broker
