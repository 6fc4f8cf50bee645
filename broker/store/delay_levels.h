// Delay levels: the table behind a message's DELAY property, as messageDelayLevel writes it.
//
// Pure. Level 1 is the first. Source: wire.md §8.4.

#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace triad::broker {

inline constexpr std::string_view kDefaultDelayLevels =
    "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h";
inline constexpr std::size_t kDelayLevelsMax = 64;

class DelayLevels {
 public:
  DelayLevels();  // the default table

  // Blank-separated numbers, each with one of the units s, m, h, d. Errors: kInvalidArgument.
  static Result<DelayLevels> Parse(std::string_view text);

  std::int32_t max_level() const { return static_cast<std::int32_t>(delays_.size()); }
  // Levels above the table are its last; below 1 there is no delay.
  std::chrono::milliseconds DelayOf(std::int32_t level) const;

 private:
  explicit DelayLevels(std::vector<std::chrono::milliseconds> delays);
  std::vector<std::chrono::milliseconds> delays_;
};

}  // namespace triad::broker
