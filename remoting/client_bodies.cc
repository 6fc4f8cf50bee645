#include "remoting/client_bodies.h"

#include <array>
#include <span>

#include "remoting/body_codec.h"

namespace triad::remoting {
namespace {

// The index is the ordinal.
constexpr std::array<std::string_view, 3> kConsumeTypes = {"CONSUME_ACTIVELY", "CONSUME_PASSIVELY",
                                                           "CONSUME_POP"};
constexpr std::array<std::string_view, 2> kMessageModels = {"BROADCASTING", "CLUSTERING"};
constexpr std::array<std::string_view, 6> kFromWheres = {
    "CONSUME_FROM_LAST_OFFSET",  "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
    "CONSUME_FROM_MIN_OFFSET",   "CONSUME_FROM_MAX_OFFSET",
    "CONSUME_FROM_FIRST_OFFSET", "CONSUME_FROM_TIMESTAMP"};

// By name or ordinal (a number, or a number as text); `fallback` when it is neither.
template <typename Enum>
Enum AsEnum(const Json& json, std::span<const std::string_view> names, Enum fallback) {
  const std::string text = json.AsString();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == text) return static_cast<Enum>(i);
  }
  const std::int64_t ordinal = json.AsInt64(-1);
  if (ordinal < 0 || ordinal >= static_cast<std::int64_t>(names.size())) return fallback;
  return static_cast<Enum>(ordinal);
}

void WriteConsumer(const ConsumerData& consumer, JsonWriter* writer) {
  writer->BeginObject();
  writer->Key("consumeFromWhere").String(ConsumeFromWhereName(consumer.consume_from_where));
  writer->Key("consumeType").String(ConsumeTypeName(consumer.consume_type));
  writer->Key("groupName").String(consumer.group_name);
  writer->Key("messageModel").String(MessageModelName(consumer.message_model));
  WriteList("subscriptionDataSet", consumer.subscriptions, writer);
  writer->Key("unitMode").Bool(consumer.unit_mode);
  writer->EndObject();
}

ConsumerData ConsumerFrom(const Json& json) {
  ConsumerData consumer;
  consumer.consume_from_where =
      AsEnum(json["consumeFromWhere"], kFromWheres, consumer.consume_from_where);
  consumer.consume_type = AsEnum(json["consumeType"], kConsumeTypes, consumer.consume_type);
  consumer.group_name = json["groupName"].AsString();
  consumer.message_model = AsEnum(json["messageModel"], kMessageModels, consumer.message_model);
  consumer.subscriptions = AsList<SubscriptionData>(json["subscriptionDataSet"]);
  consumer.unit_mode = json["unitMode"].AsBool();
  return consumer;
}

}  // namespace

std::string_view ConsumeTypeName(ConsumeType type) {
  return kConsumeTypes.at(static_cast<std::size_t>(type));
}
std::string_view MessageModelName(MessageModel model) {
  return kMessageModels.at(static_cast<std::size_t>(model));
}
std::string_view ConsumeFromWhereName(ConsumeFromWhere at) {
  return kFromWheres.at(static_cast<std::size_t>(at));
}

void MessageQueue::WriteTo(JsonWriter* writer) const {
  writer->BeginObject();
  writer->Key("brokerName").String(broker_name);
  writer->Key("queueId").Int(queue_id);
  writer->Key("topic").String(topic);
  writer->EndObject();
}
MessageQueue MessageQueue::From(const Json& json) {
  return {.topic = json["topic"].AsString(),
          .broker_name = json["brokerName"].AsString(),
          .queue_id = AsInt32(json["queueId"])};
}

void SubscriptionData::WriteTo(JsonWriter* writer) const {
  writer->BeginObject();
  writer->Key("classFilterMode").Bool(class_filter_mode);
  writer->Key("codeSet").BeginArray();
  for (const std::int32_t code : code_set) writer->Int(code);
  writer->EndArray();
  writer->Key("expressionType").String(expression_type);
  writer->Key("subString").String(sub_string);
  writer->Key("subVersion").Int(sub_version);
  WriteStrings("tagsSet", tags_set, writer);
  writer->Key("topic").String(topic);
  writer->EndObject();
}
SubscriptionData SubscriptionData::From(const Json& json) {
  SubscriptionData data;
  data.class_filter_mode = json["classFilterMode"].AsBool();
  for (const Json& code : json["codeSet"].items()) data.code_set.push_back(AsInt32(code));
  const std::string type = json["expressionType"].AsString();
  if (!type.empty()) data.expression_type = type;
  data.sub_string = json["subString"].AsString();
  data.sub_version = json["subVersion"].AsInt64();
  data.tags_set = AsStrings(json["tagsSet"]);
  data.topic = json["topic"].AsString();
  return data;
}

std::string HeartbeatData::Encode() const {
  JsonWriter writer;
  writer.BeginObject();
  writer.Key("clientID").String(client_id);
  writer.Key("consumerDataSet").BeginArray();
  for (const ConsumerData& consumer : consumers) WriteConsumer(consumer, &writer);
  writer.EndArray();
  writer.Key("heartbeatFingerprint").Int(heartbeat_fingerprint);
  writer.Key("producerDataSet").BeginArray();
  for (const std::string& group : producer_groups) {
    writer.BeginObject().Key("groupName").String(group).EndObject();
  }
  writer.EndArray();
  writer.Key("withoutSub").Bool(without_sub);
  writer.EndObject();
  return writer.Take();
}
Result<HeartbeatData> HeartbeatData::Decode(std::string_view body) {
  const Result<Json> parsed = ParseBody("HeartbeatData", body);
  if (!parsed.ok()) return parsed.status();
  const Json& json = *parsed;
  HeartbeatData data;
  data.client_id = json["clientID"].AsString();
  if (data.client_id.empty()) return Status::InvalidArgument("HeartbeatData: clientID is missing");
  TRIAD_RETURN_IF_ERROR(CheckMembers(
      "HeartbeatData", json,
      {{"consumerDataSet", MemberKind::kList}, {"producerDataSet", MemberKind::kList}}));
  for (const Json& item : json["consumerDataSet"].items()) {
    data.consumers.push_back(ConsumerFrom(item));
  }
  for (const Json& item : json["producerDataSet"].items()) {
    data.producer_groups.push_back(item["groupName"].AsString());
  }
  data.heartbeat_fingerprint = AsInt32(json["heartbeatFingerprint"]);
  data.without_sub = json["withoutSub"].AsBool();
  return data;
}

std::string CheckClientConfigBody::Encode() const {
  JsonWriter writer;
  writer.BeginObject();
  writer.Key("clientId").String(client_id);
  writer.Key("group").String(group);
  writer.Key("namespace").String(name_space);
  writer.Key("subscriptionData");
  subscription.WriteTo(&writer);
  writer.EndObject();
  return writer.Take();
}
Result<CheckClientConfigBody> CheckClientConfigBody::Decode(std::string_view body) {
  const Result<Json> json = ParseBody("CheckClientConfig", body);
  if (!json.ok()) return json.status();
  return CheckClientConfigBody{.client_id = (*json)["clientId"].AsString(),
                               .group = (*json)["group"].AsString(),
                               .name_space = (*json)["namespace"].AsString(),
                               .subscription = SubscriptionData::From((*json)["subscriptionData"])};
}

std::string LockBatchRequest::Encode() const {
  JsonWriter writer;
  writer.BeginObject();
  writer.Key("clientId").String(client_id);
  writer.Key("consumerGroup").String(consumer_group);
  WriteList("mqSet", queues, &writer);
  writer.Key("onlyThisBroker").Bool(only_this_broker);
  writer.EndObject();
  return writer.Take();
}
Result<LockBatchRequest> LockBatchRequest::Decode(std::string_view body) {
  const Result<Json> json = ParseBody("LockBatchRequestBody", body);
  if (!json.ok()) return json.status();
  TRIAD_RETURN_IF_ERROR(
      CheckMembers("LockBatchRequestBody", *json, {{"mqSet", MemberKind::kList}}));
  return LockBatchRequest{.client_id = (*json)["clientId"].AsString(),
                          .consumer_group = (*json)["consumerGroup"].AsString(),
                          .queues = AsList<MessageQueue>((*json)["mqSet"]),
                          .only_this_broker = (*json)["onlyThisBroker"].AsBool()};
}

std::string LockBatchResponse::Encode() const {
  JsonWriter writer;
  writer.BeginObject();
  WriteList("lockOKMQSet", locked, &writer);
  writer.EndObject();
  return writer.Take();
}
Result<LockBatchResponse> LockBatchResponse::Decode(std::string_view body) {
  const Result<Json> json = ParseBody("LockBatchResponseBody", body);
  if (!json.ok()) return json.status();
  return LockBatchResponse{.locked = AsList<MessageQueue>((*json)["lockOKMQSet"])};
}

std::string ConsumerIdList::Encode() const {
  JsonWriter writer;
  writer.BeginObject();
  WriteStrings("consumerIdList", ids, &writer);
  writer.EndObject();
  return writer.Take();
}
Result<ConsumerIdList> ConsumerIdList::Decode(std::string_view body) {
  const Result<Json> json = ParseBody("ConsumerIdList", body);
  if (!json.ok()) return json.status();
  return ConsumerIdList{.ids = AsStrings((*json)["consumerIdList"])};
}

std::string GroupList::Encode() const {
  JsonWriter writer;
  writer.BeginObject();
  WriteStrings("groupList", groups, &writer);
  writer.EndObject();
  return writer.Take();
}
Result<GroupList> GroupList::Decode(std::string_view body) {
  const Result<Json> json = ParseBody("GroupList", body);
  if (!json.ok()) return json.status();
  return GroupList{.groups = AsStrings((*json)["groupList"])};
}

void ConnectionInfo::WriteTo(JsonWriter* writer) const {
  writer->BeginObject();
  writer->Key("clientAddr").String(client_addr);
  writer->Key("clientId").String(client_id);
  writer->Key("language").String(language);
  writer->Key("version").Int(version);
  writer->EndObject();
}
ConnectionInfo ConnectionInfo::From(const Json& json) {
  return {.client_addr = json["clientAddr"].AsString(),
          .client_id = json["clientId"].AsString(),
          .language = json["language"].AsString(),
          .version = AsInt32(json["version"])};
}

std::string ConsumerConnection::Encode() const {
  JsonWriter writer;
  writer.BeginObject();
  WriteList("connectionSet", connections, &writer);
  writer.Key("consumeFromWhere").String(ConsumeFromWhereName(consume_from_where));
  writer.Key("consumeType").String(ConsumeTypeName(consume_type));
  writer.Key("messageModel").String(MessageModelName(message_model));
  writer.Key("subscriptionTable").BeginObject();
  for (const auto& [topic, subscription] : subscription_table) {
    writer.Key(topic);
    subscription.WriteTo(&writer);
  }
  writer.EndObject();
  writer.EndObject();
  return writer.Take();
}
Result<ConsumerConnection> ConsumerConnection::Decode(std::string_view body) {
  const Result<Json> parsed = ParseBody("ConsumerConnection", body);
  if (!parsed.ok()) return parsed.status();
  const Json& json = *parsed;
  ConsumerConnection out;
  out.connections = AsList<ConnectionInfo>(json["connectionSet"]);
  out.consume_from_where = AsEnum(json["consumeFromWhere"], kFromWheres, out.consume_from_where);
  out.consume_type = AsEnum(json["consumeType"], kConsumeTypes, out.consume_type);
  out.message_model = AsEnum(json["messageModel"], kMessageModels, out.message_model);
  for (const Json::Member& member : json["subscriptionTable"].members()) {
    out.subscription_table[member.key] = SubscriptionData::From(member.value);
  }
  return out;
}

std::string ProducerConnection::Encode() const {
  JsonWriter writer;
  writer.BeginObject();
  WriteList("connectionSet", connections, &writer);
  writer.EndObject();
  return writer.Take();
}
Result<ProducerConnection> ProducerConnection::Decode(std::string_view body) {
  const Result<Json> json = ParseBody("ProducerConnection", body);
  if (!json.ok()) return json.status();
  return ProducerConnection{.connections = AsList<ConnectionInfo>((*json)["connectionSet"])};
}

std::string QuerySubscriptionBody::Encode() const {
  JsonWriter writer;
  writer.BeginObject();
  writer.Key("group").String(group);
  if (known) {
    writer.Key("subscriptionData");
    subscription.WriteTo(&writer);
  }
  writer.Key("topic").String(topic);
  writer.EndObject();
  return writer.Take();
}
Result<QuerySubscriptionBody> QuerySubscriptionBody::Decode(std::string_view body) {
  const Result<Json> json = ParseBody("QuerySubscriptionResponseBody", body);
  if (!json.ok()) return json.status();
  QuerySubscriptionBody out;
  out.group = (*json)["group"].AsString();
  out.topic = (*json)["topic"].AsString();
  out.known = (*json)["subscriptionData"].is_object();
  if (out.known) out.subscription = SubscriptionData::From((*json)["subscriptionData"]);
  return out;
}

}  // namespace triad::remoting
