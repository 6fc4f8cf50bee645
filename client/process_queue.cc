#include "client/process_queue.h"

#include <algorithm>
#include <utility>

namespace triad::client {

void ProcessQueue::Add(Messages messages) {
  std::lock_guard hold(mutex_);
  for (ReceivedMessage& message : messages) {
    const std::int64_t offset = message.queue_offset;
    if (taken_.contains(offset)) continue;
    const std::size_t bytes = message.body.size();
    if (!waiting_.emplace(offset, std::move(message)).second) continue;
    bytes_ += bytes;
    largest_ = std::max(largest_, offset);
  }
}

void ProcessQueue::Track(const Messages& messages) {
  std::lock_guard hold(mutex_);
  for (const ReceivedMessage& message : messages) {
    if (!taken_.emplace(message.queue_offset, message.body.size()).second) continue;
    bytes_ += message.body.size();
    largest_ = std::max(largest_, message.queue_offset);
  }
}

bool ProcessQueue::Full() const {
  std::lock_guard hold(mutex_);
  if (waiting_.size() + taken_.size() >= limits_.max_messages || bytes_ >= limits_.max_bytes) {
    return true;
  }
  return limits_.max_span > 0 && !taken_.empty() &&
         taken_.rbegin()->first - taken_.begin()->first > limits_.max_span;
}

std::size_t ProcessQueue::cached_messages() const {
  std::lock_guard hold(mutex_);
  return waiting_.size() + taken_.size();
}

void ProcessQueue::Drop() {
  std::lock_guard hold(mutex_);
  dropped_ = true;
}

bool ProcessQueue::dropped() const {
  std::lock_guard hold(mutex_);
  return dropped_;
}

void ProcessQueue::NotePull(TimePoint now) {
  std::lock_guard hold(mutex_);
  last_pull_ = now;
}

TimePoint ProcessQueue::last_pull() const {
  std::lock_guard hold(mutex_);
  return last_pull_;
}

std::optional<std::int64_t> ProcessQueue::Finish(const std::vector<std::int64_t>& offsets) {
  std::lock_guard hold(mutex_);
  if (taken_.empty()) return std::nullopt;
  for (const std::int64_t offset : offsets) {
    const auto found = taken_.find(offset);
    if (found == taken_.end()) continue;
    bytes_ -= found->second;
    taken_.erase(found);
  }
  return taken_.empty() ? largest_ + 1 : taken_.begin()->first;
}

Messages ProcessQueue::Take(std::size_t count) {
  std::lock_guard hold(mutex_);
  Messages batch;
  while (batch.size() < count && !waiting_.empty()) {
    const auto front = waiting_.begin();
    taken_[front->first] = front->second.body.size();
    batch.push_back(std::move(front->second));
    waiting_.erase(front);
  }
  if (batch.empty()) {
    claimed_ = false;
    idle_.notify_all();
  }
  return batch;
}

std::optional<std::int64_t> ProcessQueue::Commit() {
  std::lock_guard hold(mutex_);
  if (taken_.empty()) return std::nullopt;
  std::int64_t next = taken_.rbegin()->first + 1;
  if (!waiting_.empty()) next = std::min(next, waiting_.begin()->first);  // some were put back
  for (const auto& [offset, bytes] : taken_) bytes_ -= bytes;
  taken_.clear();
  return next;
}

void ProcessQueue::PutBack(Messages batch) {
  std::lock_guard hold(mutex_);
  for (ReceivedMessage& message : batch) {
    const auto taken = taken_.find(message.queue_offset);
    if (taken == taken_.end()) continue;
    // The listener had it in hand; count what it is now.
    bytes_ -= taken->second;
    bytes_ += message.body.size();
    taken_.erase(taken);
    waiting_[message.queue_offset] = std::move(message);
  }
}

bool ProcessQueue::Claim(TimePoint now) {
  std::lock_guard hold(mutex_);
  if (claimed_ || dropped_ || now < not_before_) return false;
  claimed_ = true;
  return true;
}

void ProcessQueue::Release() {
  std::lock_guard hold(mutex_);
  claimed_ = false;
  idle_.notify_all();
}

void ProcessQueue::Pause(TimePoint until) {
  std::lock_guard hold(mutex_);
  claimed_ = false;
  not_before_ = until;
  idle_.notify_all();
}

bool ProcessQueue::WaitIdle(std::chrono::milliseconds limit) {
  std::unique_lock hold(mutex_);
  return idle_.wait_for(hold, limit, [this] { return !claimed_; });
}

void ProcessQueue::SetLocked(std::uint64_t fence_token, TimePoint now) {
  std::lock_guard hold(mutex_);
  locked_ = true;
  fence_token_ = fence_token;
  locked_at_ = now;
}

void ProcessQueue::SetAlwaysLocked() {
  std::lock_guard hold(mutex_);
  always_locked_ = true;
}

void ProcessQueue::SetUnlocked() {
  std::lock_guard hold(mutex_);
  locked_ = false;
}

bool ProcessQueue::HasLock(TimePoint now) const {
  std::lock_guard hold(mutex_);
  return always_locked_ || (locked_ && now - locked_at_ < kLockValid);
}

std::uint64_t ProcessQueue::fence_token() const {
  std::lock_guard hold(mutex_);
  return fence_token_;
}

}  // namespace triad::client
