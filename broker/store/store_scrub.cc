#include "broker/store/store_scrub.h"

#include <algorithm>

namespace triad::broker {

void StoreScrub::Tick() {
  if (is_done_.load(std::memory_order_acquire)) return;
  if (is_running_.exchange(true, std::memory_order_acquire)) return;
  if (!node_.PostReader([this] { Run(); })) is_running_.store(false, std::memory_order_release);
}

void StoreScrub::Run() {
  if (!Step()) is_done_.store(true, std::memory_order_release);
  is_running_.store(false, std::memory_order_release);
}

bool StoreScrub::Step() {
  if (left_.empty()) return keys_.CheckNth(run_++).code() != StatusCode::kNotFound;
  const std::optional<QueueRange> range = queues_.Range(left_.back());
  if (range && range->min < range->max) {
    next_ = std::max(next_, range->min);
    const auto units = queues_.Read(left_.back(), next_, kScrubUnits);
    // Damaged: the store knows now, and the rest of the queue is looked at all the same.
    const std::size_t passed = units.ok() ? std::max<std::size_t>(units->size(), 1) : 1;
    next_ += static_cast<std::int64_t>(passed);
    if (next_ < range->max) return true;
  }
  left_.pop_back();
  next_ = QueueOffset{0};
  return true;
}

}  // namespace triad::broker
