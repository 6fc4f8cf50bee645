#include "dledger/apply_thread.h"

#include <glog/logging.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "common/broken_ground.h"
#include "dledger/thread_name.h"

namespace triad::dledger {
namespace {

constexpr std::chrono::milliseconds kIdleInterval{100};
constexpr std::chrono::milliseconds kReadBackPause{10};

}  // namespace

ApplyThread::ApplyThread(LogStore& log, Application& application, LogIndex applied,
                         std::function<void()> on_applied)
    : log_(log),
      application_(application),
      on_applied_(std::move(on_applied)),
      applied_(applied.value()),
      committed_(applied) {}

ApplyThread::~ApplyThread() {
  Stop();
}

void ApplyThread::Start() {
  thread_ = std::thread([this] {
    SetThreadName("dledger-apply");
    Run();
  });
}

void ApplyThread::Commit(LogIndex upto, std::vector<EntryRef> entries, LogIndex durable) {
  {
    std::lock_guard hold(mutex_);
    committed_ = std::max(committed_, upto);
    for (EntryRef& entry : entries) {
      if (queue_bytes_ >= kApplyQueueBytesMax && entry->index <= durable) continue;
      queue_bytes_ += entry->size();
      queue_.push_back(std::move(entry));
    }
  }
  wake_.notify_one();
}

void ApplyThread::Stop() {
  {
    std::lock_guard hold(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void ApplyThread::Post(std::function<void()> task) {
  {
    std::lock_guard hold(mutex_);
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
}

void ApplyThread::TakeOver(LogIndex applied) {
  {
    std::lock_guard hold(mutex_);
    committed_ = applied;
    queue_.clear();
    queue_bytes_ = 0;
    applied_.store(applied.value(), std::memory_order_release);
  }
  on_applied_();
}

void ApplyThread::RunTasks() {
  std::deque<std::function<void()>> tasks;
  {
    std::lock_guard hold(mutex_);
    tasks.swap(tasks_);
  }
  for (const std::function<void()>& task : tasks) task();
}

bool ApplyThread::is_stopping() {
  std::lock_guard hold(mutex_);
  return stopping_;
}

void ApplyThread::Run() {
  auto idle_at = std::chrono::steady_clock::now();
  while (!is_stopping()) {
    RunTasks();
    const std::vector<EntryRef> batch = Take();
    if (!batch.empty()) Apply(batch);
    const auto now = std::chrono::steady_clock::now();
    if (batch.empty() || now - idle_at >= kIdleInterval) {
      application_.OnApplyIdle();
      idle_at = now;
    }
  }
}

std::vector<EntryRef> ApplyThread::Take() {
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, kIdleInterval,
                 [this] { return stopping_ || !tasks_.empty() || committed_ > applied(); });
  std::vector<EntryRef> batch;
  if (stopping_ || !tasks_.empty() || committed_ <= applied()) return batch;
  LogIndex next = applied() + 1;
  std::size_t bytes = 0;
  while (!queue_.empty() && bytes < kApplyBatchBytesMax) {
    if (queue_.front()->index > next) break;
    EntryRef entry = std::move(queue_.front());
    queue_.pop_front();
    queue_bytes_ -= entry->size();
    if (entry->index < next) continue;  // the application held it already at the start
    bytes += entry->size();
    ++next;
    batch.push_back(std::move(entry));
  }
  if (!batch.empty()) return batch;
  const LogIndex to = queue_.empty() ? committed_ + 1 : queue_.front()->index;
  lock.unlock();
  return ReadBack(next, to);
}

std::vector<EntryRef> ApplyThread::ReadBack(LogIndex from, LogIndex to) {
  Result<std::vector<EntryRef>> entries = log_.ReadRange(from, to, kApplyBatchBytesMax);
  if (entries.ok()) {
    CHECK(!entries->empty());
    CHECK_EQ(entries->front()->index, from);
    return std::move(entries).value();
  }
  if (entries.status().code() != StatusCode::kNotFound) {
    DieOfBrokenGround(
        "committed entry " + std::to_string(from.value()) +
        " cannot be read: " + entries.status().ToString() +
        ". Check the disk; a peer whose log is damaged is repaired from the others at its next "
        "start, or start it with an empty store directory.");
  }
  // Committed by the others before this peer's own disk has it.
  LOG_EVERY_N(WARNING, 500) << "apply waits for entry " << from << " to reach this peer's log";
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, kReadBackPause, [this] { return stopping_; });
  return {};
}

void ApplyThread::Apply(const std::vector<EntryRef>& batch) {
  application_.Apply(batch);
  applied_.store(batch.back()->index.value(), std::memory_order_release);
  on_applied_();
}

}  // namespace triad::dledger
