#include "broker/service/long_polling.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace triad::broker {

struct LongPolling::Shared {
  using Id = std::uint64_t;
  struct Waiter {
    TopicQueue queue;
    QueueOffset from;
    std::uint64_t connection_id = 0;
    TimerQueue::Id timer = 0;
    Wake wake;
  };

  Shared(TimerQueue& the_timers, std::size_t max) : timers(the_timers), max_waiters(max) {}

  // Takes it out; an empty `wake` when it is gone already. Caller holds the mutex.
  Waiter TakeLocked(Id id) {
    const auto found = waiters.find(id);
    if (found == waiters.end()) return {};
    Waiter waiter = std::move(found->second);
    waiters.erase(found);
    const auto in_queue = by_queue.find(waiter.queue);
    std::erase(in_queue->second, id);
    if (in_queue->second.empty()) by_queue.erase(in_queue);
    const auto in_connection = by_connection.find(waiter.connection_id);
    in_connection->second.erase(id);
    if (in_connection->second.empty()) by_connection.erase(in_connection);
    return waiter;
  }

  void WakeOut(std::vector<Waiter> out, Reason reason) {
    for (Waiter& waiter : out) {
      if (waiter.timer != 0) timers.Cancel(waiter.timer);
      waiter.wake(reason);
    }
  }

  void OnDeadline(Id id) {
    Waiter waiter;
    {
      const std::lock_guard hold(mutex);
      waiter = TakeLocked(id);
    }
    if (waiter.wake != nullptr) waiter.wake(Reason::kDeadline);
  }

  TimerQueue& timers;
  const std::size_t max_waiters;
  mutable std::mutex mutex;
  Id next_id = 1;
  std::unordered_map<Id, Waiter> waiters;
  std::unordered_map<TopicQueue, std::vector<Id>> by_queue;
  std::unordered_map<std::uint64_t, std::set<Id>> by_connection;
};

LongPolling::LongPolling(TimerQueue& timers, std::size_t max_waiters)
    : shared_(std::make_shared<Shared>(timers, max_waiters)) {}

LongPolling::~LongPolling() = default;

bool LongPolling::Park(const TopicQueue& queue, QueueOffset from, std::chrono::milliseconds hold,
                       std::uint64_t connection_id, Wake wake) {
  Shared::Id id = 0;
  {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->waiters.size() >= shared_->max_waiters) return false;
    id = shared_->next_id++;
    shared_->waiters.emplace(id, Shared::Waiter{.queue = queue,
                                                .from = from,
                                                .connection_id = connection_id,
                                                .timer = 0,
                                                .wake = std::move(wake)});
    shared_->by_queue[queue].push_back(id);
    shared_->by_connection[connection_id].insert(id);
  }
  const TimerQueue::Id timer =
      shared_->timers.Schedule(hold, [weak = std::weak_ptr<Shared>(shared_), id] {
        if (const auto shared = weak.lock()) shared->OnDeadline(id);
      });
  {
    const std::lock_guard lock(shared_->mutex);
    const auto found = shared_->waiters.find(id);
    if (found != shared_->waiters.end()) {
      found->second.timer = timer;
      if (timer != 0) return true;
      shared_->TakeLocked(id);
      return false;
    }
  }
  if (timer != 0) shared_->timers.Cancel(timer);  // woken meanwhile
  return true;
}

void LongPolling::OnArrival(const TopicQueue& queue, QueueOffset max) {
  std::vector<Shared::Waiter> out;
  {
    const std::lock_guard lock(shared_->mutex);
    const auto found = shared_->by_queue.find(queue);
    if (found == shared_->by_queue.end()) return;
    const std::vector<Shared::Id> ids = found->second;  // TakeLocked changes it
    for (const Shared::Id id : ids) {
      if (shared_->waiters.at(id).from < max) out.push_back(shared_->TakeLocked(id));
    }
  }
  shared_->WakeOut(std::move(out), Reason::kArrival);
}

void LongPolling::OnConnectionClosed(std::uint64_t connection_id) {
  std::vector<Shared::Waiter> out;
  {
    const std::lock_guard lock(shared_->mutex);
    const auto found = shared_->by_connection.find(connection_id);
    if (found == shared_->by_connection.end()) return;
    const std::set<Shared::Id> ids = found->second;
    for (const Shared::Id id : ids) out.push_back(shared_->TakeLocked(id));
  }
  for (const Shared::Waiter& waiter : out) {
    if (waiter.timer != 0) shared_->timers.Cancel(waiter.timer);
  }
}

void LongPolling::WakeAll() {
  std::vector<Shared::Waiter> out;
  {
    const std::lock_guard lock(shared_->mutex);
    out.reserve(shared_->waiters.size());
    for (auto& [id, waiter] : shared_->waiters) out.push_back(std::move(waiter));
    shared_->waiters.clear();
    shared_->by_queue.clear();
    shared_->by_connection.clear();
  }
  shared_->WakeOut(std::move(out), Reason::kRoleChange);
}

std::size_t LongPolling::size() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->waiters.size();
}

}  // namespace triad::broker
