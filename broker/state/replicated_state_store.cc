// Load and Flush of ReplicatedState: its records in the StateStore.

#include <algorithm>
#include <mutex>

#include "broker/state/replicated_state_tables.h"
#include "broker/state/state_keys.h"

namespace triad::broker {
namespace {

// LevelDB's recovery may skip a damaged batch in the middle of its log without a word. Each batch
// therefore leaves a numbered record, and a missing number is corruption. So many are kept that
// LevelDB's log (one write buffer, leveldb_state_store.cc) never holds more batches.
constexpr std::uint64_t kFlushRecordsKept = 8192;

bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

void PutOrDelete(std::string key, std::optional<std::string> value, StateBatch* batch) {
  if (value.has_value()) {
    batch->puts.emplace_back(std::move(key), std::move(*value));
  } else {
    batch->deletes.push_back(std::move(key));
  }
}

template <typename Map, typename Key, typename Encode>
std::optional<std::string> Encoded(const Map& map, const Key& key, Encode encode) {
  const auto found = map.find(key);
  if (found == map.end()) return std::nullopt;
  return encode(found->second);
}

}  // namespace

// ---- Load ---------------------------------------------------------------------------------------

Status ReplicatedState::Load() {
  Tables& tables = *tables_;
  const std::unique_lock hold(tables.mutex);
  Status first_error;
  std::set<std::uint64_t> flush_numbers;
  bool any_record = false;
  const Status read = tables.store->ForEach([&](std::string_view key, std::string_view value) {
    if (!first_error.ok()) return;
    any_record = true;
    if (StartsWith(key, kFlushPrefix)) {
      const Result<std::uint64_t> number = ParseFlushKey(key);
      if (number.ok()) flush_numbers.insert(number.value());
      first_error = number.status();
      return;
    }
    first_error = tables.LoadRecord(key, value);
  });
  TRIAD_RETURN_IF_ERROR(read);
  TRIAD_RETURN_IF_ERROR(first_error);
  TRIAD_RETURN_IF_ERROR(tables.CheckFlushRecords(flush_numbers, any_record));
  tables.flushed_index = tables.applied.index;
  for (const auto& [id, marked_at] : tables.send_backs) {
    tables.send_back_order.emplace_back(marked_at, id);
  }
  std::sort(tables.send_back_order.begin(), tables.send_back_order.end());
  tables.BuildDedup();
  return Status::Ok();
}

// The keys' tables from the topics' rules and the records, in log order.
void ReplicatedState::Tables::BuildDedup() {
  for (const auto& [name, topic] : topics) FollowDedupRule(name);
  std::sort(loaded_keys.begin(), loaded_keys.end(), [](const auto& a, const auto& b) {
    return a.second.physical_offset < b.second.physical_offset;
  });
  for (const auto& [id, record] : loaded_keys) {
    const auto found = dedup.find(id.first);
    if (found == dedup.end()) continue;  // the rule went with the keys, in one batch
    found->second.table->Put(id.second, record, [](const std::string&) {});
  }
  loaded_keys = {};
}

Status ReplicatedState::Tables::CheckFlushRecords(const std::set<std::uint64_t>& numbers,
                                                  bool any_record) const {
  if (!any_record) return Status::Ok();
  const std::uint64_t last = applied.flush_number;
  if (last == 0) return Status::Corruption("state: records without an applied record");
  const std::uint64_t first = last > kFlushRecordsKept ? last - kFlushRecordsKept + 1 : 1;
  if (numbers.empty() || *numbers.begin() != first || *numbers.rbegin() != last ||
      numbers.size() != last - first + 1) {
    return Status::Corruption("state: a flush is missing among " + std::to_string(first) + ".." +
                              std::to_string(last) + "; this peer needs the state of another one");
  }
  return Status::Ok();
}

Status ReplicatedState::Tables::LoadRecord(std::string_view key, std::string_view value) {
  if (key == kAppliedKey) {
    const Result<AppliedRecord> record = DecodeApplied(value);
    if (record.ok()) applied = record.value();
    return record.status();
  }
  if (key == kDelayLevelsKey) {
    delay_levels = std::string(value);
    return Status::Ok();
  }
  if (StartsWith(key, kExtraPrefix)) {
    loaded_extras[std::string(key.substr(kExtraPrefix.size()))] = std::string(value);
    return Status::Ok();
  }
  return LoadTyped(key, value);
}

Status ReplicatedState::Tables::LoadTyped(std::string_view key, std::string_view value) {
  const char kind = key.empty() ? '\0' : key.front();
  if (kind == kTopicKind) {
    const Result<TopicConfig> topic = DecodeTopic(value);
    if (topic.ok()) topics[topic.value().name] = topic.value();
    return topic.status();
  }
  if (kind == kGroupKind) {
    const Result<GroupConfig> group = DecodeGroup(value);
    if (group.ok()) groups[group.value().name] = group.value();
    return group.status();
  }
  if (kind == kOffsetKind) {
    const Result<GroupQueue> parsed = ParseGroupQueueKey(key);
    if (!parsed.ok()) return parsed.status();
    const Result<OffsetRecord> record = DecodeOffset(value);
    if (record.ok()) offsets[parsed.value().group][parsed.value().queue] = record.value();
    return record.status();
  }
  if (kind == kLockKind) {
    const Result<GroupQueue> parsed = ParseGroupQueueKey(key);
    if (!parsed.ok()) return parsed.status();
    const Result<LockRecord> record = DecodeLock(value);
    if (record.ok()) locks[parsed.value()] = record.value();
    return record.status();
  }
  if (kind == kDlqKind) {
    const Result<DlqQueue> queue = ParseDlqKey(key);
    if (!queue.ok()) return queue.status();
    const Result<DlqRecord> record = DecodeDlq(value);
    if (record.ok()) dlq[queue.value()] = record.value();
    return record.status();
  }
  if (kind == kDedupKind) {
    const auto id = ParseDedupKey(key);
    if (!id.ok()) return id.status();
    const Result<DedupRecord> record = DecodeKey(value);
    if (record.ok()) loaded_keys.emplace_back(id.value(), record.value());
    return record.status();
  }
  if (kind == kSettingKind) {
    settings[std::string(key.substr(1))] = std::string(value);
    return Status::Ok();
  }
  const Result<std::int64_t> number = DecodeInt64(value);
  if (!number.ok()) return number.status();
  if (kind == kNextOffsetKind) {
    const Result<TopicQueue> queue = ParseNextOffsetKey(key);
    if (queue.ok()) next_offsets[queue.value()] = {QueueOffset{number.value()}, false};
    return queue.status();
  }
  if (kind == kDelayKind) {
    const Result<std::int32_t> level = ParseDelayKey(key);
    if (level.ok()) delays[level.value()] = QueueOffset{number.value()};
    return level.status();
  }
  if (kind == kSendBackKind) {
    const Result<SendBackId> id = ParseSendBackKey(key);
    if (id.ok()) send_backs[id.value()] = number.value();
    return id.status();
  }
  return Status::Corruption("state: a record of an unknown kind");
}

// ---- Install ------------------------------------------------------------------------------------

namespace {

// A StateStore that holds an image, to be loaded from.
class ImageStore final : public StateStore {
 public:
  explicit ImageStore(const std::vector<std::pair<std::string, std::string>>& records)
      : records_(records) {}
  Status ForEach(
      const std::function<void(std::string_view key, std::string_view value)>& visit) override {
    for (const auto& [key, value] : records_) visit(key, value);
    return Status::Ok();
  }
  Result<std::unique_ptr<StateRecords>> NewImage() override {
    return Status::Unsupported("an image of an image");
  }
  Status Write(const StateBatch&) override {
    return Status::Unsupported("an image is not written to");
  }

 private:
  const std::vector<std::pair<std::string, std::string>>& records_;
};

}  // namespace

Result<std::unique_ptr<StateRecords>> ReplicatedState::NewImage() const {
  return tables_->store->NewImage();
}

void ReplicatedState::Tables::TakeContent(Tables* from) {
  topics = std::move(from->topics);
  groups = std::move(from->groups);
  offsets = std::move(from->offsets);
  locks = std::move(from->locks);
  next_offsets = std::move(from->next_offsets);
  delays = std::move(from->delays);
  send_backs = std::move(from->send_backs);
  send_back_order = std::move(from->send_back_order);
  delay_levels = std::move(from->delay_levels);
  dlq = std::move(from->dlq);
  dedup = std::move(from->dedup);
  settings = std::move(from->settings);
  applied = from->applied;
  flushed_index = from->flushed_index;
  loaded_extras = std::move(from->loaded_extras);
  dirty = Dirty();
}

Status ReplicatedState::Install(const std::vector<std::pair<std::string, std::string>>& records) {
  ReplicatedState image(std::make_unique<ImageStore>(records));
  TRIAD_RETURN_IF_ERROR(image.Load());
  StateBatch batch;
  std::set<std::string_view> kept;
  for (const auto& [key, value] : records) kept.insert(key);
  TRIAD_RETURN_IF_ERROR(
      tables_->store->ForEach([&](std::string_view key, std::string_view /*value*/) {
        if (!kept.contains(key)) batch.deletes.emplace_back(key);
      }));
  batch.puts = records;
  TRIAD_RETURN_IF_ERROR(tables_->store->Write(batch));
  const std::unique_lock hold(tables_->mutex);
  tables_->TakeContent(image.tables_.get());
  ++tables_->topics_version;
  return Status::Ok();
}

// ---- Flush --------------------------------------------------------------------------------------

void ReplicatedState::Tables::CollectDirty(StateBatch* batch) const {
  for (const Topic& topic : dirty.topics) {
    PutOrDelete(TopicKey(topic), Encoded(topics, topic, EncodeTopic), batch);
  }
  for (const GroupName& group : dirty.groups) {
    PutOrDelete(GroupKey(group), Encoded(groups, group, EncodeGroup), batch);
  }
  for (const GroupQueue& key : dirty.offsets) {
    const auto group = offsets.find(key.group);
    std::optional<std::string> value;
    if (group != offsets.end()) value = Encoded(group->second, key.queue, EncodeOffset);
    PutOrDelete(OffsetKey(key), std::move(value), batch);
  }
  for (const GroupQueue& key : dirty.locks) {
    PutOrDelete(LockKey(key), Encoded(locks, key, EncodeLock), batch);
  }
  for (const TopicQueue& queue : dirty.next_offsets) {
    const auto encode = [](const NextOffset& entry) { return EncodeInt64(entry.next.value()); };
    PutOrDelete(NextOffsetKey(queue), Encoded(next_offsets, queue, encode), batch);
  }
  for (const std::int32_t level : dirty.delays) {
    const auto encode = [](QueueOffset next) { return EncodeInt64(next.value()); };
    PutOrDelete(DelayKey(level), Encoded(delays, level, encode), batch);
  }
  for (const SendBackId& id : dirty.send_backs) {
    PutOrDelete(SendBackKey(id.first, id.second), Encoded(send_backs, id, EncodeInt64), batch);
  }
  if (dirty.delay_levels) batch->puts.emplace_back(kDelayLevelsKey, delay_levels);
  for (const DlqQueue& queue : dirty.dlq) {
    PutOrDelete(DlqKey(queue.first, queue.second), Encoded(dlq, queue, EncodeDlq), batch);
  }
  for (const std::string& name : dirty.settings) {
    batch->puts.emplace_back(SettingKey(name), settings.at(name));
  }
  for (const auto& [topic, key] : dirty.keys) {
    const auto found = dedup.find(topic);
    const DedupRecord* record = found == dedup.end() ? nullptr : found->second.table->Find(key);
    std::optional<std::string> value;
    if (record != nullptr) value = EncodeKey(*record);
    PutOrDelete(DedupKey(topic, key), std::move(value), batch);
  }
}

Status ReplicatedState::Flush(const std::vector<std::pair<std::string, std::string>>& extra) {
  Tables& tables = *tables_;  // only this thread changes the tables: reading them needs no lock
  StateBatch batch;
  tables.CollectDirty(&batch);
  AppliedRecord applied = tables.applied;
  ++applied.flush_number;
  batch.puts.emplace_back(kAppliedKey, EncodeApplied(applied));
  batch.puts.emplace_back(FlushKey(applied.flush_number), std::string());
  if (applied.flush_number > kFlushRecordsKept) {
    batch.deletes.push_back(FlushKey(applied.flush_number - kFlushRecordsKept));
  }
  for (const auto& [key, value] : extra) {
    batch.puts.emplace_back(std::string(kExtraPrefix) + key, value);
  }
  TRIAD_RETURN_IF_ERROR(tables.store->Write(batch));

  const std::unique_lock hold(tables.mutex);
  tables.applied.flush_number = applied.flush_number;
  tables.flushed_index = applied.index;
  for (const TopicQueue& queue : tables.dirty.next_offsets) {
    const auto found = tables.next_offsets.find(queue);
    if (found != tables.next_offsets.end()) found->second.dirty = false;
  }
  tables.dirty = Tables::Dirty();
  return Status::Ok();
}

}  // namespace triad::broker
