// Schedule: when a load may send its next request, and from when that request's latency counts.
//
// Closed loop (rate 0): at most `window` requests wait for their answer. Open loop: request n is
// due at start + n / rate, whatever the answers do, and its latency counts from that instant even
// when it had to leave later: a server that stands still cannot hide it (no coordinated omission).
// `window` bounds memory in both. Pure: the caller passes the time. Times are nanoseconds of one
// monotonic clock. Owner: one thread.

#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace triad::bench {

using Nanos = std::int64_t;
inline constexpr Nanos kSecond = 1'000'000'000;

class Schedule {
 public:
  // window > 0; rate_per_s >= 0, 0 = closed loop.
  Schedule(std::uint64_t window, double rate_per_s, Nanos start)
      : window_(window), rate_per_s_(rate_per_s), start_(start) {}

  bool is_open_loop() const { return rate_per_s_ > 0; }

  // How many requests may have left by `now` when `answered` have their answer.
  std::uint64_t Allowed(Nanos now, std::uint64_t answered) const {
    const std::uint64_t by_window = answered + window_;
    if (!is_open_loop()) return by_window;
    return now < start_ ? 0 : std::min(by_window, DueBy(now));
  }

  // The instant that request n is due at. Open loop only.
  Nanos Due(std::uint64_t n) const {
    return start_ + static_cast<Nanos>(static_cast<double>(n) / rate_per_s_ * 1e9);
  }

  // The latency of request n, which left at `sent_at`, counts from here.
  Nanos CountsFrom(std::uint64_t n, Nanos sent_at) const {
    return is_open_loop() ? std::min(Due(n), sent_at) : sent_at;
  }

  // When to look again, `sent` requests having left: nothing = only an answer can help.
  std::optional<Nanos> NextDue(std::uint64_t sent, std::uint64_t answered) const {
    if (!is_open_loop() || sent >= answered + window_) return std::nullopt;
    return Due(sent);
  }

 private:
  // How many requests are due at or before `now`; agrees with Due to the nanosecond.
  std::uint64_t DueBy(Nanos now) const {
    auto n = static_cast<std::uint64_t>(static_cast<double>(now - start_) * rate_per_s_ / 1e9);
    while (n > 0 && Due(n) > now) --n;
    while (Due(n + 1) <= now) ++n;
    return n + 1;  // request 0 is due at the start
  }

  std::uint64_t window_;
  double rate_per_s_;
  Nanos start_;
};

}  // namespace triad::bench
