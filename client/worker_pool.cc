#include "client/worker_pool.h"

#include <glog/logging.h>
#include <pthread.h>

#include <utility>

namespace triad::client {

WorkerPool::WorkerPool(std::size_t threads, const std::string& name) {
  CHECK_GT(threads, 0u);
  for (std::size_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this] { Run(); });
    pthread_setname_np(threads_.back().native_handle(), name.substr(0, 15).c_str());
  }
}

WorkerPool::~WorkerPool() {
  Stop();
}

void WorkerPool::Submit(std::function<void()> task) {
  std::lock_guard hold(mutex_);
  if (stopped_) return;
  tasks_.push_back(std::move(task));
  changed_.notify_one();
}

void WorkerPool::Stop() {
  {
    std::lock_guard hold(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) {
    CHECK(thread.get_id() != std::this_thread::get_id()) << "a thread cannot wait for itself";
    if (thread.joinable()) thread.join();
  }
  std::deque<std::function<void()>> dropped;
  std::lock_guard hold(mutex_);
  dropped.swap(tasks_);
}

void WorkerPool::Run() {
  std::unique_lock hold(mutex_);
  while (!stopped_) {
    if (tasks_.empty()) {
      changed_.wait(hold);
      continue;
    }
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    hold.unlock();
    task();
    task = nullptr;
    hold.lock();
  }
}

}  // namespace triad::client
