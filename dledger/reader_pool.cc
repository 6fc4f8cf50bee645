#include "dledger/reader_pool.h"

#include <utility>

#include "dledger/thread_name.h"

namespace triad::dledger {

void ReaderPool::Start() {
  for (std::size_t i = 0; i < kReaderThreads; ++i) {
    threads_.emplace_back([this] {
      SetThreadName("dledger-read");
      Run();
    });
  }
}

bool ReaderPool::Post(std::function<void()> task) {
  {
    std::lock_guard hold(mutex_);
    if (stopping_ || tasks_.size() >= kReaderTasksMax) return false;
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
  return true;
}

void ReaderPool::Stop() {
  {
    std::lock_guard hold(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void ReaderPool::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
  }
}

}  // namespace triad::dledger
