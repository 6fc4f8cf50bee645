#include "nameserver/background_thread.h"

#include <utility>

namespace triad::nameserver {

BackgroundThread::BackgroundThread(std::size_t capacity, std::chrono::milliseconds first_pause,
                                   std::function<std::chrono::milliseconds()> periodic)
    : capacity_(capacity),
      periodic_(std::move(periodic)),
      thread_([this, first_pause] { Run(first_pause); }) {}

BackgroundThread::~BackgroundThread() {
  Stop();
}

bool BackgroundThread::Post(std::function<void()> task) {
  {
    const std::lock_guard hold(mutex_);
    if (stopping_ || tasks_.size() >= capacity_) return false;
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
  return true;
}

void BackgroundThread::Stop() {
  {
    const std::lock_guard hold(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void BackgroundThread::Run(std::chrono::milliseconds first_pause) {
  auto next_run = std::chrono::steady_clock::now() + first_pause;
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait_until(lock, next_run, [this] { return stopping_ || !tasks_.empty(); });
    if (stopping_ && tasks_.empty()) return;
    std::function<void()> task;
    if (!tasks_.empty()) {
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    lock.unlock();
    if (task) task();
    if (std::chrono::steady_clock::now() >= next_run) {
      next_run = std::chrono::steady_clock::now() + periodic_();
    }
    lock.lock();
  }
}

}  // namespace triad::nameserver
