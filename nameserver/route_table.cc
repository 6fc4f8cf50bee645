// What the table answers, and the changes that administrators make.

#include "nameserver/route_table.h"

#include <algorithm>

namespace triad::nameserver {

using remoting::BrokerData;
using remoting::QueueData;

const remoting::DataVersion* RouteTable::VersionOf(const std::string& address) const {
  const auto live = live_.find(address);
  return live == live_.end() ? nullptr : &live->second.version;
}

const BrokerData* RouteTable::Broker(const std::string& broker_name) const {
  const auto found = brokers_.find(broker_name);
  return found == brokers_.end() ? nullptr : &found->second;
}

std::optional<remoting::TopicRouteData> RouteTable::Route(const std::string& topic) const {
  const auto found = topics_.find(topic);
  if (found == topics_.end()) return std::nullopt;
  remoting::TopicRouteData route;
  for (const auto& [broker_name, queues] : found->second) {
    route.queue_datas.push_back(queues);
    if (const BrokerData* broker = Broker(broker_name)) route.broker_datas.push_back(*broker);
  }
  if (route.broker_datas.empty()) return std::nullopt;
  return route;
}

Status RouteTable::SetQueues(const std::string& topic, const std::vector<QueueData>& queues) {
  for (const QueueData& queue : queues) {
    if (Broker(queue.broker_name) != nullptr) continue;
    return Status::InvalidArgument("broker " + queue.broker_name + " is not registered");
  }
  if (queues.empty()) return Status::Ok();
  if (!topics_.contains(topic) && topics_.size() >= limits_.topics) {
    return Status::Busy("too many topics");
  }
  for (const QueueData& queue : queues) topics_[topic][queue.broker_name] = queue;
  return Status::Ok();
}

void RouteTable::DeleteTopic(const std::string& topic, const std::string& cluster) {
  const auto found = topics_.find(topic);
  if (found == topics_.end()) return;
  if (cluster.empty()) {
    topics_.erase(found);
    return;
  }
  const auto members = clusters_.find(cluster);
  if (members == clusters_.end()) return;
  for (const std::string& broker_name : members->second) found->second.erase(broker_name);
  if (found->second.empty()) topics_.erase(found);
}

std::int32_t RouteTable::WipeWritePerm(const std::string& broker_name) {
  std::int32_t count = 0;
  for (auto& [topic, queues] : topics_) {
    const auto mine = queues.find(broker_name);
    if (mine == queues.end()) continue;
    mine->second.perm &= ~kPermWrite;
    ++count;
  }
  return count;
}

std::int32_t RouteTable::AddWritePerm(const std::string& broker_name) {
  std::int32_t count = 0;
  for (auto& [topic, queues] : topics_) {
    const auto mine = queues.find(broker_name);
    if (mine == queues.end()) continue;
    mine->second.perm = kPermReadWrite;
    ++count;
  }
  return count;
}

remoting::ClusterInfo RouteTable::Clusters() const {
  remoting::ClusterInfo info;
  info.broker_addr_table = brokers_;
  for (const auto& [cluster, names] : clusters_) {
    info.cluster_addr_table[cluster].assign(names.begin(), names.end());
  }
  return info;
}

std::vector<std::string> RouteTable::Topics() const {
  std::vector<std::string> list;
  for (const auto& topic : topics_) list.push_back(topic.first);
  return list;
}

std::vector<std::string> RouteTable::TopicsOfCluster(const std::string& cluster) const {
  const auto members = clusters_.find(cluster);
  std::vector<std::string> list;
  if (members == clusters_.end()) return list;
  for (const auto& [topic, queues] : topics_) {
    const bool inside = std::any_of(queues.begin(), queues.end(), [&members](const auto& queue) {
      return members->second.contains(queue.first);
    });
    if (inside) list.push_back(topic);
  }
  return list;
}

std::vector<std::string> RouteTable::TopicsByFlags(std::int32_t with, std::int32_t without) const {
  std::vector<std::string> list;
  for (const auto& [topic, queues] : topics_) {
    // A topic has the same flags on every broker; the first one answers for it.
    const std::int32_t flags = queues.begin()->second.topic_sys_flag;
    if ((flags & with) == with && (flags & without) == 0) list.push_back(topic);
  }
  return list;
}

remoting::TopicList RouteTable::SystemTopics() const {
  remoting::TopicList list;
  for (const auto& [cluster, names] : clusters_) {
    list.topic_list.push_back(cluster);
    list.topic_list.insert(list.topic_list.end(), names.begin(), names.end());
  }
  if (!brokers_.empty()) {
    list.broker_addr = brokers_.begin()->second.broker_addrs.begin()->second;
  }
  return list;
}

}  // namespace triad::nameserver
