#include "client/offset_store.h"

#include <algorithm>

#include "remoting/json.h"

namespace triad::client {

void OffsetStore::Begin(const MessageQueue& queue, std::int64_t offset, bool stored) {
  std::lock_guard hold(mutex_);
  entries_[queue] = Entry{offset, stored ? offset : -1};
}

void OffsetStore::Update(const MessageQueue& queue, std::int64_t offset, bool only_forward) {
  std::lock_guard hold(mutex_);
  const auto found = entries_.find(queue);
  if (found == entries_.end()) return;
  found->second.offset = only_forward ? std::max(found->second.offset, offset) : offset;
}

std::optional<std::int64_t> OffsetStore::Find(const MessageQueue& queue) const {
  std::lock_guard hold(mutex_);
  const auto found = entries_.find(queue);
  if (found == entries_.end()) return std::nullopt;
  return found->second.offset;
}

std::map<MessageQueue, std::int64_t> OffsetStore::Uncommitted() const {
  std::lock_guard hold(mutex_);
  std::map<MessageQueue, std::int64_t> result;
  for (const auto& [queue, entry] : entries_) {
    if (entry.offset != entry.committed) result[queue] = entry.offset;
  }
  return result;
}

std::optional<std::int64_t> OffsetStore::Uncommitted(const MessageQueue& queue) const {
  std::lock_guard hold(mutex_);
  const auto found = entries_.find(queue);
  if (found == entries_.end() || found->second.offset == found->second.committed) {
    return std::nullopt;
  }
  return found->second.offset;
}

void OffsetStore::Committed(const MessageQueue& queue, std::int64_t offset) {
  std::lock_guard hold(mutex_);
  const auto found = entries_.find(queue);
  if (found != entries_.end()) found->second.committed = offset;
}

void OffsetStore::Remove(const MessageQueue& queue) {
  std::lock_guard hold(mutex_);
  entries_.erase(queue);
}

std::string OffsetStore::Encode() const {
  std::lock_guard hold(mutex_);
  remoting::JsonWriter writer;
  writer.BeginArray();
  for (const auto& [queue, entry] : entries_) {
    writer.BeginObject();
    writer.Key("brokerName").String(queue.broker_name);
    writer.Key("offset").Int(entry.offset);
    writer.Key("queueId").Int(queue.queue_id);
    writer.Key("topic").String(queue.topic);
    writer.EndObject();
  }
  writer.EndArray();
  return writer.Take();
}

Result<std::map<MessageQueue, std::int64_t>> OffsetStore::Decode(std::string_view text) {
  const Result<remoting::Json> json = remoting::Json::Parse(text);
  if (!json.ok() || !json->is_array()) return Status::Corruption("not a file of offsets");
  std::map<MessageQueue, std::int64_t> offsets;
  for (const remoting::Json& item : json->items()) {
    const std::int64_t offset = item["offset"].AsInt64(-1);
    if (offset < 0) return Status::Corruption("an offset is missing or negative");
    MessageQueue queue;
    queue.topic = item["topic"].AsString();
    queue.broker_name = item["brokerName"].AsString();
    queue.queue_id = static_cast<std::int32_t>(item["queueId"].AsInt64(0));
    offsets[queue] = offset;
  }
  return offsets;
}

}  // namespace triad::client
