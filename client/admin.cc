#include "triad/admin.h"

#include <algorithm>
#include <set>
#include <utility>

#include "client/admin_state.h"
#include "client/message_codec.h"
#include "remoting/bodies.h"
#include "remoting/codes.h"
#include "remoting/headers.h"

namespace triad::client {

namespace {

MessageQueue FromWire(const remoting::MessageQueue& queue) {
  return MessageQueue{queue.topic, queue.broker_name, queue.queue_id};
}

BrokerGroup GroupOf(const remoting::BrokerData& broker) {
  return BrokerGroup{broker.cluster, broker.broker_name, broker.broker_addrs};
}

std::string AttributesText(const std::map<std::string, std::string>& attributes) {
  std::string text;
  for (const auto& [name, value] : attributes) {
    if (!text.empty()) text += ',';
    text += (name.starts_with('+') || name.starts_with('-') ? "" : "+") + name;
    if (!value.empty()) text += "=" + value;
  }
  return text;
}

}  // namespace

Admin::Admin(ClientOptions options, std::chrono::milliseconds timeout)
    : state_(std::make_shared<State>(std::move(options), timeout)) {}
Admin::~Admin() {
  Shutdown();
}
Status Admin::Start() {
  return state_->Start();
}
void Admin::Shutdown() {
  state_->Shutdown();
}

Result<std::vector<BrokerGroup>> Admin::ClusterList() {
  const Result<remoting::ClusterInfo> info = state_->Cluster();
  if (!info.ok()) return info.status();
  std::vector<BrokerGroup> groups;
  for (const auto& [name, broker] : info->broker_addr_table) groups.push_back(GroupOf(broker));
  return groups;
}

Result<std::vector<std::string>> Admin::TopicList() {
  const Result<remoting::Command> answer = state_->AskNameServer(
      remoting::Command::Request(remoting::kGetAllTopicListFromNameServer), "list of topics");
  if (!answer.ok()) return answer.status();
  Result<remoting::TopicList> list = remoting::TopicList::Decode(answer->body);
  if (!list.ok()) return list.status();
  std::sort(list->topic_list.begin(), list->topic_list.end());
  return list->topic_list;
}

Result<TopicRoute> Admin::Route(const std::string& topic) {
  const Result<remoting::TopicRouteData> data = state_->RouteOf(topic);
  if (!data.ok()) return data.status();
  TopicRoute route;
  route.order_conf = data->order_topic_conf;
  for (const remoting::BrokerData& broker : data->broker_datas) {
    route.brokers.push_back(GroupOf(broker));
  }
  for (const remoting::QueueData& queue : data->queue_datas) {
    route.queues.push_back(QueueCounts{queue.broker_name, queue.read_queue_nums,
                                       queue.write_queue_nums, queue.perm, queue.topic_sys_flag});
  }
  return route;
}

Result<std::map<std::string, std::string>> Admin::RuntimeInfo(const std::string& address) {
  const Result<remoting::Command> answer = state_->AskBroker(
      address, remoting::Command::Request(remoting::kGetBrokerRuntimeInfo), "runtime information");
  if (!answer.ok()) return answer.status();
  const Result<remoting::KVTable> table = remoting::KVTable::Decode(answer->body);
  if (!table.ok()) return table.status();
  return table->table;
}

Result<Admin::Answer> Admin::Ask(const std::string& address, int code,
                                 const std::map<std::string, std::string>& fields,
                                 const std::string& body) {
  remoting::Command request = remoting::Command::Request(code);
  for (const auto& [name, value] : fields) request.ext.Set(name, value);
  request.body = body;
  Result<remoting::Command> answer = state_->Call(address, request);
  if (!answer.ok()) return answer.status();
  Answer out;
  out.code = answer->code;
  out.remark = std::move(answer->remark);
  for (const auto& [name, value] : answer->ext.items())
    out.fields[std::string(name)] = std::string(value);
  out.body = std::move(answer->body);
  return out;
}

Status Admin::UpdateTopic(const TopicSettings& topic, const std::string& cluster,
                          const std::string& broker_address) {
  TRIAD_RETURN_IF_ERROR(CheckName("topic", topic.name, 255));
  remoting::CreateTopicRequest header;
  header.topic = topic.name;
  header.default_topic = std::string(kTemplateTopic);
  header.read_queue_nums = topic.read_queues;
  header.write_queue_nums = topic.write_queues;
  header.perm = topic.perm;
  header.topic_filter_type = "SINGLE_TAG";
  header.topic_sys_flag = topic.sys_flag;
  header.order = topic.order;
  header.attributes = AttributesText(topic.attributes);
  remoting::Command request = remoting::Command::Request(remoting::kUpdateAndCreateTopic);
  header.Encode(&request.ext);
  return state_->Change(request, cluster, broker_address, "update of topic '" + topic.name + "'");
}

Status Admin::DeleteTopic(const std::string& topic, const std::string& cluster) {
  remoting::TopicRequest header;
  header.topic = topic;
  remoting::Command request = remoting::Command::Request(remoting::kDeleteTopicInBroker);
  header.Encode(&request.ext);
  const std::string what = "deletion of topic '" + topic + "'";
  TRIAD_RETURN_IF_ERROR(state_->Change(request, cluster, {}, what));
  remoting::DeleteTopicInNamesrvRequest name_server_header;
  name_server_header.topic = topic;
  name_server_header.cluster_name = cluster;
  remoting::Command forget = remoting::Command::Request(remoting::kDeleteTopicInNamesrv);
  name_server_header.Encode(&forget.ext);
  return state_->instance_->name_servers().CallAll(forget, state_->timeout_);
}

Status Admin::UpdateGroup(const GroupSettings& group, const std::string& cluster,
                          const std::string& broker_address) {
  TRIAD_RETURN_IF_ERROR(CheckName("group", group.name, kMaxGroupBytes));
  remoting::SubscriptionGroupConfigBody body;
  body.group_name = group.name;
  body.consume_enable = group.consume_enable;
  body.consume_from_min_enable = group.consume_from_min_enable;
  body.consume_broadcast_enable = group.consume_broadcast_enable;
  body.consume_message_orderly = group.consume_message_orderly;
  body.retry_queue_nums = group.retry_queue_nums;
  body.retry_max_times = group.retry_max_times;
  body.broker_id = group.broker_id;
  body.which_broker_when_consume_slowly = group.which_broker_when_consume_slowly;
  body.notify_consumer_ids_changed_enable = group.notify_consumer_ids_changed_enable;
  remoting::Command request =
      remoting::Command::Request(remoting::kUpdateAndCreateSubscriptionGroup);
  request.body = body.Encode();
  return state_->Change(request, cluster, broker_address, "update of group '" + group.name + "'");
}

Result<std::map<MessageQueue, QueueStats>> Admin::TopicStatus(const std::string& topic) {
  remoting::TopicRequest header;
  header.topic = topic;
  remoting::Command request = remoting::Command::Request(remoting::kGetTopicStatsInfo);
  header.Encode(&request.ext);
  std::map<MessageQueue, QueueStats> stats;
  const Status asked = state_->AskGroups(
      topic, request, "statistics of topic '" + topic + "'", [&](const remoting::Command& answer) {
        const auto table = remoting::TopicStatsTable::Decode(answer.body);
        if (!table.ok()) return table.status();
        for (const auto& [queue, item] : table->offset_table) {
          stats[FromWire(queue)] =
              QueueStats{item.min_offset, item.max_offset, item.last_update_timestamp_ms};
        }
        return Status::Ok();
      });
  if (!asked.ok()) return asked;
  return stats;
}

Result<std::map<MessageQueue, ConsumeProgress>> Admin::ConsumerProgress(const std::string& group,
                                                                        const std::string& topic) {
  std::map<MessageQueue, ConsumeProgress> progress;
  remoting::GetConsumeStatsRequest header;
  header.consumer_group = group;
  header.topic = topic;
  remoting::Command request = remoting::Command::Request(remoting::kGetConsumeStats);
  header.Encode(&request.ext);
  const std::string route_topic = topic.empty() ? std::string(kRetryPrefix) + group : topic;
  const Status asked =
      state_->AskGroups(route_topic, request, "progress of group '" + group + "'",
                        [&progress](const remoting::Command& answer) {
                          const auto stats = remoting::ConsumeStats::Decode(answer.body);
                          if (!stats.ok()) return stats.status();
                          for (const auto& [queue, item] : stats->offset_table) {
                            progress[FromWire(queue)] = ConsumeProgress{
                                item.broker_offset, item.consumer_offset, item.last_timestamp_ms};
                          }
                          return Status::Ok();
                        });
  if (!asked.ok()) return asked;
  return progress;
}

Result<std::vector<ClientConnection>> Admin::ConsumerConnections(const std::string& group) {
  remoting::ConsumerGroupRequest header;
  header.consumer_group = group;
  remoting::Command request = remoting::Command::Request(remoting::kGetConsumerConnectionList);
  header.Encode(&request.ext);
  std::vector<ClientConnection> connections;
  std::set<std::string> seen;
  const Status asked = state_->AskGroups(
      std::string(kRetryPrefix) + group, request, "connections of group '" + group + "'",
      [&](const remoting::Command& answer) {
        const auto body = remoting::ConsumerConnection::Decode(answer.body);
        if (!body.ok()) return body.status();
        for (const remoting::ConnectionInfo& info : body->connections) {
          if (!seen.insert(info.client_id).second) continue;
          connections.push_back(
              ClientConnection{info.client_id, info.client_addr, info.language, info.version});
        }
        return Status::Ok();
      });
  if (!asked.ok()) return asked;
  return connections;
}

Result<ReceivedMessage> Admin::ViewMessage(const std::string& offset_message_id) {
  const auto place = ParseOffsetMessageId(offset_message_id);
  if (!place.ok()) return place.status();
  remoting::ViewMessageRequest header;
  header.offset = place->second;
  remoting::Command request = remoting::Command::Request(remoting::kViewMessageById);
  header.Encode(&request.ext);
  const std::string what = "message " + offset_message_id;
  Result<remoting::Command> answer = state_->AskBroker(place->first, request, what);
  if (!answer.ok()) {
    if (answer.status().code() != StatusCode::kUnavailable) {
      return Status::NotFound(std::string(answer.status().message()));
    }
    // Its first home is gone; every peer of the group has the same log.
    const Result<remoting::ClusterInfo> info = state_->Cluster();
    if (!info.ok()) return info.status();
    for (const auto& [name, broker] : info->broker_addr_table) {
      answer = state_->calls_->Call(name, request, state_->timeout_);
      if (answer.ok() && answer->code == remoting::kSuccess) break;
    }
    if (!answer.ok()) return answer.status();
    if (answer->code != remoting::kSuccess) return Status::NotFound(what + ": " + answer->remark);
  }
  Result<std::vector<ReceivedMessage>> messages = DecodeMessages(answer->body, {});
  if (!messages.ok()) return messages.status();
  if (messages->empty()) return Status::NotFound(what + " is not there");
  return std::move(messages->front());
}

Result<std::map<MessageQueue, std::int64_t>> Admin::ResetOffsetByTime(const std::string& topic,
                                                                      const std::string& group,
                                                                      std::int64_t timestamp_ms,
                                                                      bool force) {
  remoting::ResetOffsetRequest header;
  header.topic = topic;
  header.group = group;
  header.timestamp_ms = timestamp_ms;
  header.is_force = force;
  remoting::Command request = remoting::Command::Request(remoting::kInvokeBrokerToResetOffset);
  header.Encode(&request.ext);
  std::map<MessageQueue, std::int64_t> offsets;
  const Status asked = state_->AskGroups(
      topic, request, "reset of group '" + group + "'", [&](const remoting::Command& answer) {
        const auto body = remoting::ResetOffsetBody::Decode(answer.body);
        if (!body.ok()) return body.status();
        for (const auto& [queue, offset] : body->offset_table) offsets[FromWire(queue)] = offset;
        return Status::Ok();
      });
  if (!asked.ok()) return asked;
  return offsets;
}

}  // namespace triad::client
