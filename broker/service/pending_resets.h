// PendingResets: queues whose offset was reset and whose consumer has not come back yet: until its
// next pull its commits are old ones and are ignored (admin.md §6.2).
//
// Kept by the leader that made the reset, in memory: the offset itself is in the log; after a
// change of leader a late commit of an old offset counts again. A mark is over after kMarkAge: a
// consumer that did not pull for so long has no old commit on its way any more. Bounds: kPendingMax
// queues. Thread: safe on every thread; a leaf mutex, not taken while nothing is pending.

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "broker/state/replicated_state.h"
#include "common/clock.h"
#include "common/ids.h"
#include "common/status.h"

namespace triad::broker {

class PendingResets {
 public:
  static constexpr std::size_t kPendingMax = 100000;
  static constexpr std::chrono::minutes kMarkAge{10};

  // Marks all of `commits`, or none. The result names the marks. Errors: kBusy when full.
  Result<std::uint64_t> Mark(const std::vector<OffsetCommit>& commits, TimePoint now);
  // The reset was certainly not made. A later reset's marks stay.
  void Unmark(const std::vector<OffsetCommit>& commits, std::uint64_t id);
  bool Pending(const GroupName& group, const TopicQueue& queue, TimePoint now) const;
  // The consumer pulls: where it shall go on; from here on its commits count again.
  std::optional<QueueOffset> Take(const GroupName& group, const TopicQueue& queue, TimePoint now);
  void Clear();

 private:
  struct Marked {
    QueueOffset offset;
    std::uint64_t id = 0;  // of the reset
    TimePoint until;
  };

  mutable std::mutex mutex_;
  std::map<GroupQueue, Marked> pending_;
  std::uint64_t last_id_ = 0;
  std::atomic<std::size_t> count_{0};
};

}  // namespace triad::broker
