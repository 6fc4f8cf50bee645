#include "client/admin_state.h"

#include <utility>

#include "client/not_running.h"
#include "remoting/codes.h"
#include "remoting/headers.h"

namespace triad::client {

Status Admin::State::Start() {
  std::lock_guard hold(lifecycle_);
  if (running_) return Status::Ok();
  auto instance = ClientInstance::Attach(options_);
  if (!instance.ok()) return instance.status();
  instance_ = *instance;
  calls_ = std::make_unique<BrokerCalls>(instance_.get());
  running_ = true;
  return Status::Ok();
}

void Admin::State::Shutdown() {
  std::lock_guard hold(lifecycle_);
  if (running_.exchange(false)) instance_->Detach();
}

Result<remoting::Command> Admin::State::AskNameServer(remoting::Command request,
                                                      const std::string& what) {
  if (!running_) return NotRunning("admin client");
  Result<remoting::Command> answer =
      instance_->name_servers().CallSync(std::move(request), timeout_);
  if (!answer.ok()) return answer;
  TRIAD_RETURN_IF_ERROR(StatusOfCode(*answer, what));
  return answer;
}

Result<remoting::Command> Admin::State::Call(const std::string& address,
                                             const remoting::Command& request) {
  if (!running_) return NotRunning("admin client");
  return instance_->remoting().CallSync(address, request, timeout_);
}

Result<remoting::Command> Admin::State::AskBroker(const std::string& address,
                                                  const remoting::Command& request,
                                                  const std::string& what) {
  Result<remoting::Command> answer = Call(address, request);
  if (!answer.ok()) return answer;
  TRIAD_RETURN_IF_ERROR(StatusOfCode(*answer, what + " at " + address));
  return answer;
}

Result<remoting::ClusterInfo> Admin::State::Cluster() {
  const Result<remoting::Command> answer = AskNameServer(
      remoting::Command::Request(remoting::kGetBrokerClusterInfo), "cluster information");
  if (!answer.ok()) return answer.status();
  Result<remoting::ClusterInfo> info = remoting::ClusterInfo::Decode(answer->body);
  if (info.ok()) {
    remoting::TopicRouteData all;
    for (const auto& [name, broker] : info->broker_addr_table) all.broker_datas.push_back(broker);
    instance_->book().Update(all);
  }
  return info;
}

Result<remoting::TopicRouteData> Admin::State::RouteOf(const std::string& topic) {
  remoting::Command request = remoting::Command::Request(remoting::kGetRouteInfoByTopic);
  remoting::GetRouteInfoRequest header;
  header.topic = topic;
  header.accept_standard_json_only = true;
  header.Encode(&request.ext);
  const Result<remoting::Command> answer =
      AskNameServer(std::move(request), "route of topic '" + topic + "'");
  if (!answer.ok()) return answer.status();
  Result<remoting::TopicRouteData> route = remoting::TopicRouteData::Decode(answer->body);
  if (route.ok()) instance_->book().Update(*route);
  return route;
}

Status Admin::State::Change(const remoting::Command& request, const std::string& cluster,
                            const std::string& broker_address, const std::string& what) {
  if (!broker_address.empty()) return AskBroker(broker_address, request, what).status();
  const Result<remoting::ClusterInfo> info = Cluster();
  if (!info.ok()) return info.status();
  int groups = 0;
  for (const auto& [name, broker] : info->broker_addr_table) {
    if (!cluster.empty() && broker.cluster != cluster) continue;
    ++groups;
    const Result<remoting::Command> answer = calls_->Call(name, request, timeout_);
    if (!answer.ok()) return answer.status();
    TRIAD_RETURN_IF_ERROR(StatusOfCode(*answer, what + " at group " + name));
  }
  if (groups > 0) return Status::Ok();
  return Status::NotFound(cluster.empty() ? "no broker is registered"
                                          : "cluster '" + cluster + "' has no broker");
}

Status Admin::State::AskGroups(const std::string& topic, const remoting::Command& request,
                               const std::string& what,
                               const std::function<Status(const remoting::Command&)>& use) {
  const Result<remoting::TopicRouteData> route = RouteOf(topic);
  if (!route.ok()) return route.status();
  for (const remoting::BrokerData& broker : route->broker_datas) {
    const Result<remoting::Command> answer = calls_->Call(broker.broker_name, request, timeout_);
    if (!answer.ok()) return answer.status();
    TRIAD_RETURN_IF_ERROR(StatusOfCode(*answer, what + " at group " + broker.broker_name));
    TRIAD_RETURN_IF_ERROR(use(*answer));
  }
  return Status::Ok();
}

}  // namespace triad::client
