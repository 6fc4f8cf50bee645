#include "broker/processor/queue_progress.h"

#include <algorithm>

#include "broker/service/store_times.h"

namespace triad::broker {

remoting::ConsumeStats::Item QueueProgress(const BrokerContext& context, const GroupName& group,
                                           const TopicQueue& queue) {
  const QueueRange range = context.store.RangeOf(queue);
  const QueueOffset consumed =
      context.store.state().FindOffset({group, queue}).value_or(QueueOffset(0));
  const auto pulled =
      context.pulled->Find(group.value(), queue, context.store.node().leader_info().term);
  remoting::ConsumeStats::Item item;
  item.broker_offset = range.max.value();
  item.consumer_offset = consumed.value();
  item.pull_offset = std::max(consumed, std::min(pulled.value_or(consumed), range.max)).value();
  if (consumed > range.min && consumed <= range.max) {
    item.last_timestamp_ms = StoreTimeOf(context.store, queue, consumed - 1);
  }
  return item;
}

}  // namespace triad::broker
