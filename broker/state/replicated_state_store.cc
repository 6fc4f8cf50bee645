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
  Tables::BatchNumbers numbers;
  bool any_record = false;
  const Status read = tables.store->ForEach([&](std::string_view key, std::string_view value) {
    if (!first_error.ok()) return;
    any_record = true;
    first_error = tables.LoadRecord(key, value, &numbers);
  });
  TRIAD_RETURN_IF_ERROR(read);
  TRIAD_RETURN_IF_ERROR(first_error);
  if (any_record) {
    TRIAD_RETURN_IF_ERROR(tables.CheckInstalls(numbers));
    TRIAD_RETURN_IF_ERROR(tables.CheckFlushes(numbers.flushes));
  }
  tables.flushed_index = tables.applied.index;
  for (const auto& [id, marked_at] : tables.send_backs) {
    tables.send_back_order.emplace_back(marked_at, id);
  }
  std::sort(tables.send_back_order.begin(), tables.send_back_order.end());
  for (auto& [topic, keys] : tables.dedup) keys.table->FinishLoad();
  return Status::Ok();
}

Status ReplicatedState::Tables::CheckFlushes(const std::set<std::uint64_t>& numbers) const {
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

// All batches of the last image are there, its last one too.
Status ReplicatedState::Tables::CheckInstalls(const BatchNumbers& numbers) const {
  const std::set<std::uint64_t>& installs = numbers.installs;
  if (installs.empty() && !numbers.installed) return Status::Ok();
  if (!numbers.installed || installs.empty() || *installs.begin() != numbers.installed->first ||
      *installs.rbegin() != numbers.installed->last ||
      installs.size() - 1 != numbers.installed->last - numbers.installed->first) {
    return Status::Corruption("state: of an image of another peer's state a part is missing (" +
                              std::to_string(installs.size()) +
                              " batches are here); this peer needs the state of another one");
  }
  return Status::Ok();
}

Status ReplicatedState::Tables::LoadRecord(std::string_view key, std::string_view value,
                                           BatchNumbers* numbers) {
  if (key == kAppliedKey) {
    const Result<AppliedRecord> record = DecodeApplied(value);
    if (record.ok()) applied = record.value();
    return record.status();
  }
  if (key == kDelayLevelsKey) {
    delay_levels = std::string(value);
    return Status::Ok();
  }
  if (StartsWith(key, kFlushPrefix)) {
    const Result<std::uint64_t> number = ParseFlushKey(key);
    if (number.ok()) numbers->flushes.insert(*number);
    return number.status();
  }
  if (StartsWith(key, kInstallPrefix)) {
    const Result<std::uint64_t> number = ParseInstallKey(key);
    if (number.ok()) numbers->installs.insert(*number);
    return number.status();
  }
  if (key == kInstalledKey) {
    const Result<InstalledRecord> record = DecodeInstalled(value);
    if (record.ok()) numbers->installed = *record;
    return record.status();
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
    if (!topic.ok()) return topic.status();
    topics[topic.value().name] = topic.value();
    FollowDedupRule(topic.value().name);
    return Status::Ok();
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
    auto id = ParseDedupKey(key);
    if (!id.ok()) return id.status();
    const Result<DedupRecord> record = DecodeKey(value);
    if (!record.ok()) return record.status();
    // Topics come first. One without a rule has no keys: they went with it, in one batch.
    const auto found = dedup.find(id->first);
    if (found != dedup.end()) found->second.table->Load(std::move(id->second), *record);
    return Status::Ok();
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
