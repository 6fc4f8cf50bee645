#include "remoting/route_bodies.h"

#include <utility>

#include "remoting/body_codec.h"

namespace triad::remoting {
namespace {

// Always quoted keys, no white space: the Go client splits this text by hand (wire.md §1.6).
void WriteBrokerAddrs(const std::map<std::int64_t, std::string>& addrs, JsonWriter* writer) {
  writer->Key("brokerAddrs").BeginObject();
  for (const auto& [id, address] : addrs) writer->Key(std::to_string(id)).String(address);
  writer->EndObject();
}

std::map<std::int64_t, std::string> BrokerAddrsFrom(const Json& json) {
  return AsIntMap<std::int64_t, std::string>(json, [](const Json& v) { return v.AsString(); });
}

}  // namespace

std::string DataVersion::Encode() const {
  return EncodeBody(*this);
}
Result<DataVersion> DataVersion::Decode(std::string_view body) {
  return DecodeBody<DataVersion>("DataVersion", body);
}
void DataVersion::WriteTo(JsonWriter* writer) const {
  writer->BeginObject();
  writer->Key("counter").Int(counter);
  writer->Key("stateVersion").Int(state_version);
  writer->Key("timestamp").Int(timestamp_ms);
  writer->EndObject();
}
DataVersion DataVersion::From(const Json& json) {
  return {.counter = json["counter"].AsInt64(),
          .state_version = json["stateVersion"].AsInt64(),
          .timestamp_ms = json["timestamp"].AsInt64()};
}

void QueueData::WriteTo(JsonWriter* writer) const {
  writer->BeginObject();
  writer->Key("brokerName").String(broker_name);
  writer->Key("perm").Int(perm);
  writer->Key("readQueueNums").Int(read_queue_nums);
  writer->Key("topicSynFlag").Int(topic_sys_flag);
  writer->Key("topicSysFlag").Int(topic_sys_flag);
  writer->Key("writeQueueNums").Int(write_queue_nums);
  writer->EndObject();
}
QueueData QueueData::From(const Json& json) {
  const Json& flag = json[json.Has("topicSysFlag") ? "topicSysFlag" : "topicSynFlag"];
  return {.broker_name = json["brokerName"].AsString(),
          .read_queue_nums = AsInt32(json["readQueueNums"]),
          .write_queue_nums = AsInt32(json["writeQueueNums"]),
          .perm = AsInt32(json["perm"]),
          .topic_sys_flag = AsInt32(flag)};
}

void BrokerData::WriteTo(JsonWriter* writer) const {
  writer->BeginObject();
  WriteBrokerAddrs(broker_addrs, writer);
  writer->Key("brokerName").String(broker_name);
  writer->Key("cluster").String(cluster);
  writer->Key("enableActingMaster").Bool(enable_acting_master);
  writer->EndObject();
}
BrokerData BrokerData::From(const Json& json) {
  return {.broker_addrs = BrokerAddrsFrom(json["brokerAddrs"]),
          .broker_name = json["brokerName"].AsString(),
          .cluster = json["cluster"].AsString(),
          .enable_acting_master = json["enableActingMaster"].AsBool()};
}

std::string TopicRouteData::Encode() const {
  JsonWriter writer;
  writer.BeginObject();
  WriteList("brokerDatas", broker_datas, &writer);
  writer.Key("filterServerTable").BeginObject().EndObject();  // older clients call methods on it
  if (!order_topic_conf.empty()) writer.Key("orderTopicConf").String(order_topic_conf);
  WriteList("queueDatas", queue_datas, &writer);
  writer.EndObject();
  return writer.Take();
}
Result<TopicRouteData> TopicRouteData::Decode(std::string_view body) {
  const Result<Json> json = ParseBody("TopicRouteData", body);
  if (!json.ok()) return json.status();
  return TopicRouteData{.broker_datas = AsList<BrokerData>((*json)["brokerDatas"]),
                        .order_topic_conf = (*json)["orderTopicConf"].AsString(),
                        .queue_datas = AsList<QueueData>((*json)["queueDatas"])};
}

std::string ClusterInfo::Encode() const {
  JsonWriter writer;
  writer.BeginObject();
  writer.Key("brokerAddrTable").BeginObject();
  for (const auto& [name, data] : broker_addr_table) {
    writer.Key(name);
    data.WriteTo(&writer);
  }
  writer.EndObject();
  writer.Key("clusterAddrTable").BeginObject();
  for (const auto& [name, brokers] : cluster_addr_table) WriteStrings(name, brokers, &writer);
  writer.EndObject();
  writer.EndObject();
  return writer.Take();
}
Result<ClusterInfo> ClusterInfo::Decode(std::string_view body) {
  const Result<Json> json = ParseBody("ClusterInfo", body);
  if (!json.ok()) return json.status();
  ClusterInfo info;
  for (const Json::Member& member : (*json)["brokerAddrTable"].members()) {
    info.broker_addr_table[member.key] = BrokerData::From(member.value);
  }
  for (const Json::Member& member : (*json)["clusterAddrTable"].members()) {
    info.cluster_addr_table[member.key] = AsStrings(member.value);
  }
  return info;
}

std::string TopicList::Encode() const {
  JsonWriter writer;
  writer.BeginObject();
  if (!broker_addr.empty()) writer.Key("brokerAddr").String(broker_addr);
  WriteStrings("topicList", topic_list, &writer);
  writer.EndObject();
  return writer.Take();
}
Result<TopicList> TopicList::Decode(std::string_view body) {
  const Result<Json> json = ParseBody("TopicList", body);
  if (!json.ok()) return json.status();
  return TopicList{.topic_list = AsStrings((*json)["topicList"]),
                   .broker_addr = (*json)["brokerAddr"].AsString()};
}

std::string KVTable::Encode() const {
  JsonWriter writer;
  writer.BeginObject();
  WriteStringMap("table", table, &writer);
  writer.EndObject();
  return writer.Take();
}
Result<KVTable> KVTable::Decode(std::string_view body) {
  const Result<Json> json = ParseBody("KVTable", body);
  if (!json.ok()) return json.status();
  return KVTable{.table = AsStringMap((*json)["table"])};
}

std::string BrokerMemberGroup::Encode() const {
  JsonWriter writer;
  writer.BeginObject();
  writer.Key("brokerMemberGroup").BeginObject();
  WriteBrokerAddrs(broker_addrs, &writer);
  writer.Key("brokerName").String(broker_name);
  writer.Key("cluster").String(cluster);
  writer.EndObject();
  writer.EndObject();
  return writer.Take();
}
Result<BrokerMemberGroup> BrokerMemberGroup::Decode(std::string_view body) {
  const Result<Json> json = ParseBody("BrokerMemberGroup", body);
  if (!json.ok()) return json.status();
  const Json& group = (*json)["brokerMemberGroup"];
  return BrokerMemberGroup{.broker_addrs = BrokerAddrsFrom(group["brokerAddrs"]),
                           .broker_name = group["brokerName"].AsString(),
                           .cluster = group["cluster"].AsString()};
}

std::string TopicConfigBody::Encode() const {
  return EncodeBody(*this);
}
Result<TopicConfigBody> TopicConfigBody::Decode(std::string_view body) {
  return DecodeBody<TopicConfigBody>("TopicConfig", body);
}
void TopicConfigBody::WriteTo(JsonWriter* writer) const {
  writer->BeginObject();
  WriteStringMap("attributes", attributes, writer);
  writer->Key("order").Bool(order);
  writer->Key("perm").Int(perm);
  writer->Key("readQueueNums").Int(read_queue_nums);
  writer->Key("topicFilterType").String(multi_tag ? "MULTI_TAG" : "SINGLE_TAG");
  writer->Key("topicName").String(topic_name);
  writer->Key("topicSysFlag").Int(topic_sys_flag);
  writer->Key("writeQueueNums").Int(write_queue_nums);
  writer->EndObject();
}
TopicConfigBody TopicConfigBody::From(const Json& json) {
  TopicConfigBody config;
  config.attributes = AsStringMap(json["attributes"]);
  config.order = json["order"].AsBool(config.order);
  config.perm = AsInt32(json["perm"], config.perm);
  config.read_queue_nums = AsInt32(json["readQueueNums"], config.read_queue_nums);
  config.multi_tag = json["topicFilterType"].AsString() == "MULTI_TAG";
  config.topic_name = json["topicName"].AsString();
  config.topic_sys_flag = AsInt32(json["topicSysFlag"], config.topic_sys_flag);
  config.write_queue_nums = AsInt32(json["writeQueueNums"], config.write_queue_nums);
  return config;
}

std::string TopicConfigSerializeWrapper::Encode() const {
  return EncodeBody(*this);
}
Result<TopicConfigSerializeWrapper> TopicConfigSerializeWrapper::Decode(std::string_view body) {
  return DecodeBody<TopicConfigSerializeWrapper>("TopicConfigSerializeWrapper", body);
}
void TopicConfigSerializeWrapper::WriteTo(JsonWriter* writer) const {
  writer->BeginObject();
  writer->Key("dataVersion");
  data_version.WriteTo(writer);
  writer->Key("topicConfigTable").BeginObject();
  for (const auto& [name, config] : topic_config_table) {
    writer->Key(name);
    config.WriteTo(writer);
  }
  writer->EndObject();
  writer->EndObject();
}
TopicConfigSerializeWrapper TopicConfigSerializeWrapper::From(const Json& json) {
  TopicConfigSerializeWrapper wrapper;
  wrapper.data_version = DataVersion::From(json["dataVersion"]);
  for (const Json::Member& member : json["topicConfigTable"].members()) {
    TopicConfigBody config = TopicConfigBody::From(member.value);
    if (config.topic_name.empty()) config.topic_name = member.key;
    wrapper.topic_config_table[member.key] = std::move(config);
  }
  return wrapper;
}

}  // namespace triad::remoting
