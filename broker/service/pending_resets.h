// PendingResets: queues whose offset was reset and whose consumer has not come back yet: until its
// next pull its commits are old ones and are ignored (admin.md §6.2).
//
// Kept by the leader that made the reset, in memory: the offset itself is in the log; after a
// change of leader a late commit of an old offset counts again. Bounds: kPendingMax queues. Thread:
// safe on every thread; a leaf mutex, not taken while nothing is pending.

#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "broker/state/replicated_state.h"
#include "common/ids.h"
#include "common/status.h"

namespace triad::broker {

class PendingResets {
 public:
  static constexpr std::size_t kPendingMax = 100000;

  // Marks all of `commits`, or none. Errors: kBusy when full.
  Status Mark(const std::vector<OffsetCommit>& commits);
  // The reset was not made after all.
  void Unmark(const std::vector<OffsetCommit>& commits);
  bool Pending(const GroupName& group, const TopicQueue& queue) const;
  // The consumer pulls: where it shall go on; from here on its commits count again.
  std::optional<QueueOffset> Take(const GroupName& group, const TopicQueue& queue);
  void Clear();

 private:
  mutable std::mutex mutex_;
  std::map<GroupQueue, QueueOffset> pending_;
  std::atomic<std::size_t> count_{0};
};

}  // namespace triad::broker
