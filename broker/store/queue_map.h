// QueueMap: a hash map by (topic, queue) that is searched without making a string.
//
// Pure. Iteration order is unspecified: sort what leaves the process.

#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <unordered_map>

#include "common/ids.h"

namespace triad::broker {

// A TopicQueue by reference.
struct QueueRef {
  std::string_view topic;
  QueueId queue_id;
};

struct QueueHash {
  using is_transparent = void;
  std::size_t operator()(const QueueRef& queue) const noexcept {
    return std::hash<std::string_view>()(queue.topic) * 1000003u +
           static_cast<std::size_t>(queue.queue_id.value());
  }
  std::size_t operator()(const TopicQueue& queue) const noexcept {
    return (*this)(QueueRef{queue.topic.value(), queue.queue_id});
  }
};

struct QueueEqual {
  using is_transparent = void;
  static QueueRef Ref(const TopicQueue& queue) { return {queue.topic.value(), queue.queue_id}; }
  static QueueRef Ref(const QueueRef& queue) { return queue; }
  template <typename A, typename B>
  bool operator()(const A& a, const B& b) const noexcept {
    return Ref(a).queue_id == Ref(b).queue_id && Ref(a).topic == Ref(b).topic;
  }
};

template <typename Value>
using QueueMap = std::unordered_map<TopicQueue, Value, QueueHash, QueueEqual>;

}  // namespace triad::broker
