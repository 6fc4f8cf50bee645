// OffsetService: consumer offsets on the leader: commits coalesced into the log, queries confirmed.
//
// Commits wait at most `interval` and go out together as one command; of several for one queue the
// last in arrival order wins, also when it is smaller. A query first flushes its group's pending
// commits, then confirms leadership (ReadIndex) and reads the applied state, so it never answers
// less than what was acknowledged. Bounds: max_pending commits (kBusy beyond). Thread: safe on
// every thread; `done` runs on the apply, log or caller's thread and must not block. Source:
// architecture.md §4, wire.md §6.

#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "broker/service/leader_reads.h"
#include "broker/service/timer_queue.h"
#include "broker/state/replicated_state.h"
#include "broker/store/appender.h"
#include "common/clock.h"

namespace triad::broker {

class OffsetService {
 public:
  struct Options {
    std::chrono::milliseconds interval{100};
    std::size_t max_pending = 200000;
  };
  // All references outlive the service.
  OffsetService(Options options, const Clock& clock, TimerQueue& timers, Appender& appender,
                const ReplicatedState& state, LeaderReads& reads);
  ~OffsetService();

  // `done` once committed and applied: OK, kPermissionDenied (stale fencing token), kNotFound (the
  // topic was deleted), kNotLeader (nothing happened), kTimedOut (unknown), kBusy. A stale one
  // takes nobody's place, also not while it waits.
  void Commit(OffsetCommit commit, TimePoint deadline, std::function<void(Status)> done);

  // Several at once, in arrival order with all other commits, and not delayed: a reset. `done` once
  // all are committed and applied, with the first error if any.
  void CommitNow(std::vector<OffsetCommit> commits, TimePoint deadline,
                 std::function<void(Status)> done);

  // The stored offset, or nullopt when certainly nothing is stored. Errors: as LeaderReads.
  void Query(const GroupQueue& key, TimePoint deadline,
             std::function<void(Result<std::optional<QueueOffset>>)> done);

  // Puts the group's pending commits into the log now and calls `done` when they are applied (at
  // once when there are none). Locks and resets call it first.
  void Flush(const GroupName& group, TimePoint deadline, std::function<void(Status)> done);

  std::size_t pending() const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace triad::broker
