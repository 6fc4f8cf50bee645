// Retention: when the log may forget its oldest segment.
//
// By age: a segment whose newest entry is older than `age`, in the hours of `hours` (the machine's
// own time), as soon as the disk is used to `expired_percent`, or when asked to. By pressure: the
// oldest one whatever its age, when the disk is used to `forced_percent` and fewer than 1.5 times
// `free_floor_bytes` are free. What a peer that catches up still needs goes only at `held_percent`
// and 1.25 times: else a state that takes longer to send than a segment to fill would never do.
// Both lie in front of the place where sends are refused (the floor itself).
//
// Ages are in log time, which a jump of the clocks may falsify: time that passed by the monotonic
// clock bounds what is believed, and in one hour no more than half of the segments go by age.
// Pure: the caller brings every clock. Owner: the background thread.
// Source: architecture.md §3; testing.md §5.3, "clock jump".

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/file_system.h"

namespace triad::dledger {

struct RetentionOptions {
  std::chrono::milliseconds age{0};           // 0: keeps everything, but for pressure
  std::vector<int> hours;                     // 0..23
  int expired_percent = 75;                   // of the disk's use
  int forced_percent = 0;                     // 0: never
  int held_percent = 87;                      // see above
  std::uint64_t free_floor_bytes = 0;         // with so many free there is no pressure
  std::chrono::milliseconds interval{10000};  // between two looks
};

// The moment of one look.
struct RetentionMoment {
  TimePoint now;
  std::int64_t log_time_ms = 0;
  int hour = 0;  // of the day, 0..23
  Space space;
  std::size_t segments = 0;  // that hold entries
  bool is_asked = false;     // somebody wants what is old to go now, whatever the hour
};

class Retention {
 public:
  enum class Verdict { kKeep, kExpired, kForced };

  explicit Retention(RetentionOptions options) : options_(std::move(options)) {}

  const RetentionOptions& options() const { return options_; }
  void set_options(RetentionOptions options) { options_ = std::move(options); }
  // A new look: at most one segment goes by pressure in each.
  void Begin(const RetentionMoment& moment);
  // The oldest segment, whose newest entry is of `newest_ms` (log time); `is_wanted`: by a peer
  // that catches up. Anything but kKeep: it goes, and the caller asks about the next one.
  Verdict Judge(std::int64_t newest_ms, bool is_wanted);
  // Log time as far as it is believed; as of the last Begin.
  std::int64_t believed_ms() const { return believed_ms_; }

 private:
  bool MayExpireNow() const;
  bool IsFull(int percent, double floors) const;
  double used_percent() const;

  RetentionOptions options_;
  RetentionMoment moment_;
  bool has_begun_ = false;
  std::int64_t believed_ms_ = 0;
  TimePoint believed_at_;
  TimePoint hour_began_at_;
  std::size_t left_in_hour_ = 0;  // segments that may still go by age
  bool forced_one_ = false;
};

}  // namespace triad::dledger
