#include "broker/service/pending_resets.h"

#include <string>

namespace triad::broker {

Status PendingResets::Mark(const std::vector<OffsetCommit>& commits) {
  const std::lock_guard hold(mutex_);
  if (pending_.size() + commits.size() > kPendingMax) {
    return Status::Busy("more than " + std::to_string(kPendingMax) +
                        " queues wait for their consumers after a reset");
  }
  for (const OffsetCommit& commit : commits) pending_[commit.key] = commit.offset;
  count_ = pending_.size();
  return Status::Ok();
}

void PendingResets::Unmark(const std::vector<OffsetCommit>& commits) {
  const std::lock_guard hold(mutex_);
  for (const OffsetCommit& commit : commits) pending_.erase(commit.key);
  count_ = pending_.size();
}

bool PendingResets::Pending(const GroupName& group, const TopicQueue& queue) const {
  if (count_.load() == 0) return false;
  const std::lock_guard hold(mutex_);
  return pending_.contains(GroupQueue{group, queue});
}

std::optional<QueueOffset> PendingResets::Take(const GroupName& group, const TopicQueue& queue) {
  if (count_.load() == 0) return std::nullopt;
  const std::lock_guard hold(mutex_);
  const auto found = pending_.find(GroupQueue{group, queue});
  if (found == pending_.end()) return std::nullopt;
  const QueueOffset offset = found->second;
  pending_.erase(found);
  count_ = pending_.size();
  return offset;
}

void PendingResets::Clear() {
  const std::lock_guard hold(mutex_);
  pending_.clear();
  count_ = 0;
}

}  // namespace triad::broker
