#include "broker/service/state_creator.h"

#include <utility>

namespace triad::broker {

void StateCreator::Create(const std::string& key, StateCommand command, TimePoint deadline,
                          std::function<void(Status)> done) {
  {
    const std::lock_guard hold(mutex_);
    auto& waiters = waiting_[key];
    waiters.push_back(std::move(done));
    if (waiters.size() > 1) return;  // on its way
  }
  Proposal proposal;
  proposal.command = std::move(command);
  proposal.deadline = deadline;
  proposal.done = [this, key](const AppendOutcome& outcome) {
    std::vector<std::function<void(Status)>> waiters;
    {
      const std::lock_guard hold(mutex_);
      const auto found = waiting_.find(key);
      waiters = std::move(found->second);
      waiting_.erase(found);
    }
    for (const auto& waiter : waiters) waiter(outcome.status);
  };
  appender_.Submit(std::move(proposal));
}

}  // namespace triad::broker
