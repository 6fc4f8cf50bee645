#include "nameserver/route_json.h"

#include "remoting/json.h"

namespace triad::nameserver {
namespace {

void WriteBroker(const remoting::BrokerData& broker, remoting::JsonWriter* json) {
  json->BeginObject().Key("brokerAddrs").BeginObject();
  for (const auto& [id, address] : broker.broker_addrs) {
    json->RawKey(std::to_string(id)).String(address);
  }
  json->EndObject();
  json->Key("brokerName").String(broker.broker_name);
  json->Key("cluster").String(broker.cluster);
  json->Key("enableActingMaster").Bool(broker.enable_acting_master);
  json->EndObject();
}

std::string EncodeWithBareKeys(const remoting::TopicRouteData& route) {
  remoting::JsonWriter json;
  json.BeginObject().Key("brokerDatas").BeginArray();
  for (const remoting::BrokerData& broker : route.broker_datas) WriteBroker(broker, &json);
  json.EndArray().Key("filterServerTable").BeginObject().EndObject();
  if (!route.order_topic_conf.empty()) json.Key("orderTopicConf").String(route.order_topic_conf);
  json.Key("queueDatas").BeginArray();
  for (const remoting::QueueData& queues : route.queue_datas) queues.WriteTo(&json);
  json.EndArray().EndObject();
  return json.Take();
}

}  // namespace

std::string EncodeRoute(const remoting::TopicRouteData& route, KeyStyle style) {
  return style == KeyStyle::kQuoted ? route.Encode() : EncodeWithBareKeys(route);
}

}  // namespace triad::nameserver
