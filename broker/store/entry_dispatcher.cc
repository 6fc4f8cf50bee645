#include "broker/store/entry_dispatcher.h"

#include <algorithm>

#include "broker/store/dedup_tail.h"

namespace triad::broker {
namespace {

Status Damaged(const dledger::Entry& entry, std::string_view what) {
  return Status::Corruption("entry " + std::to_string(entry.index.value()) + " at " +
                            std::to_string(entry.position.value()) + ": " + std::string(what));
}

// The padding behind the last record.
bool IsPadding(std::string_view bytes) {
  return bytes.size() < 8 && bytes.find_first_not_of('\0') == std::string_view::npos;
}

ApplyContext ContextOf(const dledger::Entry& entry) {
  ApplyContext context;
  context.index = entry.index;
  context.term = entry.term;
  context.position = entry.position;
  context.end_position = entry.end();
  context.store_time_ms = entry.store_time_ms;
  return context;
}

}  // namespace

EntryDispatcher::EntryDispatcher(ReplicatedState* state, ConsumeQueueStore* queues, KeyIndex* keys,
                                 std::function<bool()> flush)
    : state_(state), queues_(queues), keys_(keys), flush_(std::move(flush)) {}

Result<EntryDispatcher::Outcome> EntryDispatcher::Apply(const dledger::Entry& entry) {
  const ApplyContext context = ContextOf(entry);
  Outcome outcome;
  if (entry.type != dledger::EntryType::kBatch) {
    NoteKeyless(entry);
    state_->FinishEntry(context);
    return outcome;
  }
  const Result<PayloadView> payload = ParsePayload(entry.payload());
  if (!payload.ok()) return Damaged(entry, payload.status().message());
  TRIAD_RETURN_IF_ERROR(CheckRecords(entry, payload.value()));
  if (!payload.value().command.empty()) {
    const Result<StateCommand> command = DecodeStateCommand(payload.value().command);
    if (!command.ok()) return Damaged(entry, command.status().message());
    outcome.command = state_->Apply(command.value(), context);
    outcome.settings = command.value().put_settings;
    outcome.topics_changed = !outcome.command.topics_changed.empty() ||
                             !command.value().put_groups.empty() ||
                             !command.value().delete_groups.empty();
    if (!command.value().delete_topics.empty() && messages_.empty()) {
      NoteKeyless(entry);
      state_->FinishEntry(context);
      if (flush_()) DeleteTopics(command.value().delete_topics);
      return outcome;
    }
    DeleteTopics(command.value().delete_topics);
  }
  DispatchRecords(entry);
  state_->FinishEntry(context);
  return outcome;
}

// The key index may be behind: it is being rebuilt, and comes to this entry later.
bool EntryDispatcher::TakesKeys(const dledger::Entry& entry) const {
  return keys_->last() + 1 == entry.index;
}

void EntryDispatcher::NoteKeyless(const dledger::Entry& entry) {
  if (!TakesKeys(entry)) return;
  keys_->BeginEntry(entry);
  keys_->EndEntry(entry);
}

void EntryDispatcher::DeleteTopics(const std::vector<Topic>& topics) {
  for (const Topic& topic : topics) {
    queues_->DeleteTopic(topic);
    std::erase_if(arrivals_, [&](const auto& queue) { return queue.first.topic == topic; });
  }
}

// Every record of the entry: parsed, and where it says it is.
Status EntryDispatcher::CheckRecords(const dledger::Entry& entry, const PayloadView& payload) {
  messages_.clear();
  std::string_view rest = payload.records;
  PhysicalOffset at = entry.payload_position() + static_cast<std::int64_t>(payload.records_at);
  while (!IsPadding(rest)) {
    Result<MessageView> message = ParseMessage(rest, false);  // the entry's CRC covers it
    if (!message.ok()) return Damaged(entry, message.status().message());
    if (message.value().physical_offset != at) {
      return Damaged(entry, "a record says it is at " +
                                std::to_string(message.value().physical_offset.value()) +
                                ", but it is at " + std::to_string(at.value()));
    }
    const std::size_t bytes = message.value().record.size();
    messages_.push_back(std::move(message).value());
    rest.remove_prefix(bytes);
    at += static_cast<std::int64_t>(bytes);
  }
  return Status::Ok();
}

void EntryDispatcher::DispatchRecords(const dledger::Entry& entry) {
  std::vector<std::pair<const TopicQueue, Arrival>*> touched;
  const bool takes_keys = TakesKeys(entry);
  if (takes_keys) keys_->BeginEntry(entry);
  for (const MessageView& message : messages_) {
    auto found = arrivals_.find(QueueRef{message.topic, QueueId{message.queue_id}});
    if (found == arrivals_.end()) {
      TopicQueue queue{Topic(std::string(message.topic)), QueueId{message.queue_id}};
      found = arrivals_.emplace(std::move(queue), Arrival{}).first;
    }
    Arrival& arrival = found->second;
    if (arrival.entry != entry.index) touched.push_back(&*found);
    arrival.entry = entry.index;
    arrival.next = message.queue_offset + 1;
    ++arrival.messages;
    arrival.bytes += static_cast<std::int64_t>(message.record.size());
    const SearchProperties properties = FindSearchProperties(message.properties);
    queues_->Append(found->first, message.queue_offset, UnitOf(message, properties));
    if (takes_keys) RecordKeys(message, properties);
    NoteKey(message);
  }
  if (takes_keys) keys_->EndEntry(entry);
  for (const auto* queue : touched) state_->NoteMessage(queue->first, queue->second.next);
}

// A topic with a rule remembers what its messages are known by.
void EntryDispatcher::NoteKey(const MessageView& message) {
  if (!state_->has_dedup()) return;
  const DedupTarget target =
      DedupTargetOf(message.topic, QueueId{message.queue_id}, message.properties);
  const DedupMode mode = state_->DedupModeOf(target.topic);
  const std::string_view key = DedupKeyOf(mode, message.properties);
  if (key.empty() || key.size() > kDedupKeyBytesMax) return;
  state_->NoteKey(
      target.topic, std::string(key),
      {target.queue_id, message.queue_offset, message.physical_offset, message.store_time_ms});
}

Status EntryDispatcher::Replay(const dledger::Entry& entry, Lacking lacking) {
  messages_.clear();
  if (entry.type == dledger::EntryType::kBatch) {
    const Result<PayloadView> payload = ParsePayload(entry.payload());
    if (!payload.ok()) return Damaged(entry, payload.status().message());
    TRIAD_RETURN_IF_ERROR(CheckRecords(entry, payload.value()));
    if (lacking.queues && !payload.value().command.empty()) {
      const Result<StateCommand> command = DecodeStateCommand(payload.value().command);
      if (!command.ok()) return Damaged(entry, command.status().message());
      for (const Topic& topic : command.value().delete_topics) queues_->DeleteTopic(topic);
    }
  }
  if (lacking.queues) TRIAD_RETURN_IF_ERROR(ReplayQueues(entry, lacking.whole));
  if (lacking.keys) {
    keys_->BeginEntry(entry);
    for (const MessageView& message : messages_) {
      RecordKeys(message, FindSearchProperties(message.properties));
    }
    keys_->EndEntry(entry);
  }
  return Status::Ok();
}

Status EntryDispatcher::ReplayQueues(const dledger::Entry& entry, bool whole) {
  for (const MessageView& message : messages_) {
    const TopicQueue queue{Topic(std::string(message.topic)), QueueId{message.queue_id}};
    const std::optional<QueueRange> range = queues_->Range(queue);
    const QueueOffset max = range ? range->max : QueueOffset{0};
    if (message.queue_offset > max && (range || !whole)) {
      if (whole) {
        return Damaged(entry, "its messages do not follow those in front of it in topic " +
                                  queue.topic.value());
      }
      LOG(WARNING) << "the consume queue of topic " << queue.topic << " queue " << queue.queue_id
                   << " lacks the messages from " << max << " to " << message.queue_offset
                   << "; they are rebuilt from the log";
      queues_->ExtendTo(queue, message.queue_offset);
    }
    queues_->Append(queue, message.queue_offset,
                    UnitOf(message, FindSearchProperties(message.properties)));
  }
  return Status::Ok();
}

Result<std::vector<EntryDispatcher::PlacedUnit>> EntryDispatcher::UnitsOf(
    const dledger::Entry& entry, const TopicQueue& queue, QueueOffset begin, QueueOffset end) {
  std::vector<PlacedUnit> units;
  if (entry.type != dledger::EntryType::kBatch) return units;
  const Result<PayloadView> payload = ParsePayload(entry.payload());
  if (!payload.ok()) return Damaged(entry, payload.status().message());
  TRIAD_RETURN_IF_ERROR(CheckRecords(entry, payload.value()));
  for (const MessageView& message : messages_) {
    const bool wanted = message.queue_id == queue.queue_id.value() &&
                        message.queue_offset >= begin && message.queue_offset < end &&
                        message.topic == queue.topic.value();
    if (!wanted) continue;
    units.push_back(
        {message.queue_offset, UnitOf(message, FindSearchProperties(message.properties))});
  }
  return units;
}

QueueUnit EntryDispatcher::UnitOf(const MessageView& message, const SearchProperties& properties) {
  return {message.physical_offset, static_cast<std::int32_t>(message.record.size()),
          TagCodeOf(message, properties)};
}

// admin.md §8.2: the unique key, and every part of KEYS; not for a rolled back transaction.
void EntryDispatcher::RecordKeys(const MessageView& message, const SearchProperties& properties) {
  if (properties.unique_key.empty() && properties.keys.empty()) return;
  if ((message.sys_flag & kSysFlagTransactionMask) == kSysFlagRollback) return;
  const std::uint64_t topic = KeyHash(kTopicSeed, message.topic);
  if (!properties.unique_key.empty()) {
    keys_->Add(KeyHash(topic, properties.unique_key), message.physical_offset);
  }
  ForEachKey(properties.keys, [&](std::string_view key) {
    keys_->Add(KeyHash(topic, key), message.physical_offset);
  });
}

std::vector<EntryDispatcher::Arrived> EntryDispatcher::TakeArrivals() {
  std::vector<Arrived> taken;
  taken.reserve(arrivals_.size());
  for (const auto& [queue, arrival] : arrivals_) {
    taken.push_back({queue, arrival.next, arrival.messages, arrival.bytes});
  }
  arrivals_.clear();
  std::ranges::sort(taken, {}, &Arrived::queue);
  return taken;
}

// wire.md §5.10, §8.4.
std::int64_t EntryDispatcher::TagCodeOf(const MessageView& message,
                                        const SearchProperties& properties) {
  if (message.topic != kScheduleTopic) return TagCode(properties.tags);
  RefreshLevels();
  return message.store_time_ms + levels_.DelayOf(message.queue_id + 1).count();
}

// As the state has them now: a command sets them, and so does another peer's state that takes the
// place of this one's.
void EntryDispatcher::RefreshLevels() {
  const std::string text = state_->delay_levels();
  if (text == levels_text_) return;
  levels_text_ = text;
  const Result<DelayLevels> parsed = DelayLevels::Parse(text);
  LOG_IF(ERROR, !parsed.ok()) << "the group's delay levels do not parse, the defaults are used: "
                              << parsed.status();
  levels_ = parsed.ok() ? parsed.value() : DelayLevels();
}

}  // namespace triad::broker
