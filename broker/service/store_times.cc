#include "broker/service/store_times.h"

#include "broker/store/message.h"

namespace triad::broker {

std::int64_t StoreTimeOf(MessageStore& store, const TopicQueue& queue, QueueOffset offset) {
  const auto units = store.queues().Read(queue, offset, 1);
  if (!units.ok() || units->empty()) return 0;
  const auto loaded = store.ReadMessage(units->front());
  if (!loaded.ok()) return 0;
  const auto message = ParseMessage(loaded->record, false);
  return message.ok() ? message->store_time_ms : 0;
}

}  // namespace triad::broker
