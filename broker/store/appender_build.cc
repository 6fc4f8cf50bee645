// The log thread's side of the Appender: entries from what waits.

#include <algorithm>

#include "broker/store/appender_parts.h"
#include "common/buggify.h"
#include "common/byte_order.h"
#include "common/mutant.h"

namespace triad::broker {
namespace {

std::size_t PadTo8(std::size_t bytes) {
  return (bytes + 7) & ~std::size_t{7};
}

std::size_t PayloadBytes(std::size_t command_bytes, std::size_t record_bytes) {
  return PadTo8(4 + command_bytes) + PadTo8(record_bytes);
}

// Longer than any sender waits between its look at the topic and its deadline.
constexpr std::chrono::seconds kLateSender{60};
constexpr std::size_t kDeletedMax = 100000;

AppendedMessage FirstOf(const DedupRecord& record) {
  return {.queue_offset = record.queue_offset,
          .physical_offset = record.physical_offset,
          .store_time_ms = record.store_time_ms,
          .duplicate = true,
          .first_queue = record.queue_id};
}

}  // namespace

dledger::BuildResult Appender::Build(const dledger::BuildContext& context, std::string* payload) {
  CHECK_EQ(payload->size(), context.head_bytes);
  std::vector<Shared::Pending> picked;
  std::vector<Shared::Answer> refused;
  dledger::BuildResult result = dledger::BuildResult::kBuilt;
  while (result == dledger::BuildResult::kBuilt && picked.empty()) {
    result = shared_->Pick(context, &picked, &refused);
    shared_->JoinDuplicates(context, &picked, &refused);
  }
  Shared::Send(std::move(refused));
  if (result != dledger::BuildResult::kBuilt) return result;
  Shared::Flight flight = shared_->Assemble(context, std::move(picked), payload);
  const std::lock_guard hold(shared_->mutex);
  if (!shared_->flights.empty()) {
    const Shared::Flight& last = shared_->flights.back();
    CHECK(last.term < flight.term || (last.term == flight.term && last.index < flight.index));
  }
  for (const Shared::Waiter& waiter : flight.waiters) {
    shared_->earliest_deadline = std::min(shared_->earliest_deadline, waiter.deadline);
  }
  shared_->flights.push_back(std::move(flight));
  return result;
}

// Takes off the queue what the next entry holds: in order, as much as there is room for.
dledger::BuildResult Appender::Shared::Pick(const dledger::BuildContext& context,
                                            std::vector<Pending>* picked,
                                            std::vector<Answer>* refused) {
  const std::lock_guard hold(mutex);
  if (!open || waiting.empty()) return dledger::BuildResult::kNothing;
  CHECK_EQ(context.term, term);
  const TimePoint now = clock.MonoNow();
  if (!deleted.empty()) ForgetDeletions(now);
  std::size_t command_bytes = 0;
  std::size_t record_bytes = 0;
  const auto pop = [&] {
    Pending first = std::move(waiting.front());
    waiting.pop_front();
    waiting_bytes -= first.bytes();
    waiting_requests -= first.requests;
    return first;
  };
  while (!waiting.empty()) {
    const Pending& next = waiting.front();
    if (next.deadline <= now) {
      refused->push_back(
          Refuse(pop(), Status::Unavailable("its deadline passed before it was appended")));
      continue;
    }
    if (!picked->empty() && (next.exclusive || picked->front().exclusive)) break;
    // Behind the break: what is picked changes no topics.
    if (!deleted.empty()) {
      if (Status gone = CheckTopics(next); !gone.ok()) {
        refused->push_back(Refuse(pop(), std::move(gone)));
        continue;
      }
    }
    const std::size_t bytes =
        PayloadBytes(command_bytes + next.command.size(), record_bytes + next.records.size());
    // One proposal may exceed the usual size of an entry, and then goes alone.
    const std::size_t limit = picked->empty()
                                  ? context.room_bytes
                                  : std::min(context.room_bytes, options.max_entry_bytes);
    if (bytes <= limit) {
      command_bytes += next.command.size();
      record_bytes += next.records.size();
      picked->push_back(pop());
      if (TRIAD_BUGGIFY(5)) break;  // the others go into an entry of their own
      continue;
    }
    if (!picked->empty()) break;
    if (!context.at_segment_start) return dledger::BuildResult::kDoesNotFit;
    refused->push_back(
        Refuse(pop(), Status::InvalidArgument(std::to_string(bytes) + " bytes exceed an entry's " +
                                              std::to_string(context.room_bytes))));
  }
  for (const Pending& pending : *picked) unanswered += pending.requests;
  return picked->empty() ? dledger::BuildResult::kNothing : dledger::BuildResult::kBuilt;
}

// A topic's deletion is behind it in the log, its next creation is not: the message would be the
// first one of that next topic.
Status Appender::Shared::CheckTopics(const Pending& pending) const {
  std::string_view records = pending.records;
  for (const RecordBatch::Slot& slot : pending.slots) {
    const Topic topic{std::string(TopicOfRecord(records))};
    records.remove_prefix(slot.bytes);
    const auto& own = pending.put_topics;
    if (!deleted.contains(topic) || std::find(own.begin(), own.end(), topic) != own.end()) continue;
    return Status::NotFound("topic[" + topic.value() + "] was deleted a moment ago");
  }
  if (!pending.delete_topics.empty() && deleted.size() >= kDeletedMax) {
    return Status::Busy(std::to_string(kDeletedMax) + " topics were deleted without a pause of " +
                        std::to_string(kLateSender.count()) + " s");
  }
  return Status::Ok();
}

// In the order in which the command is applied.
void Appender::Shared::NoteTopics(const dledger::BuildContext& context, const Pending& pending) {
  for (const Topic& topic : pending.put_topics) deleted.erase(topic);
  for (const Topic& topic : pending.delete_topics) {  // its queues begin again at 0
    std::erase_if(tail, [&](const auto& queue) { return queue.first.topic == topic; });
    keys.DropTopic(topic.value());
    deleted.insert(topic);
    last_deletion = context.index;
    deletions_applied = TimePoint::max();
  }
}

void Appender::Shared::ForgetDeletions(TimePoint now) {
  if (applied.load(std::memory_order_acquire) < last_deletion.value()) return;
  deletions_applied = std::min(deletions_applied, now);
  if (now - deletions_applied >= kLateSender) deleted.clear();
}

// Takes out what is known to the last message: it needs no place in the log.
void Appender::Shared::JoinDuplicates(const dledger::BuildContext& context,
                                      std::vector<Pending>* picked, std::vector<Answer>* answers) {
  const auto keyed = [](const Pending& pending) { return !pending.dedup.keys.empty(); };
  if (std::none_of(picked->begin(), picked->end(), keyed) || TRIAD_MUTANT(33)) return;
  keys.DropApplied(LogIndex{applied.load(std::memory_order_acquire)});
  std::erase_if(*picked, [&](Pending& pending) {
    if (!keyed(pending)) return false;
    std::vector<AppendedMessage> messages;
    LogIndex open_at;  // of the last first message that is not applied
    for (const std::string& key : pending.dedup.keys) {
      if (key.empty()) return false;
      const auto first = keys.Find(pending.dedup.topic.value(), key, context.store_time_ms);
      if (!first) return false;
      open_at = std::max(open_at, first->index);
      messages.push_back(FirstOf(first->record));
    }
    Join(open_at, &pending, std::move(messages), answers);
    return true;
  });
}

// The proposal shares the fate of the entry at `open`; none, or applied meanwhile: it is decided.
void Appender::Shared::Join(LogIndex open_index, Pending* pending,
                            std::vector<AppendedMessage> messages, std::vector<Answer>* answers) {
  const std::lock_guard hold(mutex);
  const auto flight = std::find_if(flights.rbegin(), flights.rend(), [&](const Flight& one) {
    return one.term == term && one.index == open_index;
  });
  if (flight != flights.rend()) {
    earliest_deadline = std::min(earliest_deadline, pending->deadline);
    flight->waiters.push_back({.done = std::move(pending->done),
                               .deadline = pending->deadline,
                               .messages = std::move(messages),
                               .records = {}});
    return;
  }
  --unanswered;
  AppendOutcome outcome;
  outcome.term = term;
  outcome.messages = std::move(messages);
  answers->push_back({std::move(pending->done), std::move(outcome)});
}

Appender::Shared::Flight Appender::Shared::Assemble(const dledger::BuildContext& context,
                                                    std::vector<Pending> picked,
                                                    std::string* payload) {
  std::size_t command_bytes = 0;
  std::size_t record_bytes = 0;
  for (const Pending& pending : picked) {
    command_bytes += pending.command.size();
    record_bytes += pending.records.size();
    NoteTopics(context, pending);
  }
  payload->reserve(context.head_bytes + PayloadBytes(command_bytes, record_bytes));
  AppendBe32(payload, static_cast<std::uint32_t>(command_bytes));
  for (const Pending& pending : picked) payload->append(pending.command);
  payload->resize(PadTo8(payload->size()));

  Flight flight{.index = context.index, .term = context.term, .waiters = {}};
  flight.waiters.reserve(picked.size());
  for (Pending& pending : picked) {
    flight.waiters.push_back({.done = std::move(pending.done),
                              .deadline = pending.deadline,
                              .messages = Place(context, pending, payload),
                              .offset_count = pending.offset_count,
                              .lock_count = pending.lock_count,
                              .requests = pending.requests,
                              .records = {}});
    if (pending.returns_records) flight.waiters.back().records = std::move(pending.records);
  }
  payload->resize(PadTo8(payload->size()));
  const std::size_t payload_bytes = payload->size() - context.head_bytes;
  CHECK_LE(payload_bytes, PayloadBytes(command_bytes, record_bytes));  // less: duplicates
  return flight;
}

// Appends the proposal's records and gives each its final place.
std::vector<AppendedMessage> Appender::Shared::Place(const dledger::BuildContext& context,
                                                     const Pending& pending, std::string* payload) {
  if (!pending.dedup.keys.empty()) return PlaceKeyed(context, pending, payload);
  std::vector<AppendedMessage> messages;
  messages.reserve(pending.slots.size());
  std::size_t at = payload->size();
  payload->append(pending.records);
  for (const RecordBatch::Slot& slot : pending.slots) {
    messages.push_back(PlaceOne(context, slot, at, payload));
    at += slot.bytes;
  }
  CHECK_EQ(at, payload->size());
  return messages;
}

// As Place, but for the messages whose first one is known.
std::vector<AppendedMessage> Appender::Shared::PlaceKeyed(const dledger::BuildContext& context,
                                                          const Pending& pending,
                                                          std::string* payload) {
  std::vector<AppendedMessage> messages;
  messages.reserve(pending.slots.size());
  const std::string& topic = pending.dedup.topic.value();
  std::size_t record_at = 0;
  for (std::size_t i = 0; i < pending.slots.size(); ++i) {
    const RecordBatch::Slot& slot = pending.slots[i];
    const std::string& key = pending.dedup.keys[i];
    const std::size_t record = std::exchange(record_at, record_at + slot.bytes);
    if (!key.empty() && !TRIAD_MUTANT(33)) {
      if (const auto first = keys.Find(topic, key, context.store_time_ms)) {
        messages.push_back(FirstOf(first->record));
        continue;
      }
    }
    const std::size_t at = payload->size();
    payload->append(pending.records, record, slot.bytes);
    messages.push_back(PlaceOne(context, slot, at, payload));
    if (key.empty()) continue;
    const AppendedMessage& placed = messages.back();
    keys.Add(topic, key,
             {context.index,
              {pending.dedup.queue_id, placed.queue_offset, placed.physical_offset,
               placed.store_time_ms}});
  }
  return messages;
}

// The record at `at` of the payload gets its place.
AppendedMessage Appender::Shared::PlaceOne(const dledger::BuildContext& context,
                                           const RecordBatch::Slot& slot, std::size_t at,
                                           std::string* payload) {
  const std::string_view record(payload->data() + at, slot.bytes);
  const QueueRef ref{TopicOfRecord(record), slot.queue_id};
  auto next = tail.find(ref);
  if (next == tail.end()) {
    TopicQueue queue{Topic(std::string(ref.topic)), ref.queue_id};
    next = tail.emplace(std::move(queue), QueueOffset{0}).first;
  }
  const AppendedMessage message{
      .queue_offset = next->second,
      .physical_offset =
          context.payload_position + static_cast<std::int64_t>(at - context.head_bytes),
      .store_time_ms = context.store_time_ms,
      .duplicate = false,
      .first_queue = {}};
  ++next->second;
  SetPlace(message.queue_offset, message.physical_offset, message.store_time_ms,
           payload->data() + at);
  return message;
}

}  // namespace triad::broker
