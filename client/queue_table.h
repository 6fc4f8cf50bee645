// QueueTable: the queues that a consumer holds now.
//
// Thread: safe on every thread (leaf mutex). Only the rebalancer adds and removes.

#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "client/process_queue.h"

namespace triad::client {

class QueueTable {
 public:
  void Add(const ProcessQueuePtr& queue) {
    std::lock_guard hold(mutex_);
    queues_[queue->queue()] = queue;
  }
  void Remove(const MessageQueue& queue) {
    std::lock_guard hold(mutex_);
    queues_.erase(queue);
  }
  ProcessQueuePtr Find(const MessageQueue& queue) const {
    std::lock_guard hold(mutex_);
    const auto found = queues_.find(queue);
    return found == queues_.end() ? nullptr : found->second;
  }
  std::vector<ProcessQueuePtr> All() const {
    std::lock_guard hold(mutex_);
    std::vector<ProcessQueuePtr> all;
    for (const auto& [name, queue] : queues_) all.push_back(queue);
    return all;
  }

 private:
  mutable std::mutex mutex_;
  std::map<MessageQueue, ProcessQueuePtr> queues_;
};

}  // namespace triad::client
