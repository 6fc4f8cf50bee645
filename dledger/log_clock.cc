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
  if (voices_.size() >= kVoicesMax && !voices_.contains(peer)) {
    std::erase_if(voices_,
                  [now](const auto& item) { return now - item.second.at > kSampleAgeMax; });
    if (voices_.size() >= kVoicesMax) return;
  }
  voices_[peer] = Voice{.wall_ms = wall_ms, .at = now};
}

void LogClock::Raise(std::int64_t store_time_ms) {
  last_ms_ = std::max(last_ms_, store_time_ms);
}

std::int64_t LogClock::Now(const std::vector<PeerId>& voters, TimePoint now) {
  const std::int64_t elapsed = last_at_ ? MsBetween(*last_at_, now) : 0;
  last_at_ = now;
  const std::int64_t expected = last_ms_ + elapsed;
  const std::vector<std::int64_t> shown = Shown(voters, now);
  if (2 * shown.size() <= voters.size()) {
    if (last_ms_ != 0) last_ms_ = expected;
    return last_ms_;
  }
  const std::int64_t lower = shown[(shown.size() - 1) / 2];
  const std::int64_t upper = shown[shown.size() / 2];
  const bool upper_is_nearer = std::abs(upper - expected) < std::abs(lower - expected);
  last_ms_ = std::max(last_ms_, upper_is_nearer ? upper : lower);
  return last_ms_;
}

std::vector<std::int64_t> LogClock::Shown(const std::vector<PeerId>& voters, TimePoint now) const {
  std::vector<std::int64_t> times;
  for (const PeerId& voter : voters) {
    const auto found = voices_.find(voter);
    if (found == voices_.end() || now - found->second.at > kSampleAgeMax) continue;
    times.push_back(found->second.wall_ms + MsBetween(found->second.at, now));
  }
  std::sort(times.begin(), times.end());
  return times;
}

}  // namespace triad::dledger
