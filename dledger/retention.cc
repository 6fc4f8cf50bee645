#include "dledger/retention.h"

#include <algorithm>

namespace triad::dledger {
namespace {

constexpr std::chrono::minutes kSlack{10};  // log time may run so much faster than the clock
constexpr std::chrono::hours kWindow{1};
constexpr double kForcedFloors = 1.5;
constexpr double kHeldFloors = 1.25;

std::int64_t Ms(TimePoint::duration time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
}

}  // namespace

void Retention::Begin(const RetentionMoment& moment) {
  moment_ = moment;
  forced_one_ = false;
  if (believed_ms_ == 0) {  // it was not known until now
    believed_ms_ = moment.log_time_ms;
  } else {
    const std::int64_t passed = Ms(moment.now - believed_at_);
    const std::int64_t expected = believed_ms_ + passed;
    const bool jumped = moment.log_time_ms > expected + Ms(kSlack);
    believed_ms_ = jumped ? expected : std::max(believed_ms_, moment.log_time_ms);
  }
  believed_at_ = moment.now;
  if (!has_begun_ || moment.now - hour_began_at_ >= kWindow) {
    hour_began_at_ = moment.now;
    left_in_hour_ = std::max<std::size_t>(1, moment.segments / 2);
  }
  has_begun_ = true;
}

double Retention::used_percent() const {
  const auto total = static_cast<double>(moment_.space.total_bytes);
  const auto available = static_cast<double>(moment_.space.available_bytes);
  return total > 0 ? 100 * (1 - available / total) : 0;
}

bool Retention::MayExpireNow() const {
  const bool is_time = moment_.is_asked || std::find(options_.hours.begin(), options_.hours.end(),
                                                     moment_.hour) != options_.hours.end();
  return is_time || used_percent() >= options_.expired_percent;
}

bool Retention::IsFull(int percent, double floors) const {
  return used_percent() >= percent && static_cast<double>(moment_.space.available_bytes) <
                                          floors * static_cast<double>(options_.free_floor_bytes);
}

Retention::Verdict Retention::Judge(std::int64_t newest_ms, bool is_wanted) {
  const bool is_old = options_.age.count() > 0 && believed_ms_ - newest_ms >= options_.age.count();
  if (is_old && left_in_hour_ > 0 && MayExpireNow()) {
    --left_in_hour_;
    return Verdict::kExpired;
  }
  // One per look: the next look sees what it brought.
  const bool is_forced = options_.forced_percent > 0 &&
                         IsFull(options_.forced_percent, kForcedFloors) &&
                         (!is_wanted || IsFull(options_.held_percent, kHeldFloors));
  if (!forced_one_ && is_forced) {
    forced_one_ = true;
    return Verdict::kForced;
  }
  return Verdict::kKeep;
}

}  // namespace triad::dledger
