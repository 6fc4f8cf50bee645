// Routes, topic lists and write permissions: wire.md §3.3, admin.md §2.4.

#include <glog/logging.h>

#include <utility>

#include "nameserver/request_processor.h"
#include "nameserver/route_json.h"
#include "remoting/codes.h"
#include "remoting/headers.h"
#include "remoting/route_bodies.h"

namespace triad::nameserver {

using remoting::Command;

namespace {

Command TopicListAnswer(const Command& request, std::vector<std::string> topics) {
  Command response = Command::ResponseTo(request, remoting::kSuccess);
  remoting::TopicList list;
  list.topic_list = std::move(topics);
  response.body = list.Encode();
  return response;
}

Command Disabled(const Command& request) {
  return Command::ResponseTo(request, remoting::kSystemError, "disable");
}

}  // namespace

Command RequestProcessor::GetRoute(const Command& request, TimePoint now) {
  const auto header = remoting::GetRouteInfoRequest::Decode(request.ext);
  if (!header.ok()) return Failure(request, header.status());

  std::optional<remoting::TopicRouteData> route;
  bool with_order = false;
  {
    const std::lock_guard hold(mutex_);
    if (config_.need_wait_for_service && now < started_at_ + config_.wait_for_service) {
      return Command::ResponseTo(request, remoting::kSystemError, "name server not ready");
    }
    route = routes_.Route(header->topic);
    with_order = config_.order_message_enable;
  }
  if (!route) {
    return Command::ResponseTo(
        request, remoting::kTopicNotExist,
        "No topic route info in name server for the topic: " + header->topic +
            "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details.");
  }
  if (with_order) {
    route->order_topic_conf = kv_.Get(kOrderTopicNamespace, header->topic).value_or("");
  }
  const bool standard =
      header->accept_standard_json_only || request.version >= kStandardJsonVersion;
  Command response = Command::ResponseTo(request, remoting::kSuccess);
  response.body = EncodeRoute(*route, standard ? KeyStyle::kQuoted : KeyStyle::kBare);
  return response;
}

Command RequestProcessor::GetClusterInfo(const Command& request) {
  const remoting::ClusterInfo info = [this] {
    const std::lock_guard hold(mutex_);
    return routes_.Clusters();
  }();
  Command response = Command::ResponseTo(request, remoting::kSuccess);
  response.body = info.Encode();
  return response;
}

Command RequestProcessor::GetAllTopics(const Command& request) {
  std::vector<std::string> topics;
  {
    const std::lock_guard hold(mutex_);
    if (!config_.enable_all_topic_list) return Disabled(request);
    topics = routes_.Topics();
  }
  return TopicListAnswer(request, std::move(topics));
}

Command RequestProcessor::GetTopicsByCluster(const Command& request) {
  const auto header = remoting::GetTopicsByClusterRequest::Decode(request.ext);
  if (!header.ok()) return Failure(request, header.status());
  std::vector<std::string> topics;
  {
    const std::lock_guard hold(mutex_);
    if (!config_.enable_topic_list) return Disabled(request);
    topics = routes_.TopicsOfCluster(header->cluster);
  }
  return TopicListAnswer(request, std::move(topics));
}

Command RequestProcessor::GetSystemTopics(const Command& request) {
  const remoting::TopicList list = [this] {
    const std::lock_guard hold(mutex_);
    return routes_.SystemTopics();
  }();
  Command response = Command::ResponseTo(request, remoting::kSuccess);
  response.body = list.Encode();
  return response;
}

Command RequestProcessor::GetUnitTopics(const Command& request) {
  const bool of_units = request.code == remoting::kGetUnitTopicList;
  const bool not_units = request.code == remoting::kGetHasUnitSubUnunitTopicList;
  std::vector<std::string> topics;
  {
    const std::lock_guard hold(mutex_);
    if (!config_.enable_topic_list) return Disabled(request);
    topics = routes_.TopicsByFlags(of_units ? kTopicFlagUnit : kTopicFlagUnitSub,
                                   not_units ? kTopicFlagUnit : 0);
  }
  return TopicListAnswer(request, std::move(topics));
}

Command RequestProcessor::DeleteTopic(const Command& request) {
  const auto header = remoting::DeleteTopicInNamesrvRequest::Decode(request.ext);
  if (!header.ok()) return Failure(request, header.status());
  {
    const std::lock_guard hold(mutex_);
    routes_.DeleteTopic(header->topic, header->cluster_name);
  }
  LOG(INFO) << "deleted topic " << header->topic << " of cluster "
            << (header->cluster_name.empty() ? "(all)" : header->cluster_name);
  return Command::ResponseTo(request, remoting::kSuccess);
}

Command RequestProcessor::RegisterTopic(const Command& request) {
  const Result<std::string> topic = request.ext.GetString("topic");
  if (!topic.ok()) return Failure(request, topic.status());
  const auto body = remoting::TopicRouteData::Decode(request.body);
  if (!body.ok()) return Failure(request, body.status());
  const Status status = [&] {
    const std::lock_guard hold(mutex_);
    return routes_.SetQueues(*topic, body->queue_datas);
  }();
  if (!status.ok()) return Failure(request, status);
  return Command::ResponseTo(request, remoting::kSuccess);
}

Command RequestProcessor::WipeWritePerm(const Command& request) {
  const auto header = remoting::BrokerNameRequest::Decode(request.ext);
  if (!header.ok()) return Failure(request, header.status());
  remoting::WipeWritePermResponse reply;
  {
    const std::lock_guard hold(mutex_);
    reply.wipe_topic_count = routes_.WipeWritePerm(header->broker_name);
  }
  LOG(INFO) << "wiped the write permission of " << header->broker_name << " on "
            << reply.wipe_topic_count << " topics";
  Command response = Command::ResponseTo(request, remoting::kSuccess);
  reply.Encode(&response.ext);
  return response;
}

Command RequestProcessor::AddWritePerm(const Command& request) {
  const auto header = remoting::BrokerNameRequest::Decode(request.ext);
  if (!header.ok()) return Failure(request, header.status());
  remoting::AddWritePermResponse reply;
  {
    const std::lock_guard hold(mutex_);
    reply.add_topic_count = routes_.AddWritePerm(header->broker_name);
  }
  LOG(INFO) << "gave " << header->broker_name << " the write permission back on "
            << reply.add_topic_count << " topics";
  Command response = Command::ResponseTo(request, remoting::kSuccess);
  reply.Encode(&response.ext);
  return response;
}

}  // namespace triad::nameserver
