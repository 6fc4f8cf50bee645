#include "remoting/admin_bodies.h"

#include "remoting/body_codec.h"

namespace triad::remoting {
namespace {

constexpr std::string_view kDefaultRetryPolicy = R"({"type":"CUSTOMIZED"})";

void WriteStatsItem(std::string_view key, const BrokerStatsItem& item, JsonWriter* writer) {
  writer->Key(key).BeginObject();
  writer->Key("avgpt").Double(item.average_time);
  writer->Key("sum").Int(item.sum);
  writer->Key("tps").Double(item.tps);
  writer->EndObject();
}

BrokerStatsItem StatsItemFrom(const Json& json) {
  return {.average_time = json["avgpt"].AsDouble(),
          .sum = json["sum"].AsInt64(),
          .tps = json["tps"].AsDouble()};
}

std::map<std::int32_t, std::int64_t> OffsetsFrom(const Json& json) {
  return AsIntMap<std::int32_t, std::int64_t>(json, [](const Json& v) { return v.AsInt64(); });
}

void WriteOffsets(const std::map<std::int32_t, std::int64_t>& offsets, JsonWriter* writer) {
  writer->BeginObject();
  for (const auto& [key, offset] : offsets) writer->Key(std::to_string(key)).Int(offset);
  writer->EndObject();
}

Status CheckGroup(const Json& group) {
  return CheckMembers("SubscriptionGroupConfig", group,
                      {{"brokerId", MemberKind::kInt64},
                       {"consumeBroadcastEnable", MemberKind::kFlag},
                       {"consumeEnable", MemberKind::kFlag},
                       {"consumeFromMinEnable", MemberKind::kFlag},
                       {"consumeMessageOrderly", MemberKind::kFlag},
                       {"consumeTimeoutMinute", MemberKind::kInt32},
                       {"groupSysFlag", MemberKind::kInt32},
                       {"notifyConsumerIdsChangedEnable", MemberKind::kFlag},
                       {"retryMaxTimes", MemberKind::kInt32},
                       {"retryQueueNums", MemberKind::kInt32},
                       {"whichBrokerWhenConsumeSlowly", MemberKind::kInt64}});
}

Status CheckTopic(const Json& topic) {
  return CheckMembers("TopicConfig", topic,
                      {{"order", MemberKind::kFlag},
                       {"perm", MemberKind::kInt32},
                       {"readQueueNums", MemberKind::kInt32},
                       {"topicSysFlag", MemberKind::kInt32},
                       {"writeQueueNums", MemberKind::kInt32}});
}

}  // namespace

std::string SubscriptionGroupConfigBody::Encode() const {
  return EncodeBody(*this);
}
Result<SubscriptionGroupConfigBody> SubscriptionGroupConfigBody::Decode(std::string_view body) {
  const Result<Json> json = ParseBody("SubscriptionGroupConfig", body);
  if (!json.ok()) return json.status();
  TRIAD_RETURN_IF_ERROR(CheckGroup(*json));
  return From(*json);
}
void SubscriptionGroupConfigBody::WriteTo(JsonWriter* writer) const {
  writer->BeginObject();
  WriteStringMap("attributes", attributes, writer);
  writer->Key("brokerId").Int(broker_id);
  writer->Key("consumeBroadcastEnable").Bool(consume_broadcast_enable);
  writer->Key("consumeEnable").Bool(consume_enable);
  writer->Key("consumeFromMinEnable").Bool(consume_from_min_enable);
  writer->Key("consumeMessageOrderly").Bool(consume_message_orderly);
  writer->Key("consumeTimeoutMinute").Int(consume_timeout_minute);
  writer->Key("groupName").String(group_name);
  writer->Key("groupRetryPolicy")
      .Raw(group_retry_policy_json.empty() ? kDefaultRetryPolicy : group_retry_policy_json);
  writer->Key("groupSysFlag").Int(group_sys_flag);
  writer->Key("notifyConsumerIdsChangedEnable").Bool(notify_consumer_ids_changed_enable);
  writer->Key("retryMaxTimes").Int(retry_max_times);
  writer->Key("retryQueueNums").Int(retry_queue_nums);
  writer->Key("whichBrokerWhenConsumeSlowly").Int(which_broker_when_consume_slowly);
  writer->EndObject();
}
SubscriptionGroupConfigBody SubscriptionGroupConfigBody::From(const Json& json) {
  SubscriptionGroupConfigBody out;
  const auto flag = [&json](std::string_view key, bool* value) {
    *value = json[key].AsBool(*value);
  };
  const auto number = [&json](std::string_view key, std::int32_t* value) {
    *value = AsInt32(json[key], *value);
  };
  out.attributes = AsStringMap(json["attributes"]);
  out.broker_id = json["brokerId"].AsInt64(out.broker_id);
  flag("consumeBroadcastEnable", &out.consume_broadcast_enable);
  flag("consumeEnable", &out.consume_enable);
  flag("consumeFromMinEnable", &out.consume_from_min_enable);
  flag("consumeMessageOrderly", &out.consume_message_orderly);
  number("consumeTimeoutMinute", &out.consume_timeout_minute);
  out.group_name = json["groupName"].AsString();
  if (json["groupRetryPolicy"].is_object()) {
    JsonWriter policy;
    json["groupRetryPolicy"].WriteTo(&policy);
    if (policy.text() != kDefaultRetryPolicy) out.group_retry_policy_json = policy.Take();
  }
  number("groupSysFlag", &out.group_sys_flag);
  flag("notifyConsumerIdsChangedEnable", &out.notify_consumer_ids_changed_enable);
  number("retryMaxTimes", &out.retry_max_times);
  number("retryQueueNums", &out.retry_queue_nums);
  out.which_broker_when_consume_slowly =
      json["whichBrokerWhenConsumeSlowly"].AsInt64(out.which_broker_when_consume_slowly);
  return out;
}

std::string SubscriptionGroupWrapper::Encode() const {
  JsonWriter writer;
  writer.BeginObject();
  writer.Key("dataVersion");
  data_version.WriteTo(&writer);
  writer.Key("forbiddenTable").BeginObject().EndObject();
  writer.Key("subscriptionGroupTable").BeginObject();
  for (const auto& [name, group] : groups) {
    writer.Key(name);
    group.WriteTo(&writer);
  }
  writer.EndObject();
  writer.EndObject();
  return writer.Take();
}
Result<SubscriptionGroupWrapper> SubscriptionGroupWrapper::Decode(std::string_view body) {
  const Result<Json> json = ParseBody("SubscriptionGroupWrapper", body);
  if (!json.ok()) return json.status();
  SubscriptionGroupWrapper out;
  out.data_version = DataVersion::From((*json)["dataVersion"]);
  for (const Json::Member& member : (*json)["subscriptionGroupTable"].members()) {
    out.groups[member.key] = SubscriptionGroupConfigBody::From(member.value);
  }
  return out;
}

std::string SubscriptionGroupList::Encode() const {
  JsonWriter writer;
  writer.BeginObject();
  WriteList("groupConfigList", groups, &writer);
  writer.EndObject();
  return writer.Take();
}
Result<SubscriptionGroupList> SubscriptionGroupList::Decode(std::string_view body) {
  const Result<Json> json = ParseBody("SubscriptionGroupList", body);
  if (!json.ok()) return json.status();
  TRIAD_RETURN_IF_ERROR(CheckObjects("SubscriptionGroupList", *json, "groupConfigList"));
  for (const Json& group : (*json)["groupConfigList"].items()) {
    TRIAD_RETURN_IF_ERROR(CheckGroup(group));
  }
  return SubscriptionGroupList{.groups =
                                   AsList<SubscriptionGroupConfigBody>((*json)["groupConfigList"])};
}

std::string TopicConfigList::Encode() const {
  JsonWriter writer;
  writer.BeginObject();
  WriteList("topicConfigList", topics, &writer);
  writer.EndObject();
  return writer.Take();
}
Result<TopicConfigList> TopicConfigList::Decode(std::string_view body) {
  const Result<Json> json = ParseBody("CreateTopicListRequestBody", body);
  if (!json.ok()) return json.status();
  TRIAD_RETURN_IF_ERROR(CheckObjects("CreateTopicListRequestBody", *json, "topicConfigList"));
  for (const Json& topic : (*json)["topicConfigList"].items()) {
    TRIAD_RETURN_IF_ERROR(CheckTopic(topic));
  }
  return TopicConfigList{.topics = AsList<TopicConfigBody>((*json)["topicConfigList"])};
}

std::string TopicStatsTable::Encode() const {
  JsonWriter writer;
  writer.BeginObject();
  WriteQueueMap("offsetTable", offset_table, &writer, [](const Item& item, JsonWriter* w) {
    w->BeginObject();
    w->Key("lastUpdateTimestamp").Int(item.last_update_timestamp_ms);
    w->Key("maxOffset").Int(item.max_offset);
    w->Key("minOffset").Int(item.min_offset);
    w->EndObject();
  });
  writer.Key("topicPutTps").Double(topic_put_tps);
  writer.EndObject();
  return writer.Take();
}
Result<TopicStatsTable> TopicStatsTable::Decode(std::string_view body) {
  const Result<Json> json = ParseBody("TopicStatsTable", body);
  if (!json.ok()) return json.status();
  TopicStatsTable out;
  out.offset_table = AsQueueMap<Item>((*json)["offsetTable"], [](const Json& v) {
    return Item{.last_update_timestamp_ms = v["lastUpdateTimestamp"].AsInt64(),
                .max_offset = v["maxOffset"].AsInt64(),
                .min_offset = v["minOffset"].AsInt64()};
  });
  out.topic_put_tps = (*json)["topicPutTps"].AsDouble();
  return out;
}

std::string ConsumeStats::Encode() const {
  JsonWriter writer;
  writer.BeginObject();
  writer.Key("consumeTps").Double(consume_tps);
  WriteQueueMap("offsetTable", offset_table, &writer, [](const Item& item, JsonWriter* w) {
    w->BeginObject();
    w->Key("brokerOffset").Int(item.broker_offset);
    w->Key("consumerOffset").Int(item.consumer_offset);
    w->Key("lastTimestamp").Int(item.last_timestamp_ms);
    w->Key("pullOffset").Int(item.pull_offset);
    w->EndObject();
  });
  writer.EndObject();
  return writer.Take();
}
Result<ConsumeStats> ConsumeStats::Decode(std::string_view body) {
  const Result<Json> json = ParseBody("ConsumeStats", body);
  if (!json.ok()) return json.status();
  ConsumeStats out;
  out.consume_tps = (*json)["consumeTps"].AsDouble();
  out.offset_table = AsQueueMap<Item>((*json)["offsetTable"], [](const Json& v) {
    return Item{.broker_offset = v["brokerOffset"].AsInt64(),
                .consumer_offset = v["consumerOffset"].AsInt64(),
                .last_timestamp_ms = v["lastTimestamp"].AsInt64(),
                .pull_offset = v["pullOffset"].AsInt64()};
  });
  return out;
}

std::string ResetOffsetBody::Encode() const {
  JsonWriter writer;
  writer.BeginObject();
  WriteQueueMap("offsetTable", offset_table, &writer,
                [](std::int64_t offset, JsonWriter* w) { w->Int(offset); });
  writer.EndObject();
  return writer.Take();
}
std::string ResetOffsetBody::EncodeForCpp() const {
  JsonWriter writer;
  writer.BeginObject();
  writer.Key("offsetTable").BeginArray();
  for (const auto& [queue, offset] : offset_table) {
    writer.BeginObject();
    writer.Key("brokerName").String(queue.broker_name);
    writer.Key("offset").Int(offset);
    writer.Key("queueId").Int(queue.queue_id);
    writer.Key("topic").String(queue.topic);
    writer.EndObject();
  }
  writer.EndArray();
  writer.EndObject();
  return writer.Take();
}
Result<ResetOffsetBody> ResetOffsetBody::Decode(std::string_view body) {
  const Result<Json> json = ParseBody("ResetOffsetBody", body);
  if (!json.ok()) return json.status();
  const Json& table = (*json)["offsetTable"];
  ResetOffsetBody out;
  out.offset_table =
      AsQueueMap<std::int64_t>(table, [](const Json& offset) { return offset.AsInt64(); });
  for (const Json& item : table.items()) {
    out.offset_table[MessageQueue::From(item)] = item["offset"].AsInt64();
  }
  return out;
}

std::string BrokerStatsData::Encode() const {
  JsonWriter writer;
  writer.BeginObject();
  WriteStatsItem("statsDay", day, &writer);
  WriteStatsItem("statsHour", hour, &writer);
  WriteStatsItem("statsMinute", minute, &writer);
  writer.EndObject();
  return writer.Take();
}
Result<BrokerStatsData> BrokerStatsData::Decode(std::string_view body) {
  const Result<Json> json = ParseBody("BrokerStatsData", body);
  if (!json.ok()) return json.status();
  return BrokerStatsData{.day = StatsItemFrom((*json)["statsDay"]),
                         .hour = StatsItemFrom((*json)["statsHour"]),
                         .minute = StatsItemFrom((*json)["statsMinute"])};
}

std::string ConsumerOffsetTable::Encode() const {
  JsonWriter writer;
  writer.BeginObject();
  writer.Key("offsetTable").BeginObject();
  for (const auto& [key, offsets] : offset_table) {
    writer.Key(key);
    WriteOffsets(offsets, &writer);
  }
  writer.EndObject();
  writer.EndObject();
  return writer.Take();
}
Result<ConsumerOffsetTable> ConsumerOffsetTable::Decode(std::string_view body) {
  const Result<Json> json = ParseBody("ConsumerOffsetTable", body);
  if (!json.ok()) return json.status();
  ConsumerOffsetTable out;
  for (const Json::Member& member : (*json)["offsetTable"].members()) {
    out.offset_table[member.key] = OffsetsFrom(member.value);
  }
  return out;
}

std::string DelayOffsetTable::Encode() const {
  JsonWriter writer;
  writer.BeginObject();
  writer.Key("offsetTable");
  WriteOffsets(offset_table, &writer);
  writer.EndObject();
  return writer.Take();
}
Result<DelayOffsetTable> DelayOffsetTable::Decode(std::string_view body) {
  const Result<Json> json = ParseBody("DelayOffsetTable", body);
  if (!json.ok()) return json.status();
  return DelayOffsetTable{.offset_table = OffsetsFrom((*json)["offsetTable"])};
}

}  // namespace triad::remoting
