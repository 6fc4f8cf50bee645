#include <limits>

#include "broker/state/state.pb.h"
#include "broker/state/state_records.h"
#include "common/byte_order.h"

namespace triad::broker {
namespace {

std::string Serialize(const google::protobuf::Message& message) {
  std::string bytes;
  CHECK(message.SerializeToString(&bytes));
  return bytes;
}

template <typename Pb>
Result<Pb> Parse(std::string_view bytes) {
  Pb message;
  if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()) ||
      !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Status::Corruption("state: bytes do not parse as " + message.GetTypeName());
  }
  return message;
}

using Attributes = std::map<std::string, std::string>;
using PbAttributes = google::protobuf::RepeatedPtrField<pb::Attribute>;

// In key order: equal states are equal bytes.
void FillAttributes(const Attributes& attributes, PbAttributes* out) {
  for (const auto& [name, value] : attributes) {
    pb::Attribute* const added = out->Add();
    added->set_name(name);
    added->set_value(value);
  }
}

Attributes AttributesFrom(const PbAttributes& in) {
  Attributes attributes;
  for (const pb::Attribute& attribute : in) attributes[attribute.name()] = attribute.value();
  return attributes;
}

void FillTopic(const TopicConfig& topic, pb::TopicConfig* out) {
  out->set_name(topic.name.value());
  out->set_read_queues(topic.read_queues);
  out->set_write_queues(topic.write_queues);
  out->set_perm(topic.perm);
  out->set_sys_flag(topic.sys_flag);
  out->set_order(topic.order);
  out->set_multi_tag(topic.multi_tag);
  FillAttributes(topic.attributes, out->mutable_attributes());
  out->set_created_position(topic.created_position.value());
}

TopicConfig TopicFrom(const pb::TopicConfig& in) {
  TopicConfig topic;
  topic.name = Topic(in.name());
  topic.read_queues = in.read_queues();
  topic.write_queues = in.write_queues();
  topic.perm = in.perm();
  topic.sys_flag = in.sys_flag();
  topic.order = in.order();
  topic.multi_tag = in.multi_tag();
  topic.attributes = AttributesFrom(in.attributes());
  topic.created_position = PhysicalOffset{in.created_position()};
  return topic;
}

void FillGroup(const GroupConfig& group, pb::GroupConfig* out) {
  out->set_name(group.name.value());
  out->set_consume_enable(group.consume_enable);
  out->set_consume_from_min_enable(group.consume_from_min_enable);
  out->set_consume_broadcast_enable(group.consume_broadcast_enable);
  out->set_consume_message_orderly(group.consume_message_orderly);
  out->set_retry_queue_nums(group.retry_queue_nums);
  out->set_retry_max_times(group.retry_max_times);
  out->set_broker_id(group.broker_id);
  out->set_which_broker_when_consume_slowly(group.which_broker_when_consume_slowly);
  out->set_notify_consumer_ids_changed_enable(group.notify_consumer_ids_changed_enable);
  out->set_group_sys_flag(group.group_sys_flag);
  out->set_consume_timeout_minute(group.consume_timeout_minute);
  FillAttributes(group.attributes, out->mutable_attributes());
  out->set_group_retry_policy_json(group.group_retry_policy_json);
}

GroupConfig GroupFrom(const pb::GroupConfig& in) {
  GroupConfig group;
  group.name = GroupName(in.name());
  group.consume_enable = in.consume_enable();
  group.consume_from_min_enable = in.consume_from_min_enable();
  group.consume_broadcast_enable = in.consume_broadcast_enable();
  group.consume_message_orderly = in.consume_message_orderly();
  group.retry_queue_nums = in.retry_queue_nums();
  group.retry_max_times = in.retry_max_times();
  group.broker_id = in.broker_id();
  group.which_broker_when_consume_slowly = in.which_broker_when_consume_slowly();
  group.notify_consumer_ids_changed_enable = in.notify_consumer_ids_changed_enable();
  group.group_sys_flag = in.group_sys_flag();
  group.consume_timeout_minute = in.consume_timeout_minute();
  group.attributes = AttributesFrom(in.attributes());
  group.group_retry_policy_json = in.group_retry_policy_json();
  return group;
}

void FillQueue(const TopicQueue& queue, pb::QueueKey* out) {
  out->set_topic(queue.topic.value());
  out->set_queue_id(queue.queue_id.value());
}

GroupQueue GroupQueueFrom(const std::string& group, const pb::QueueKey& queue) {
  return {GroupName(group), TopicQueue{Topic(queue.topic()), QueueId{queue.queue_id()}}};
}

void FillCommand(const StateCommand& command, pb::StateCommand* out) {
  for (const TopicConfig& topic : command.put_topics) FillTopic(topic, out->add_put_topics());
  out->set_create_only(command.create_only);
  for (const Topic& topic : command.delete_topics) out->add_delete_topics(topic.value());
  for (const GroupConfig& group : command.put_groups) FillGroup(group, out->add_put_groups());
  out->set_create_groups_only(command.create_groups_only);
  for (const GroupName& group : command.delete_groups) out->add_delete_groups(group.value());
  out->set_clean_offsets(command.clean_offsets);
  for (const OffsetCommit& commit : command.offsets) {
    pb::OffsetCommit* const added = out->add_offsets();
    added->set_group(commit.key.group.value());
    FillQueue(commit.key.queue, added->mutable_queue());
    added->set_offset(commit.offset.value());
    added->set_fence_token(commit.fence_token);
  }
  for (const LockOutcome& lock : command.locks) {
    pb::LockOutcome* const added = out->add_locks();
    added->set_group(lock.key.group.value());
    FillQueue(lock.key.queue, added->mutable_queue());
    added->set_client_id(lock.client.value());
    added->set_token(lock.token);
  }
  for (const auto& [level, next] : command.delays) {
    pb::DelayProgress* const added = out->add_delays();
    added->set_level(level);
    added->set_next_offset(next.value());
  }
  for (const auto& [group, offset] : command.send_backs) {
    pb::SendBackMark* const added = out->add_send_backs();
    added->set_group(group.value());
    added->set_physical_offset(offset.value());
  }
  out->set_set_delay_levels(command.set_delay_levels);
  for (const DlqMark& mark : command.dlq_marks) {
    pb::DlqMark* const added = out->add_dlq_marks();
    added->set_group(mark.group.value());
    added->set_queue_id(mark.queue_id.value());
    added->set_offset(mark.offset.value());
    added->set_min_offset(mark.min_offset.value());
  }
  FillAttributes(command.put_settings, out->mutable_put_settings());
}

}  // namespace

bool StateCommand::empty() const {
  return put_topics.empty() && delete_topics.empty() && put_groups.empty() &&
         delete_groups.empty() && offsets.empty() && locks.empty() && delays.empty() &&
         send_backs.empty() && set_delay_levels.empty() && dlq_marks.empty() &&
         put_settings.empty();
}

std::string EncodeStateCommand(const StateCommand& command) {
  if (command.empty()) return {};
  pb::StateCommand message;
  FillCommand(command, &message);
  return Serialize(message);
}

Result<StateCommand> DecodeStateCommand(std::string_view bytes) {
  const Result<pb::StateCommand> parsed = Parse<pb::StateCommand>(bytes);
  if (!parsed.ok()) return parsed.status();
  const pb::StateCommand& in = parsed.value();
  StateCommand command;
  for (const auto& topic : in.put_topics()) command.put_topics.push_back(TopicFrom(topic));
  command.create_only = in.create_only();
  for (const auto& topic : in.delete_topics()) command.delete_topics.emplace_back(topic);
  for (const auto& group : in.put_groups()) command.put_groups.push_back(GroupFrom(group));
  command.create_groups_only = in.create_groups_only();
  for (const auto& group : in.delete_groups()) command.delete_groups.emplace_back(group);
  command.clean_offsets = in.clean_offsets();
  for (const auto& commit : in.offsets()) {
    command.offsets.push_back({GroupQueueFrom(commit.group(), commit.queue()),
                               QueueOffset{commit.offset()}, commit.fence_token()});
  }
  for (const auto& lock : in.locks()) {
    command.locks.push_back(
        {GroupQueueFrom(lock.group(), lock.queue()), ClientId(lock.client_id()), lock.token()});
  }
  for (const auto& delay : in.delays()) {
    command.delays.emplace_back(delay.level(), QueueOffset{delay.next_offset()});
  }
  for (const auto& mark : in.send_backs()) {
    command.send_backs.emplace_back(GroupName(mark.group()),
                                    PhysicalOffset{mark.physical_offset()});
  }
  command.set_delay_levels = in.set_delay_levels();
  for (const auto& mark : in.dlq_marks()) {
    command.dlq_marks.push_back({GroupName(mark.group()), QueueId{mark.queue_id()},
                                 QueueOffset{mark.offset()}, QueueOffset{mark.min_offset()}});
  }
  command.put_settings = AttributesFrom(in.put_settings());
  return command;
}

std::string EncodeTopic(const TopicConfig& topic) {
  pb::TopicConfig message;
  FillTopic(topic, &message);
  return Serialize(message);
}

Result<TopicConfig> DecodeTopic(std::string_view bytes) {
  const Result<pb::TopicConfig> parsed = Parse<pb::TopicConfig>(bytes);
  if (!parsed.ok()) return parsed.status();
  return TopicFrom(parsed.value());
}

std::string EncodeGroup(const GroupConfig& group) {
  pb::GroupConfig message;
  FillGroup(group, &message);
  return Serialize(message);
}

Result<GroupConfig> DecodeGroup(std::string_view bytes) {
  const Result<pb::GroupConfig> parsed = Parse<pb::GroupConfig>(bytes);
  if (!parsed.ok()) return parsed.status();
  return GroupFrom(parsed.value());
}

std::string EncodeApplied(const AppliedRecord& record) {
  pb::AppliedRecord message;
  message.set_index(record.index.value());
  message.set_term(record.term.value());
  message.set_position(record.end_position.value());
  message.set_store_time_ms(record.store_time_ms);
  message.set_flush_number(record.flush_number);
  message.set_data_version_counter(record.data_version.counter);
  message.set_data_version_timestamp(record.data_version.timestamp_ms);
  message.set_next_fence_token(record.next_fence_token);
  return Serialize(message);
}

Result<AppliedRecord> DecodeApplied(std::string_view bytes) {
  const Result<pb::AppliedRecord> parsed = Parse<pb::AppliedRecord>(bytes);
  if (!parsed.ok()) return parsed.status();
  const pb::AppliedRecord& in = parsed.value();
  AppliedRecord record;
  record.index = LogIndex{in.index()};
  record.term = Term{in.term()};
  record.end_position = PhysicalOffset{in.position()};
  record.store_time_ms = in.store_time_ms();
  record.flush_number = in.flush_number();
  record.data_version = {in.data_version_counter(), in.data_version_timestamp()};
  record.next_fence_token = in.next_fence_token();
  return record;
}

std::string EncodeOffset(const OffsetRecord& record) {
  pb::OffsetRecord message;
  message.set_offset(record.offset.value());
  message.set_fence_token(record.fence_token);
  return Serialize(message);
}

Result<OffsetRecord> DecodeOffset(std::string_view bytes) {
  const Result<pb::OffsetRecord> parsed = Parse<pb::OffsetRecord>(bytes);
  if (!parsed.ok()) return parsed.status();
  return OffsetRecord{QueueOffset{parsed.value().offset()}, parsed.value().fence_token()};
}

std::string EncodeLock(const LockRecord& record) {
  pb::LockRecord message;
  message.set_client_id(record.client.value());
  message.set_token(record.token);
  return Serialize(message);
}

Result<LockRecord> DecodeLock(std::string_view bytes) {
  const Result<pb::LockRecord> parsed = Parse<pb::LockRecord>(bytes);
  if (!parsed.ok()) return parsed.status();
  return LockRecord{ClientId(parsed.value().client_id()), parsed.value().token()};
}

std::string EncodeDlq(const DlqRecord& record) {
  pb::DlqRecord message;
  message.set_floor(record.floor.value());
  for (const QueueOffset offset : record.above) message.add_above(offset.value());
  return Serialize(message);
}

Result<DlqRecord> DecodeDlq(std::string_view bytes) {
  const Result<pb::DlqRecord> parsed = Parse<pb::DlqRecord>(bytes);
  if (!parsed.ok()) return parsed.status();
  DlqRecord record;
  record.floor = QueueOffset{parsed.value().floor()};
  for (const std::int64_t offset : parsed.value().above()) record.above.insert(QueueOffset{offset});
  return record;
}

std::string EncodeKey(const DedupRecord& record) {
  pb::DedupRecord message;
  message.set_queue_id(record.queue_id.value());
  message.set_queue_offset(record.queue_offset.value());
  message.set_physical_offset(record.physical_offset.value());
  message.set_store_time_ms(record.store_time_ms);
  return Serialize(message);
}

Result<DedupRecord> DecodeKey(std::string_view bytes) {
  const Result<pb::DedupRecord> parsed = Parse<pb::DedupRecord>(bytes);
  if (!parsed.ok()) return parsed.status();
  const pb::DedupRecord& in = parsed.value();
  return DedupRecord{QueueId{in.queue_id()}, QueueOffset{in.queue_offset()},
                     PhysicalOffset{in.physical_offset()}, in.store_time_ms()};
}

std::string EncodeInstalled(const InstalledRecord& record) {
  std::string bytes;
  AppendBe64(&bytes, record.first);
  AppendBe64(&bytes, record.last);
  return bytes;
}

Result<InstalledRecord> DecodeInstalled(std::string_view bytes) {
  if (bytes.size() != 16) return Status::Corruption("state: an install record is not 16 bytes");
  return InstalledRecord{.first = LoadBe64(bytes.data()), .last = LoadBe64(bytes.data() + 8)};
}

std::string EncodeInt64(std::int64_t value) {
  std::string bytes;
  AppendBe64(&bytes, static_cast<std::uint64_t>(value));
  return bytes;
}

Result<std::int64_t> DecodeInt64(std::string_view bytes) {
  if (bytes.size() != 8) return Status::Corruption("state: an integer record is not 8 bytes long");
  return static_cast<std::int64_t>(LoadBe64(bytes.data()));
}

}  // namespace triad::broker
