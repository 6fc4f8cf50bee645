// LogClock: the log's own time, which one peer's wall clock cannot move.
//
// Pure; the caller passes `now`. Owner: the log thread. Time = the median of the voters' wall
// clocks (each as its last message carried it, advanced by the monotonic clock since), never less
// than the last entry's. With two voices the one nearer to the running log time counts. Samples
// older than kSampleAgeMax are dropped. Size: one sample per peer, at most kVoicesMax. Source:
// architecture.md §3, "Log time".

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/clock.h"
#include "common/ids.h"
#include "dledger/raft/types.h"

namespace triad::dledger {

inline constexpr std::chrono::seconds kSampleAgeMax{5};
inline constexpr std::size_t kVoicesMax = 2 * kMembersMax;  // strangers have clocks too

class LogClock {
 public:
  // What `peer` (also this one) says the wall clock is.
  void Sample(const PeerId& peer, std::int64_t wall_ms, TimePoint now);
  // An entry carries this time: log time is never less.
  void Raise(std::int64_t store_time_ms);
  // Log time by the voices of `voters`. Never smaller than an answer before. While fewer than a
  // majority is heard, time goes on from the last answer: one wrong clock alone moves nothing. 0:
  // not known yet, no majority has been heard and the log is empty.
  std::int64_t Now(const std::vector<PeerId>& voters, TimePoint now);
  std::size_t voices() const { return voices_.size(); }

 private:
  struct Voice {
    std::int64_t wall_ms = 0;
    TimePoint at;
  };
  // What the voters' clocks show by their last samples, sorted.
  std::vector<std::int64_t> Shown(const std::vector<PeerId>& voters, TimePoint now) const;

  std::map<PeerId, Voice> voices_;
  std::int64_t last_ms_ = 0;
  std::optional<TimePoint> last_at_;
};

}  // namespace triad::dledger
