#include "broker/service/consumer_lag.h"

#include <algorithm>

#include "broker/service/store_times.h"

namespace triad::broker {
namespace {

class Reader {
 public:
  Reader(MessageStore& store, const ConsumerRegistry& consumers, const Clock& clock,
         const ConsumerLagLimits& limits)
      : store_(store),
        consumers_(consumers),
        clock_(clock),
        limits_(limits),
        ages_end_(clock.MonoNow() + limits.ages_time) {}

  ConsumerLag Read() {
    for (const GroupConfig& group : store_.state().Groups()) ReadGroup(group.name);
    return std::move(lag_);
  }

 private:
  void ReadGroup(const GroupName& group) {
    auto offsets = store_.state().OffsetsOf(group);
    std::sort(offsets.begin(), offsets.end());
    const bool online = !offsets.empty() && consumers_.Online(group);
    Topic topic;
    std::int32_t queues = 0;  // of it, that are the group's
    for (const auto& [queue, offset] : offsets) {
      if (topic != queue.topic) {
        topic = queue.topic;
        queues = QueuesOf(group, topic, online);
      }
      if (queue.queue_id.value() < queues) AddQueue(group, queue, offset);
    }
  }

  std::int32_t QueuesOf(const GroupName& group, const Topic& topic, bool online) const {
    if (online && consumers_.FindSubscription(group, topic) == nullptr) return 0;
    const auto config = store_.state().FindTopic(topic);
    return config ? config->read_queues : 0;
  }

  void AddQueue(const GroupName& group, const TopicQueue& queue, QueueOffset offset) {
    if (lag_.queues.size() >= limits_.queues_max) {
      ++lag_.queues_left_out;
      return;
    }
    const QueueRange range = store_.RangeOf(queue);
    const QueueOffset next = std::min(std::max(offset, range.min), range.max);
    QueueLag row{group, queue, range.max - next, std::nullopt};
    if (row.messages > 0) row.stored_ms = StoreTime(queue, next);
    lag_.queues.push_back(std::move(row));
  }

  std::optional<std::int64_t> StoreTime(const TopicQueue& queue, QueueOffset offset) {
    if (ages_ < limits_.ages_max && clock_.MonoNow() < ages_end_) {
      ++ages_;
      const std::int64_t stored_ms = StoreTimeOf(store_, queue, offset);
      if (stored_ms > 0) return stored_ms;
    }
    ++lag_.ages_left_out;
    return std::nullopt;
  }

  MessageStore& store_;
  const ConsumerRegistry& consumers_;
  const Clock& clock_;
  const ConsumerLagLimits limits_;
  const TimePoint ages_end_;
  std::size_t ages_ = 0;
  ConsumerLag lag_;
};

}  // namespace

ConsumerLag ReadConsumerLag(MessageStore& store, const ConsumerRegistry& consumers,
                            const Clock& clock, const ConsumerLagLimits& limits) {
  return Reader(store, consumers, clock, limits).Read();
}

}  // namespace triad::broker
