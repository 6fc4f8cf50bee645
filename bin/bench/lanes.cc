#include "bin/bench/lanes.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "remoting/codes.h"
#include "remoting/headers.h"
#include "remoting/route_bodies.h"

namespace triad::bench {
namespace {

using remoting::Command;
using std::chrono::milliseconds;

constexpr milliseconds kTimeout{5000};
constexpr int kRouteTries = 200;
constexpr milliseconds kBetweenTries{50};

Result<Command> Ask(remoting::Client* client, const std::string& address, Command request) {
  Result<Command> answer = client->CallSync(address, std::move(request), kTimeout);
  if (!answer.ok()) {
    return Status::Unavailable(address + " does not answer: " + answer.status().ToString());
  }
  return answer;
}

Result<remoting::TopicRouteData> Route(remoting::Client* client, const std::string& namesrv,
                                       const std::string& topic) {
  Command request = Command::Request(remoting::kGetRouteInfoByTopic);
  request.ext.Set("topic", topic);
  Result<Command> answer = Ask(client, namesrv, std::move(request));
  if (!answer.ok()) return answer.status();
  if (answer->code != remoting::kSuccess)
    return Status::NotFound("no route for topic " + topic + ": " + answer->remark);
  return remoting::TopicRouteData::Decode(answer->body);
}

}  // namespace

Lanes::Lanes(const LaneOptions& options)
    : options_(options), client_(remoting::CreateClient({}, {})) {}

Lanes::~Lanes() {
  client_->Stop();
}

std::vector<std::string> Lanes::Topics() const {
  if (options_.topics == 1) return {options_.topic};
  std::vector<std::string> topics;
  for (int i = 0; i < options_.topics; ++i)
    topics.push_back(options_.topic + "-" + std::to_string(i));
  return topics;
}

Result<std::unique_ptr<Lanes>> Lanes::Find(const LaneOptions& options) {
  std::unique_ptr<Lanes> found(new Lanes(options));
  for (const std::string& topic : found->Topics()) {
    Status status = found->FindTopic(topic);
    if (status.code() == StatusCode::kNotFound && options.may_create) {
      TRIAD_RETURN_IF_ERROR(found->CreateTopic(topic));
      for (int i = 0; i < kRouteTries; ++i) {
        status = found->FindTopic(topic);
        if (status.ok()) break;
        std::this_thread::sleep_for(kBetweenTries);
      }
    }
    TRIAD_RETURN_IF_ERROR(status);
  }
  return found;
}

std::size_t Lanes::GroupOf(const std::string& broker_name) {
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    if (groups_[i].broker_name == broker_name) return i;
  }
  groups_.push_back({broker_name, "", {}});
  return groups_.size() - 1;
}

Status Lanes::FindTopic(const std::string& topic) {
  const Result<remoting::TopicRouteData> route = Route(client_.get(), options_.namesrv, topic);
  if (!route.ok()) return route.status();
  const std::size_t before = lanes_.size();
  for (const remoting::BrokerData& broker : route->broker_datas) {
    const auto leader = broker.broker_addrs.find(0);
    if (leader == broker.broker_addrs.end()) continue;
    const std::size_t group = GroupOf(broker.broker_name);
    groups_[group].leader = leader->second;
    groups_[group].all = broker.broker_addrs;
    for (const remoting::QueueData& queues : route->queue_datas) {
      if (queues.broker_name != broker.broker_name) continue;
      for (std::int32_t i = 0; i < queues.write_queue_nums; ++i)
        lanes_.push_back({topic, broker.broker_name, group, i});
    }
  }
  if (lanes_.size() > before) return Status::Ok();
  return Status::NotFound("topic " + topic + " has no queue with a leader in its route");
}

Status Lanes::CreateTopic(const std::string& topic) {
  Result<Command> cluster =
      Ask(client_.get(), options_.namesrv, Command::Request(remoting::kGetBrokerClusterInfo));
  if (!cluster.ok()) return cluster.status();
  const Result<remoting::ClusterInfo> info = remoting::ClusterInfo::Decode(cluster->body);
  if (!info.ok()) return info.status();
  int made = 0;
  for (const auto& [name, broker] : info->broker_addr_table) {
    const auto leader = broker.broker_addrs.find(0);
    if (leader == broker.broker_addrs.end()) continue;
    remoting::CreateTopicRequest header;
    header.topic = topic;
    header.default_topic = "TBW102";
    header.read_queue_nums = header.write_queue_nums = options_.queues;
    header.perm = 6;
    header.topic_filter_type = "SINGLE_TAG";
    Command request = Command::Request(remoting::kUpdateAndCreateTopic);
    header.Encode(&request.ext);
    const Result<Command> answer = Ask(client_.get(), leader->second, std::move(request));
    if (!answer.ok()) return answer.status();
    if (answer->code != remoting::kSuccess) {
      return Status::Unavailable("cannot create topic " + topic + " at " + leader->second + ": " +
                                 answer->remark);
    }
    ++made;
  }
  if (made > 0) return Status::Ok();
  return Status::Unavailable("no broker with a leader is registered at " + options_.namesrv);
}

void Lanes::Refresh() {
  for (const std::string& topic : Topics()) {
    const Result<remoting::TopicRouteData> route = Route(client_.get(), options_.namesrv, topic);
    if (!route.ok()) continue;
    for (const remoting::BrokerData& broker : route->broker_datas) {
      const auto leader = broker.broker_addrs.find(0);
      if (leader == broker.broker_addrs.end()) continue;
      for (BrokerGroupPlace& group : groups_) {
        if (group.broker_name != broker.broker_name) continue;
        group.leader = leader->second;
        for (const auto& [id, address] : broker.broker_addrs) group.all[id] = address;
      }
    }
    return;  // all topics live on the same groups
  }
}

Result<std::vector<std::int64_t>> Lanes::Ends() {
  std::vector<std::int64_t> ends;
  for (const Lane& lane : lanes_) {
    remoting::GetMaxOffsetRequest header;
    header.topic = lane.topic;
    header.queue_id = lane.queue;
    Command request = Command::Request(remoting::kGetMaxOffset);
    header.Encode(&request.ext);
    const std::string& leader = groups_[lane.group].leader;
    const Result<Command> answer = Ask(client_.get(), leader, std::move(request));
    if (!answer.ok()) return answer.status();
    const Result<remoting::OffsetResponse> end = remoting::OffsetResponse::Decode(answer->ext);
    if (answer->code != remoting::kSuccess || !end.ok()) {
      return Status::Unavailable(leader + " does not tell the end of queue " +
                                 std::to_string(lane.queue) + " of " + lane.topic + ": code " +
                                 std::to_string(answer->code) + " " + answer->remark);
    }
    ends.push_back(end->offset);
  }
  return ends;
}

std::vector<std::string> Lanes::AllAddresses() const {
  std::vector<std::string> addresses;
  for (const BrokerGroupPlace& group : groups_) {
    for (const auto& [id, address] : group.all) {
      if (std::find(addresses.begin(), addresses.end(), address) == addresses.end())
        addresses.push_back(address);
    }
  }
  return addresses;
}

}  // namespace triad::bench
