// LockService: queue locks of orderly consumers, on the leader.
//
// The log records outcomes only: grant(queue, client, token) and release. Renewals are leader-local
// and confirmed by ReadIndex; a lease ends 60 s after its last renewal by the leader's monotonic
// clock; a new leader counts every lease of the state as fresh. What the state does not hold (any
// more) is not renewed, but granted anew. A tentative grant keeps others away
// while its entry is on its way. Leases that have ended are released and leave the table. Bounds:
// max_leases. Thread: safe on every thread; a leaf mutex;
// `done` runs on the apply, log or caller's thread. Source: architecture.md §4, wire.md §7.6.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "broker/service/leader_reads.h"
#include "broker/service/offset_service.h"
#include "broker/state/replicated_state.h"
#include "broker/store/appender.h"
#include "common/clock.h"

namespace triad::broker {

inline constexpr std::chrono::seconds kLockLease{60};

class LockService {
 public:
  LockService(const Clock& clock, Appender& appender, const ReplicatedState& state,
              LeaderReads& reads, OffsetService& offsets, std::size_t max_leases = 1000000);
  ~LockService();

  struct Held {
    TopicQueue queue;
    std::uint64_t token = 0;
  };
  // This peer serves term `term` as leader from now on; 0: it does not lead any more.
  void OnLeaderTerm(Term term);

  // `done` gets exactly the queues among `queues` that `client` now holds. Errors: kNotLeader,
  // kTimedOut, kBusy.
  void Lock(const GroupName& group, const ClientId& client, std::vector<TopicQueue> queues,
            TimePoint deadline, std::function<void(Result<std::vector<Held>>)> done);
  // Releases what `client` holds of `queues`; others' locks stay. `done` after the commit.
  void Unlock(const GroupName& group, const ClientId& client, std::vector<TopicQueue> queues,
              TimePoint deadline, std::function<void(Status)> done);

  // Releases, through the log, what nobody has renewed for a lease: a holder that is gone for good
  // must not count as one again at the next leader. Call it every few seconds.
  void ReleaseExpired(TimePoint deadline);
  std::size_t leases() const;

  // The group holds a live lease of some queue (it is an orderly group: wire.md §8.3).
  bool GroupHoldsLease(const GroupName& group) const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace triad::broker
