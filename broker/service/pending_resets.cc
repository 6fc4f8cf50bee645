#include "broker/service/pending_resets.h"

#include <string>

namespace triad::broker {

Result<std::uint64_t> PendingResets::Mark(const std::vector<OffsetCommit>& commits, TimePoint now) {
  const std::lock_guard hold(mutex_);
  std::erase_if(pending_, [now](const auto& one) { return one.second.until <= now; });
  if (pending_.size() + commits.size() > kPendingMax) {
    return Status::Busy("more than " + std::to_string(kPendingMax) +
                        " queues wait for their consumers after a reset");
  }
  const std::uint64_t id = ++last_id_;
  for (const OffsetCommit& commit : commits) {
    pending_[commit.key] = {commit.offset, id, now + kMarkAge};
  }
  count_ = pending_.size();
  return id;
}

void PendingResets::Unmark(const std::vector<OffsetCommit>& commits, std::uint64_t id) {
  const std::lock_guard hold(mutex_);
  for (const OffsetCommit& commit : commits) {
    const auto found = pending_.find(commit.key);
    if (found != pending_.end() && found->second.id == id) pending_.erase(found);
  }
  count_ = pending_.size();
}

bool PendingResets::Pending(const GroupName& group, const TopicQueue& queue, TimePoint now) const {
  if (count_.load() == 0) return false;
  const std::lock_guard hold(mutex_);
  const auto found = pending_.find(GroupQueue{group, queue});
  return found != pending_.end() && now < found->second.until;
}

std::optional<QueueOffset> PendingResets::Take(const GroupName& group, const TopicQueue& queue,
                                               TimePoint now) {
  if (count_.load() == 0) return std::nullopt;
  const std::lock_guard hold(mutex_);
  const auto found = pending_.find(GroupQueue{group, queue});
  if (found == pending_.end()) return std::nullopt;
  const Marked marked = found->second;
  pending_.erase(found);
  count_ = pending_.size();
  if (marked.until <= now) return std::nullopt;
  return marked.offset;
}

void PendingResets::Clear() {
  const std::lock_guard hold(mutex_);
  pending_.clear();
  count_ = 0;
}

}  // namespace triad::broker
