#include <utility>

#include "broker/store/log_message_store.h"
#include "broker/store/message_locator.h"
#include "common/mutant.h"

namespace triad::broker {

// ---- Reads --------------------------------------------------------------------------------------

QueueRange LogMessageStore::RangeOf(const TopicQueue& queue) const {
  const QueueOffset next = state_->NextOffset(queue);
  const std::optional<QueueRange> range = queues_->Range(queue);
  if (!range.has_value()) return {next, next};
  QueueOffset max = std::min(next, range->max);
  if (TRIAD_MUTANT(25) && node_->status().last_index > state_->applied_index()) ++max;
  return {std::min(range->min, max), max};
}

LoadedMessage LogMessageStore::CachedMessage(const QueueUnit& unit) const {
  dledger::EntryRef entry = node_->CachedAt(unit.position);
  if (entry == nullptr) entry = unwritten_.FindAt(unit.position);
  if (entry == nullptr) return {};
  Result<LoadedMessage> loaded = LocateMessage(std::move(entry), unit);
  return loaded.ok() ? std::move(loaded.value()) : LoadedMessage{};
}

Result<dledger::EntryRef> LogMessageStore::EntryAt(PhysicalOffset inside) {
  if (dledger::EntryRef entry = unwritten_.FindAt(inside)) return entry;
  return node_->ReadAt(inside);
}

Result<LoadedMessage> LogMessageStore::ReadMessage(const QueueUnit& unit) {
  Result<dledger::EntryRef> entry = EntryAt(unit.position);
  if (entry.status().code() == StatusCode::kNotFound && unit.position >= node_->begin_position()) {
    // Only retention makes a message disappear; nobody may step over this one.
    return Status::Unavailable("position " + std::to_string(unit.position.value()) +
                               " is not in the log of this peer yet");
  }
  if (!entry.ok()) return entry.status();
  Result<LoadedMessage> loaded = LocateMessage(std::move(entry.value()), unit);
  if (!loaded.ok()) return loaded;
  const Result<MessageView> message = ParseMessage(loaded->record, true);
  if (!message.ok()) return message.status();
  return loaded;
}

Result<LoadedMessage> LogMessageStore::ReadMessageAt(PhysicalOffset offset) {
  if (offset.value() < 0 || offset >= state_->applied_position()) {
    return Status::NotFound("no message begins at " + std::to_string(offset.value()));
  }
  Result<dledger::EntryRef> entry = EntryAt(offset);
  if (!entry.ok()) return entry.status();
  return FindMessage(std::move(entry.value()), offset);
}

Result<std::int64_t> LogMessageStore::StoreTimeOf(const TopicQueue& queue, QueueOffset offset) {
  const Result<std::vector<QueueUnit>> units = queues_->Read(queue, offset, 1);
  if (!units.ok()) return units.status();
  if (units.value().empty()) return Status::NotFound("the queue lost the message meanwhile");
  const Result<LoadedMessage> loaded = ReadMessage(units.value().front());
  if (!loaded.ok()) return loaded.status();
  return ParseMessage(loaded.value().record, false).value().store_time_ms;  // it was checked
}

// Store times never decrease along a queue, so this is a binary search.
Result<QueueOffset> LogMessageStore::OffsetByTime(const TopicQueue& queue, std::int64_t time_ms,
                                                  bool upper) {
  const QueueRange range = RangeOf(queue);
  QueueOffset low = range.min;
  QueueOffset high = range.max;
  while (low < high) {
    const QueueOffset middle = low + (high - low) / 2;
    const Result<std::int64_t> time = StoreTimeOf(queue, middle);
    if (!time.ok()) return time.status();
    const bool in_front = upper ? time.value() <= time_ms : time.value() < time_ms;
    if (in_front) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (!upper) return low;
  return low == range.min ? low : low - 1;
}

Result<std::vector<LoadedMessage>> LogMessageStore::FindMessages(KeyQuery query) {
  const std::optional<TopicConfig> topic = state_->FindTopic(query.topic);
  if (!topic.has_value()) return Status::NotFound("topic " + query.topic.value() + " is not here");
  const auto rebuilt = [] {
    return Status::Unavailable("the key index is being rebuilt from the log; ask again");
  };
  const std::uint64_t keys_state = keys_state_.load();
  if (keys_state % 2 != 0) return rebuilt();
  query.topic_begin = topic->created_position;
  query.applied_end = state_->applied_position();
  auto found = FindByKey(*keys_, query, [this](PhysicalOffset at) -> Result<LoadedMessage> {
    Result<LoadedMessage> loaded = ReadMessageAt(at);
    if (loaded.status().code() == StatusCode::kNotFound && at >= node_->begin_position()) {
      return Status::Unavailable("position " + std::to_string(at.value()) +
                                 " is not in the log of this peer yet");
    }
    return loaded;
  });
  // Something may have been dropped meanwhile.
  if (keys_state_.load() != keys_state) return rebuilt();
  return found;
}

}  // namespace triad::broker
