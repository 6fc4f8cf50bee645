// UnwrittenEntries: applied entries that this peer's own log file does not hold yet.
//
// An entry is committed when the other peers' disks have it, which may be earlier than one's own.
// Until then its messages are found here. Filled and emptied by the apply thread; read by any
// thread (a leaf mutex). Bounds: what a peer may have un-synced (dledger/log_driver.h).

#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <deque>
#include <mutex>
#include <utility>

#include "common/ids.h"
#include "dledger/raft/entry.h"

namespace triad::broker {

class UnwrittenEntries {
 public:
  // Ascending. Before anybody can hear of the entry's messages.
  void Add(dledger::EntryRef entry) {
    const std::lock_guard hold(mutex_);
    entries_.push_back(std::move(entry));
    size_.store(entries_.size(), std::memory_order_release);
  }

  // The file holds everything in front of `end`.
  void DropWritten(PhysicalOffset end) {
    if (size_.load(std::memory_order_relaxed) == 0) return;
    const std::lock_guard hold(mutex_);
    while (!entries_.empty() && entries_.front()->end() <= end) entries_.pop_front();
    size_.store(entries_.size(), std::memory_order_release);
  }

  // The entry whose bytes cover `inside`; null: the file has it, or nobody.
  dledger::EntryRef FindAt(PhysicalOffset inside) const {
    if (size_.load(std::memory_order_acquire) == 0) return nullptr;
    const std::lock_guard hold(mutex_);
    const auto behind = std::upper_bound(
        entries_.begin(), entries_.end(), inside,
        [](PhysicalOffset at, const dledger::EntryRef& entry) { return at < entry->position; });
    if (behind == entries_.begin() || inside >= (*std::prev(behind))->end()) return nullptr;
    return *std::prev(behind);
  }

 private:
  mutable std::mutex mutex_;
  std::deque<dledger::EntryRef> entries_;
  std::atomic<std::size_t> size_{0};
};

}  // namespace triad::broker
