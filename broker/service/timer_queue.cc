#include "broker/service/timer_queue.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

namespace triad::broker {

struct TimerQueue::Shared {
  using Key = std::pair<TimePoint, Id>;

  Shared(const Clock& c, std::size_t max) : clock(c), max_timers(max) {}

  const Clock& clock;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<Key, std::function<void()>> tasks;
  std::unordered_map<Id, TimePoint> due;
  const std::size_t max_timers;
  Id next_id = 1;
  bool stopped = false;
  std::thread thread;

  void Run() {
    std::unique_lock lock(mutex);
    while (!stopped) {
      if (tasks.empty()) {
        changed.wait(lock);
        continue;
      }
      const TimePoint next = tasks.begin()->first.first;
      if (clock.MonoNow() < next) {
        changed.wait_until(lock, next);
        continue;
      }
      RunFirst(&lock);
    }
  }

  void RunFirst(std::unique_lock<std::mutex>* lock) {
    auto node = tasks.extract(tasks.begin());
    due.erase(node.key().second);
    lock->unlock();
    node.mapped()();
    node.mapped() = nullptr;  // what it holds is released outside the lock
    lock->lock();
  }
};

TimerQueue::TimerQueue(std::size_t max_timers)
    : shared_(std::make_unique<Shared>(SystemClock(), max_timers)) {
  shared_->thread = std::thread([shared = shared_.get()] { shared->Run(); });
}

TimerQueue::TimerQueue(const Clock& clock, std::size_t max_timers)
    : shared_(std::make_unique<Shared>(clock, max_timers)) {}

std::optional<TimePoint> TimerQueue::NextDue() const {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->tasks.empty()) return std::nullopt;
  return shared_->tasks.begin()->first.first;
}

bool TimerQueue::RunOne() {
  std::unique_lock lock(shared_->mutex);
  if (shared_->tasks.empty()) return false;
  if (shared_->clock.MonoNow() < shared_->tasks.begin()->first.first) return false;
  shared_->RunFirst(&lock);
  return true;
}

TimerQueue::~TimerQueue() {
  Stop();
}

TimerQueue::Id TimerQueue::Schedule(std::chrono::milliseconds delay, std::function<void()> task) {
  const TimePoint at = shared_->clock.MonoNow() + std::max(delay, std::chrono::milliseconds(0));
  const std::lock_guard lock(shared_->mutex);
  if (shared_->stopped || shared_->tasks.size() >= shared_->max_timers) return 0;
  const Id id = shared_->next_id++;
  const auto placed = shared_->tasks.emplace(Shared::Key(at, id), std::move(task)).first;
  shared_->due.emplace(id, at);
  if (placed == shared_->tasks.begin()) shared_->changed.notify_one();
  return id;
}

bool TimerQueue::Cancel(Id id) {
  std::function<void()> dropped;  // destroyed outside the lock
  const std::lock_guard lock(shared_->mutex);
  const auto found = shared_->due.find(id);
  if (found == shared_->due.end()) return false;
  const auto task = shared_->tasks.find({found->second, id});
  dropped = std::move(task->second);
  shared_->tasks.erase(task);
  shared_->due.erase(found);
  return true;
}

void TimerQueue::Stop() {
  std::map<Shared::Key, std::function<void()>> dropped;
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stopped = true;
    dropped.swap(shared_->tasks);
    shared_->due.clear();
    shared_->changed.notify_one();
  }
  if (shared_->thread.joinable()) shared_->thread.join();
}

}  // namespace triad::broker
