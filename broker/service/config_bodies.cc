#include "broker/service/config_bodies.h"

namespace triad::broker {
namespace {}  // namespace

remoting::TopicConfigBody ToBody(const TopicConfig& topic) {
  remoting::TopicConfigBody body;
  body.attributes = topic.attributes;
  body.order = topic.order;
  body.perm = topic.perm;
  body.read_queue_nums = topic.read_queues;
  body.multi_tag = topic.multi_tag;
  body.topic_name = topic.name.value();
  body.topic_sys_flag = topic.sys_flag;
  body.write_queue_nums = topic.write_queues;
  return body;
}

TopicConfig FromBody(const remoting::TopicConfigBody& body) {
  TopicConfig topic;
  topic.name = Topic(body.topic_name);
  topic.read_queues = body.read_queue_nums;
  topic.write_queues = body.write_queue_nums;
  topic.perm = body.perm;
  topic.sys_flag = body.topic_sys_flag;
  topic.order = body.order;
  topic.multi_tag = body.multi_tag;
  topic.attributes = body.attributes;
  return topic;
}

remoting::SubscriptionGroupConfigBody ToBody(const GroupConfig& group) {
  remoting::SubscriptionGroupConfigBody body;
  body.attributes = group.attributes;
  body.broker_id = group.broker_id;
  body.consume_broadcast_enable = group.consume_broadcast_enable;
  body.consume_enable = group.consume_enable;
  body.consume_from_min_enable = group.consume_from_min_enable;
  body.consume_message_orderly = group.consume_message_orderly;
  body.consume_timeout_minute = group.consume_timeout_minute;
  body.group_name = group.name.value();
  body.group_retry_policy_json = group.group_retry_policy_json;
  body.group_sys_flag = group.group_sys_flag;
  body.notify_consumer_ids_changed_enable = group.notify_consumer_ids_changed_enable;
  body.retry_max_times = group.retry_max_times;
  body.retry_queue_nums = group.retry_queue_nums;
  body.which_broker_when_consume_slowly = group.which_broker_when_consume_slowly;
  return body;
}

GroupConfig FromBody(const remoting::SubscriptionGroupConfigBody& body) {
  GroupConfig group;
  group.name = GroupName(body.group_name);
  group.consume_enable = body.consume_enable;
  group.consume_from_min_enable = body.consume_from_min_enable;
  group.consume_broadcast_enable = body.consume_broadcast_enable;
  group.consume_message_orderly = body.consume_message_orderly;
  group.retry_queue_nums = body.retry_queue_nums;
  group.retry_max_times = body.retry_max_times;
  group.broker_id = body.broker_id;
  group.which_broker_when_consume_slowly = body.which_broker_when_consume_slowly;
  group.notify_consumer_ids_changed_enable = body.notify_consumer_ids_changed_enable;
  group.group_sys_flag = body.group_sys_flag;
  group.consume_timeout_minute = body.consume_timeout_minute;
  group.attributes = body.attributes;
  group.group_retry_policy_json = body.group_retry_policy_json;
  return group;
}

remoting::TopicConfigSerializeWrapper TopicTable(const ReplicatedState& state,
                                                 std::int64_t state_version,
                                                 std::int32_t broker_permission) {
  remoting::TopicConfigSerializeWrapper table;
  // The version first: a table newer than its version is repeated, an older one would be believed.
  const DataVersion version = state.data_version();
  table.data_version.counter = version.counter;
  table.data_version.timestamp_ms = version.timestamp_ms;
  table.data_version.state_version = state_version;
  // Name servers take a table only with another version: the permission is part of it.
  table.data_version.timestamp_ms += kPermReadWrite - broker_permission;
  const std::int32_t taken = kPermReadWrite & ~broker_permission;
  for (const TopicConfig& topic : state.Topics()) {
    remoting::TopicConfigBody body = ToBody(topic);
    body.perm &= ~taken;
    table.topic_config_table.emplace(body.topic_name, std::move(body));
  }
  return table;
}

}  // namespace triad::broker
