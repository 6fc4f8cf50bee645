// ReadQueue: callers of ReadIndex, from their question to the applied index that answers it.
//
// Pure; the caller passes `now`. Owner: the log thread. All that wait when a round starts share it:
// a round is taken after they arrived. Bounds: kReadsMax callers (beyond: kBusy), kRoundsMax rounds
// in the core at a time (beyond: they wait for the next).

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "common/clock.h"
#include "common/ids.h"
#include "common/status.h"

namespace triad::dledger {

inline constexpr std::size_t kReadsMax = 100000;
inline constexpr std::size_t kRoundsMax = 8;

struct PendingRead {
  TimePoint deadline;
  std::function<void(Status)> done;
};

class ReadQueue {
 public:
  void Add(PendingRead read);
  bool waits_for_apply() const { return !confirmed_.empty(); }
  bool wants_round() const { return !fresh_.empty() && rounds_.size() < kRoundsMax; }
  // All that wait go into one round; returns its context.
  std::uint64_t StartRound();
  // The round is confirmed: its callers are served once `index` is applied.
  void OnReady(std::uint64_t context, LogIndex index);
  void OnFailed(std::uint64_t context, const Status& why);
  void OnApplied(LogIndex applied);
  // Answers kTimedOut to what is past its deadline. Cheap when nothing waits.
  void Expire(TimePoint now);
  void FailFresh(const Status& why);  // those in no round yet
  void FailAll(const Status& why);

 private:
  using Reads = std::vector<PendingRead>;
  std::size_t size_ = 0;
  Reads fresh_;
  std::map<std::uint64_t, Reads> rounds_;  // by context
  std::map<LogIndex, Reads> confirmed_;    // by the index they wait for
  std::uint64_t last_context_ = 0;

  void Answer(Reads reads, const Status& status);
  void ExpireIn(Reads* reads, TimePoint now, Reads* expired);
};

}  // namespace triad::dledger
