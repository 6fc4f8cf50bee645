#include "broker/service/pulled_offsets.h"

namespace triad::broker {

void PulledOffsets::Note(std::string_view group, const TopicQueue& queue, QueueOffset next,
                         Term term) {
  const std::lock_guard hold(mutex_);
  auto of_group = groups_.find(group);
  if (of_group != groups_.end()) {
    const auto known = of_group->second.find(queue);
    if (known != of_group->second.end()) {
      known->second = {next, term};
      return;
    }
  }
  if (queues_ >= kQueuesMax) {
    DropOtherTerms(term);
    if (queues_ >= kQueuesMax) return;
    of_group = groups_.find(group);
  }
  if (of_group == groups_.end()) of_group = groups_.emplace(group, Queues()).first;
  of_group->second.emplace(queue, Pulled{next, term});
  ++queues_;
}

std::optional<QueueOffset> PulledOffsets::Find(std::string_view group, const TopicQueue& queue,
                                               Term term) const {
  const std::lock_guard hold(mutex_);
  const auto of_group = groups_.find(group);
  if (of_group == groups_.end()) return std::nullopt;
  const auto found = of_group->second.find(queue);
  if (found == of_group->second.end() || found->second.term != term) return std::nullopt;
  return found->second.next;
}

void PulledOffsets::ForgetGroup(std::string_view group) {
  const std::lock_guard hold(mutex_);
  const auto found = groups_.find(group);
  if (found == groups_.end()) return;
  queues_ -= found->second.size();
  groups_.erase(found);
}

void PulledOffsets::ForgetTopic(const Topic& topic) {
  const std::lock_guard hold(mutex_);
  for (auto& [group, queues] : groups_) {
    queues_ -= std::erase_if(queues, [&](const auto& one) { return one.first.topic == topic; });
  }
}

void PulledOffsets::Forget(std::string_view group, const TopicQueue& queue) {
  const std::lock_guard hold(mutex_);
  const auto found = groups_.find(group);
  if (found != groups_.end()) queues_ -= found->second.erase(queue);
}

void PulledOffsets::DropOtherTerms(Term term) {
  for (auto at = groups_.begin(); at != groups_.end();) {
    Queues& queues = at->second;
    queues_ -= std::erase_if(queues, [&](const auto& one) { return one.second.term != term; });
    at = queues.empty() ? groups_.erase(at) : std::next(at);
  }
}

}  // namespace triad::broker
