#include "broker/state/replicated_state.h"

#include <algorithm>
#include <limits>
#include <mutex>

#include "broker/state/replicated_state_tables.h"

namespace triad::broker {
namespace {

constexpr std::int64_t kSendBackMarkMs = 10 * 60 * 1000;
const std::string kDlqTopicPrefix = "%DLQ%";

TopicQueue FirstQueueOf(const Topic& topic) {
  return {topic, QueueId{std::numeric_limits<std::int32_t>::min()}};
}

}  // namespace

ReplicatedState::ReplicatedState(std::unique_ptr<StateStore> store, std::size_t dedup_keys_max,
                                 std::size_t install_batch_bytes)
    : tables_(std::make_unique<Tables>()) {
  CHECK(store != nullptr);
  CHECK_GT(dedup_keys_max, 0u);
  CHECK_GT(install_batch_bytes, 0u);
  tables_->dedup_keys_max = dedup_keys_max;
  tables_->install_batch_bytes = install_batch_bytes;
  tables_->store = std::move(store);
}

ReplicatedState::~ReplicatedState() = default;

// ---- Apply --------------------------------------------------------------------------------------

ReplicatedState::CommandResult ReplicatedState::Apply(const StateCommand& command,
                                                      const ApplyContext& context) {
  CommandResult result;
  Tables& tables = *tables_;
  const std::unique_lock hold(tables.mutex);
  CHECK_GT(context.index, tables.applied.index);
  tables.PutTopics(command, context, &result);
  tables.DeleteTopics(command, context, &result);
  if (!result.topics_changed.empty()) ++tables.topics_version;
  tables.PutGroups(command);
  tables.DeleteGroups(command);
  result.offsets.reserve(command.offsets.size());
  for (const OffsetCommit& commit : command.offsets) {
    result.offsets.push_back(tables.CommitOffset(commit));
  }
  result.locks_accepted.reserve(command.locks.size());
  for (const LockOutcome& outcome : command.locks) {
    result.locks_accepted.push_back(tables.ApplyLock(outcome));
  }
  for (const auto& [level, next] : command.delays) {
    tables.delays[level] = next;
    tables.dirty.delays.insert(level);
  }
  for (const SendBackId& mark : command.send_backs) {
    tables.send_backs[mark] = context.store_time_ms;
    tables.send_back_order.emplace_back(context.store_time_ms, mark);
    tables.dirty.send_backs.insert(mark);
  }
  if (!command.set_delay_levels.empty() && tables.delay_levels.empty()) {
    tables.delay_levels = command.set_delay_levels;
    tables.dirty.delay_levels = true;
  }
  for (const DlqMark& mark : command.dlq_marks) tables.MarkDlq(mark);
  tables.PutSettings(command.put_settings);
  return result;
}

void ReplicatedState::Tables::PutTopics(const StateCommand& command, const ApplyContext& context,
                                        CommandResult* result) {
  for (const TopicConfig& put : command.put_topics) {
    const auto found = topics.find(put.name);
    if (found != topics.end() && command.create_only) continue;
    TopicConfig next = put;
    next.created_position =
        found == topics.end() ? context.position : found->second.created_position;
    if (found != topics.end() && found->second == next) continue;
    topics[put.name] = std::move(next);
    FollowDedupRule(put.name);
    dirty.topics.insert(put.name);
    result->topics_changed.push_back(put.name.value());
    applied.data_version = {applied.data_version.counter + 1, context.store_time_ms};
  }
}

void ReplicatedState::Tables::DeleteTopics(const StateCommand& command, const ApplyContext& context,
                                           CommandResult* result) {
  for (const Topic& topic : command.delete_topics) {
    DropTopicData(topic);
    if (topics.erase(topic) == 0) continue;
    dirty.topics.insert(topic);
    result->topics_changed.push_back(topic.value());
    applied.data_version = {applied.data_version.counter + 1, context.store_time_ms};
  }
}

void ReplicatedState::Tables::DropTopicData(const Topic& topic) {
  for (auto group = offsets.begin(); group != offsets.end();) {
    auto& queues = group->second;
    for (auto it = queues.lower_bound(FirstQueueOf(topic));
         it != queues.end() && it->first.topic == topic; it = queues.erase(it)) {
      dirty.offsets.insert({group->first, it->first});
    }
    group = queues.empty() ? offsets.erase(group) : std::next(group);
  }
  std::erase_if(locks, [&](const auto& lock) {
    if (lock.first.queue.topic != topic) return false;
    dirty.locks.insert(lock.first);
    return true;
  });
  std::erase_if(next_offsets, [&](const auto& queue) {
    if (queue.first.topic != topic) return false;
    dirty.next_offsets.push_back(queue.first);
    return true;
  });
  std::erase_if(dlq, [&](const auto& queue) {
    if (topic.value() != kDlqTopicPrefix + queue.first.first.value()) return false;
    dirty.dlq.insert(queue.first);
    return true;
  });
  DropDedup(topic.value());
}

void ReplicatedState::Tables::MarkDlq(const DlqMark& mark) {
  if (!topics.contains(Topic(kDlqTopicPrefix + mark.group.value()))) return;
  const DlqQueue queue{mark.group, mark.queue_id};
  DlqRecord& record = dlq[queue];
  record.floor = std::max(record.floor, mark.min_offset);
  if (mark.offset >= record.floor) record.above.insert(mark.offset);
  record.above.erase(record.above.begin(), record.above.lower_bound(record.floor));
  while (record.above.erase(record.floor) != 0) ++record.floor;
  dirty.dlq.insert(queue);
}

void ReplicatedState::Tables::PutSettings(const Settings& put) {
  for (const auto& [name, value] : put) {
    settings[name] = value;
    dirty.settings.insert(name);
  }
}

void ReplicatedState::Tables::FollowDedupRule(const Topic& topic) {
  const DedupRule rule = DedupRuleOf(topics.at(topic).attributes);
  const auto found = dedup.find(topic.value());
  if (found != dedup.end() && found->second.rule.mode == rule.mode) {
    found->second.rule = rule;
    return;
  }
  DropDedup(topic.value());
  if (rule.mode == DedupMode::kNone) return;
  dedup[topic.value()] = {rule, std::make_unique<DedupTable>(dedup_keys_max)};
}

void ReplicatedState::Tables::DropDedup(const std::string& topic) {
  const auto found = dedup.find(topic);
  if (found == dedup.end()) return;
  found->second.table->Clear([&](const std::string& key) { dirty.keys.emplace_back(topic, key); });
  dedup.erase(found);
}

void ReplicatedState::Tables::ExpireKeys(std::int64_t now_ms) {
  for (auto& [topic, keys] : dedup) {
    keys.table->Expire(now_ms - keys.rule.window_ms, [&, &name = topic](const std::string& key) {
      dirty.keys.emplace_back(name, key);
    });
  }
}

void ReplicatedState::Tables::PutGroups(const StateCommand& command) {
  for (const GroupConfig& put : command.put_groups) {
    const auto found = groups.find(put.name);
    if (found != groups.end() && (command.create_groups_only || found->second == put)) continue;
    groups[put.name] = put;
    dirty.groups.insert(put.name);
  }
}

void ReplicatedState::Tables::DeleteGroups(const StateCommand& command) {
  for (const GroupName& group : command.delete_groups) {
    if (groups.erase(group) != 0) dirty.groups.insert(group);
    if (!command.clean_offsets) continue;
    const auto found = offsets.find(group);
    if (found != offsets.end()) {
      for (const auto& [queue, record] : found->second) dirty.offsets.insert({group, queue});
      offsets.erase(found);
    }
    std::erase_if(locks, [&](const auto& lock) {
      if (lock.first.group != group) return false;
      dirty.locks.insert(lock.first);
      return true;
    });
  }
}

ReplicatedState::CommitFate ReplicatedState::Tables::CommitOffset(const OffsetCommit& commit) {
  if (!topics.contains(commit.key.queue.topic)) return CommitFate::kNoTopic;
  if (commit.fence_token != 0) {
    const auto lock = locks.find(commit.key);
    if (lock != locks.end() && commit.fence_token < lock->second.token) {
      return CommitFate::kStale;
    }
  }
  offsets[commit.key.group][commit.key.queue] = {commit.offset, commit.fence_token};
  dirty.offsets.insert(commit.key);
  return CommitFate::kStored;
}

bool ReplicatedState::Tables::ApplyLock(const LockOutcome& outcome) {
  const auto found = locks.find(outcome.key);
  if (outcome.client.empty()) {
    if (found == locks.end() || found->second.token != outcome.token) return false;
    found->second.client = ClientId();  // the token stays: tokens only grow
  } else {
    if (!topics.contains(outcome.key.queue.topic)) return false;
    if (found != locks.end() && outcome.token <= found->second.token) return false;
    locks[outcome.key] = {outcome.client, outcome.token};
    applied.next_fence_token = std::max(applied.next_fence_token, outcome.token + 1);
  }
  dirty.locks.insert(outcome.key);
  return true;
}

void ReplicatedState::Tables::ExpireSendBacks(std::int64_t now_ms) {
  while (!send_back_order.empty() && send_back_order.front().first + kSendBackMarkMs <= now_ms) {
    const auto& [marked_at, id] = send_back_order.front();
    const auto found = send_backs.find(id);
    if (found != send_backs.end() && found->second == marked_at) {  // else marked again later
      send_backs.erase(found);
      dirty.send_backs.insert(id);
    }
    send_back_order.pop_front();
  }
}

void ReplicatedState::NoteMessage(const TopicQueue& queue, QueueOffset next) {
  Tables& tables = *tables_;
  const std::unique_lock hold(tables.mutex);
  Tables::NextOffset& entry = tables.next_offsets[queue];
  CHECK_GT(next, entry.next) << "queue offsets only grow: " << queue.topic << " " << queue.queue_id;
  entry.next = next;
  if (entry.dirty) return;
  entry.dirty = true;
  tables.dirty.next_offsets.push_back(queue);
}

bool ReplicatedState::has_dedup() const {
  return !tables_->dedup.empty();  // only this thread changes it
}

DedupMode ReplicatedState::DedupModeOf(std::string_view topic) const {
  const auto& dedup = tables_->dedup;
  const auto found = dedup.find(topic);
  return found == dedup.end() ? DedupMode::kNone : found->second.rule.mode;
}

void ReplicatedState::NoteKey(std::string_view topic, const std::string& key,
                              const DedupRecord& record) {
  Tables& tables = *tables_;
  const std::unique_lock hold(tables.mutex);
  const auto found = tables.dedup.find(topic);
  CHECK(found != tables.dedup.end()) << "a topic without a rule has no keys: " << topic;
  const auto note = [&](const std::string& changed) {
    tables.dirty.keys.emplace_back(found->first, changed);
  };
  found->second.table->Put(key, record, note);
  note(key);
}

void ReplicatedState::FinishEntry(const ApplyContext& context) {
  Tables& tables = *tables_;
  const std::unique_lock hold(tables.mutex);
  CHECK_EQ(context.index, tables.applied.index + 1) << "an entry was skipped or applied twice";
  CHECK_GE(context.store_time_ms, tables.applied.store_time_ms) << "log time went back";
  tables.applied.index = context.index;
  tables.applied.term = context.term;
  tables.applied.end_position = context.end_position;
  tables.applied.store_time_ms = context.store_time_ms;
  tables.ExpireSendBacks(context.store_time_ms);
  tables.ExpireKeys(context.store_time_ms);
}

// ---- Reads --------------------------------------------------------------------------------------

bool ReplicatedState::dirty() const {
  return tables_->applied.index != tables_->flushed_index;
}

std::optional<std::string> ReplicatedState::LoadedExtra(std::string_view key) const {
  const auto found = tables_->loaded_extras.find(key);
  if (found == tables_->loaded_extras.end()) return std::nullopt;
  return found->second;
}

LogIndex ReplicatedState::applied_index() const {
  const std::shared_lock hold(tables_->mutex);
  return tables_->applied.index;
}

LogIndex ReplicatedState::flushed_index() const {
  const std::shared_lock hold(tables_->mutex);
  return tables_->flushed_index;
}

PhysicalOffset ReplicatedState::applied_position() const {
  const std::shared_lock hold(tables_->mutex);
  return tables_->applied.end_position;
}

std::int64_t ReplicatedState::log_time_ms() const {
  const std::shared_lock hold(tables_->mutex);
  return tables_->applied.store_time_ms;
}

DataVersion ReplicatedState::data_version() const {
  const std::shared_lock hold(tables_->mutex);
  return tables_->applied.data_version;
}

std::uint64_t ReplicatedState::topics_version() const {
  return tables_->topics_version.load();
}

std::optional<TopicConfig> ReplicatedState::FindTopic(const Topic& topic) const {
  const std::shared_lock hold(tables_->mutex);
  const auto found = tables_->topics.find(topic);
  if (found == tables_->topics.end()) return std::nullopt;
  return found->second;
}

std::vector<TopicConfig> ReplicatedState::Topics() const {
  const std::shared_lock hold(tables_->mutex);
  std::vector<TopicConfig> all;
  all.reserve(tables_->topics.size());
  for (const auto& [name, topic] : tables_->topics) all.push_back(topic);
  return all;
}

std::optional<GroupConfig> ReplicatedState::FindGroup(const GroupName& group) const {
  const std::shared_lock hold(tables_->mutex);
  const auto found = tables_->groups.find(group);
  if (found == tables_->groups.end()) return std::nullopt;
  return found->second;
}

std::vector<GroupConfig> ReplicatedState::Groups() const {
  const std::shared_lock hold(tables_->mutex);
  std::vector<GroupConfig> all;
  all.reserve(tables_->groups.size());
  for (const auto& [name, group] : tables_->groups) all.push_back(group);
  return all;
}

std::optional<QueueOffset> ReplicatedState::FindOffset(const GroupQueue& key) const {
  const std::shared_lock hold(tables_->mutex);
  const auto group = tables_->offsets.find(key.group);
  if (group == tables_->offsets.end()) return std::nullopt;
  const auto found = group->second.find(key.queue);
  if (found == group->second.end()) return std::nullopt;
  return found->second.offset;
}

std::vector<std::pair<TopicQueue, QueueOffset>> ReplicatedState::OffsetsOf(
    const GroupName& group) const {
  const std::shared_lock hold(tables_->mutex);
  std::vector<std::pair<TopicQueue, QueueOffset>> all;
  const auto found = tables_->offsets.find(group);
  if (found == tables_->offsets.end()) return all;
  for (const auto& [queue, record] : found->second) all.emplace_back(queue, record.offset);
  return all;
}

std::vector<GroupName> ReplicatedState::GroupsWithOffsets(const Topic& topic) const {
  const std::shared_lock hold(tables_->mutex);
  std::vector<GroupName> names;
  for (const auto& [group, queues] : tables_->offsets) {
    const auto first = queues.lower_bound(FirstQueueOf(topic));
    if (first != queues.end() && first->first.topic == topic) names.push_back(group);
  }
  return names;
}

std::vector<ReplicatedState::Lock> ReplicatedState::Locks() const {
  const std::shared_lock hold(tables_->mutex);
  std::vector<Lock> all;
  all.reserve(tables_->locks.size());
  for (const auto& [key, record] : tables_->locks) {
    all.push_back({key, record.client, record.token});
  }
  return all;
}

std::uint64_t ReplicatedState::LockToken(const GroupQueue& key) const {
  const std::shared_lock hold(tables_->mutex);
  const auto found = tables_->locks.find(key);
  return found == tables_->locks.end() ? 0 : found->second.token;
}

std::uint64_t ReplicatedState::next_fence_token() const {
  const std::shared_lock hold(tables_->mutex);
  return tables_->applied.next_fence_token;
}

QueueOffset ReplicatedState::NextOffset(const TopicQueue& queue) const {
  const std::shared_lock hold(tables_->mutex);
  const auto found = tables_->next_offsets.find(queue);
  return found == tables_->next_offsets.end() ? QueueOffset{0} : found->second.next;
}

std::vector<std::pair<TopicQueue, QueueOffset>> ReplicatedState::NextOffsets() const {
  std::vector<std::pair<TopicQueue, QueueOffset>> all;
  {
    const std::shared_lock hold(tables_->mutex);
    all.reserve(tables_->next_offsets.size());
    for (const auto& [queue, entry] : tables_->next_offsets) all.emplace_back(queue, entry.next);
  }
  std::sort(all.begin(), all.end());
  return all;
}

QueueOffset ReplicatedState::DelayProgress(std::int32_t level) const {
  const std::shared_lock hold(tables_->mutex);
  const auto found = tables_->delays.find(level);
  return found == tables_->delays.end() ? QueueOffset{0} : found->second;
}

std::string ReplicatedState::delay_levels() const {
  const std::shared_lock hold(tables_->mutex);
  return tables_->delay_levels;
}

bool ReplicatedState::SentBack(const GroupName& group, PhysicalOffset offset) const {
  const std::shared_lock hold(tables_->mutex);
  return tables_->send_backs.contains({group, offset});
}

ReplicatedState::DlqProgress ReplicatedState::DlqProgressOf(const GroupName& group,
                                                            QueueId queue) const {
  const std::shared_lock hold(tables_->mutex);
  const auto found = tables_->dlq.find({group, queue});
  if (found == tables_->dlq.end()) return {};
  const DlqRecord& record = found->second;
  return {record.floor, {record.above.begin(), record.above.end()}};
}

bool ReplicatedState::DlqSettled(const GroupName& group, QueueId queue, QueueOffset offset) const {
  const std::shared_lock hold(tables_->mutex);
  const auto found = tables_->dlq.find({group, queue});
  if (found == tables_->dlq.end()) return false;
  return offset < found->second.floor || found->second.above.contains(offset);
}

std::optional<DedupRecord> ReplicatedState::FindDuplicate(const std::string& topic,
                                                          std::string_view key,
                                                          std::int64_t now_ms) const {
  const std::shared_lock hold(tables_->mutex);
  const auto found = tables_->dedup.find(topic);
  if (found == tables_->dedup.end()) return std::nullopt;
  const DedupRecord* record = found->second.table->Find(key);
  if (record == nullptr || record->store_time_ms + found->second.rule.window_ms <= now_ms) {
    return std::nullopt;
  }
  return *record;
}

std::vector<ReplicatedState::DedupUse> ReplicatedState::DedupUses() const {
  const std::shared_lock hold(tables_->mutex);
  std::vector<DedupUse> uses;
  for (const auto& [topic, keys] : tables_->dedup) {
    uses.push_back({topic, keys.table->size(), keys.table->evicted()});
  }
  return uses;
}

Settings ReplicatedState::settings() const {
  const std::shared_lock hold(tables_->mutex);
  return tables_->settings;
}

bool ReplicatedState::HoldsLock(const GroupName& group) const {
  const std::shared_lock hold(tables_->mutex);
  for (auto it = tables_->locks.lower_bound({group, TopicQueue{}});
       it != tables_->locks.end() && it->first.group == group; ++it) {
    if (!it->second.client.empty()) return true;
  }
  return false;
}

}  // namespace triad::broker
