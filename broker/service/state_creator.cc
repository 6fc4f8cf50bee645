#include "broker/service/state_creator.h"

#include <utility>

namespace triad::broker {

void StateCreator::Create(const std::string& key, StateCommand command, TimePoint deadline,
                          std::function<void(Status)> done, const Question& ask) {
  {
    const std::lock_guard hold(mutex_);
    auto& waiters = waiting_[key];
    waiters.push_back(std::move(done));
    if (waiters.size() > 1) return;  // on its way
  }
  if (!ask) {
    Propose(key, std::move(command), deadline);
    return;
  }
  ask([this, key, command = std::move(command), deadline](const Status& allowed) {
    if (allowed.ok()) {
      Propose(key, command, deadline);
    } else {
      Finish(key, allowed);
    }
  });
}

void StateCreator::Propose(const std::string& key, StateCommand command, TimePoint deadline) {
  Proposal proposal;
  proposal.command = std::move(command);
  proposal.deadline = deadline;
  proposal.done = [this, key](const AppendOutcome& outcome) { Finish(key, outcome.status); };
  appender_.Submit(std::move(proposal));
}

void StateCreator::Finish(const std::string& key, const Status& status) {
  std::vector<std::function<void(Status)>> waiters;
  {
    const std::lock_guard hold(mutex_);
    const auto found = waiting_.find(key);
    waiters = std::move(found->second);
    waiting_.erase(found);
  }
  for (const auto& waiter : waiters) waiter(status);
}

}  // namespace triad::broker
