#include "dledger/log_clock.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>

namespace triad::dledger {
namespace {

std::int64_t MsBetween(TimePoint from, TimePoint to) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(to - from).count();
}

}  // namespace

void LogClock::Sample(const PeerId& peer, std::int64_t wall_ms, TimePoint now) {
  voices_[peer] = Voice{.wall_ms = wall_ms, .at = now};
}

void LogClock::Raise(std::int64_t store_time_ms) {
  last_ms_ = std::max(last_ms_, store_time_ms);
}

std::int64_t LogClock::Now(const std::vector<PeerId>& voters, TimePoint now) {
  const std::optional<std::int64_t> median = Median(voters, now);
  if (median) last_ms_ = std::max(last_ms_, *median);
  last_at_ = now;
  return last_ms_;
}

std::optional<std::int64_t> LogClock::Median(const std::vector<PeerId>& voters,
                                             TimePoint now) const {
  std::vector<std::int64_t> times;
  for (const PeerId& voter : voters) {
    const auto found = voices_.find(voter);
    if (found == voices_.end() || now - found->second.at > kSampleAgeMax) continue;
    times.push_back(found->second.wall_ms + MsBetween(found->second.at, now));
  }
  if (times.empty()) return std::nullopt;
  std::sort(times.begin(), times.end());
  const std::int64_t lower = times[(times.size() - 1) / 2];
  const std::int64_t upper = times[times.size() / 2];
  const std::int64_t expected = last_ms_ + MsBetween(last_at_, now);
  return std::abs(upper - expected) < std::abs(lower - expected) ? upper : lower;
}

}  // namespace triad::dledger
