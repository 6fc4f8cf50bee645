#include "client/scheduler.h"

#include <glog/logging.h>

#include <utility>

namespace triad::client {

Scheduler::Scheduler() : thread_([this] { Run(); }) {}

Scheduler::~Scheduler() {
  Stop();
}

void Scheduler::After(std::chrono::milliseconds delay, std::function<void()> task) {
  std::lock_guard hold(mutex_);
  if (stopped_) return;
  const auto added = tasks_.emplace(SystemClock().MonoNow() + delay, std::move(task));
  if (added == tasks_.begin()) changed_.notify_one();
}

void Scheduler::Stop() {
  {
    std::lock_guard hold(mutex_);
    stopped_ = true;
    changed_.notify_one();
  }
  if (!thread_.joinable()) return;
  CHECK(thread_.get_id() != std::this_thread::get_id()) << "a thread cannot wait for itself";
  thread_.join();
  std::multimap<TimePoint, std::function<void()>> dropped;
  std::lock_guard hold(mutex_);
  dropped.swap(tasks_);
}

void Scheduler::Run() {
  std::unique_lock hold(mutex_);
  while (!stopped_) {
    if (tasks_.empty()) {
      changed_.wait(hold);
      continue;
    }
    const TimePoint due = tasks_.begin()->first;
    if (SystemClock().MonoNow() < due) {
      changed_.wait_until(hold, due);
      continue;
    }
    std::function<void()> task = std::move(tasks_.begin()->second);
    tasks_.erase(tasks_.begin());
    hold.unlock();
    task();
    task = nullptr;  // what it holds may end here, without the mutex
    hold.lock();
  }
}

}  // namespace triad::client
