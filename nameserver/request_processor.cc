#include "nameserver/request_processor.h"

#include <utility>

#include "remoting/codes.h"

namespace triad::nameserver {

using remoting::Command;

RequestProcessor::RequestProcessor(NameServerConfig config, FileSystem& file_system,
                                   TimePoint started_at)
    : file_system_(file_system),
      started_at_(started_at),
      kv_(file_system, config.kv_config_path),
      config_(std::move(config)) {}

Status RequestProcessor::Load() {
  return kv_.Load();
}

bool RequestProcessor::NeedsDisk(std::int32_t code) {
  return code == remoting::kPutKvConfig || code == remoting::kDeleteKvConfig ||
         code == remoting::kUpdateNamesrvConfig;
}

NameServerConfig RequestProcessor::config() const {
  const std::lock_guard hold(mutex_);
  return config_;
}

std::chrono::milliseconds RequestProcessor::scan_interval() const {
  const std::lock_guard hold(mutex_);
  return config_.scan_interval;
}

std::vector<RemovedBroker> RequestProcessor::ConnectionClosed(ConnectionId connection) {
  const std::lock_guard hold(mutex_);
  return routes_.ConnectionClosed(connection);
}

std::vector<RemovedBroker> RequestProcessor::Expire(TimePoint now) {
  const std::lock_guard hold(mutex_);
  return routes_.Expire(now);
}

Command Failure(const Command& request, const Status& status) {
  const std::int32_t code =
      status.code() == StatusCode::kBusy ? remoting::kSystemBusy : remoting::kSystemError;
  return Command::ResponseTo(request, code, std::string(status.message()));
}

Command RequestProcessor::Process(const Command& request, ConnectionId connection, TimePoint now) {
  switch (request.code) {
    case remoting::kRegisterBroker: return RegisterBroker(request, connection, now);
    case remoting::kUnregisterBroker: return UnregisterBroker(request);
    case remoting::kBrokerHeartbeat: return BrokerHeartbeat(request, connection, now);
    case remoting::kQueryDataVersion: return QueryDataVersion(request, connection, now);
    case remoting::kGetBrokerMemberGroup: return GetBrokerMemberGroup(request);
    case remoting::kGetRouteInfoByTopic: return GetRoute(request, now);
    case remoting::kGetBrokerClusterInfo: return GetClusterInfo(request);
    case remoting::kGetAllTopicListFromNameServer: return GetAllTopics(request);
    case remoting::kGetTopicsByCluster: return GetTopicsByCluster(request);
    case remoting::kGetSystemTopicListFromNs: return GetSystemTopics(request);
    case remoting::kGetUnitTopicList:
    case remoting::kGetHasUnitSubTopicList:
    case remoting::kGetHasUnitSubUnunitTopicList: return GetUnitTopics(request);
    case remoting::kDeleteTopicInNamesrv: return DeleteTopic(request);
    case remoting::kRegisterTopicInNamesrv: return RegisterTopic(request);
    case remoting::kWipeWritePermOfBroker: return WipeWritePerm(request);
    case remoting::kAddWritePermOfBroker: return AddWritePerm(request);
    case remoting::kPutKvConfig: return PutKv(request);
    case remoting::kGetKvConfig: return GetKv(request);
    case remoting::kDeleteKvConfig: return DeleteKv(request);
    case remoting::kGetKvListByNamespace: return ListKv(request);
    case remoting::kUpdateNamesrvConfig: return UpdateConfig(request);
    case remoting::kGetNamesrvConfig: return GetConfig(request);
    default: break;
  }
  return Command::ResponseTo(request, remoting::kRequestCodeNotSupported,
                             " request type " + std::to_string(request.code) + " not supported");
}

}  // namespace triad::nameserver
