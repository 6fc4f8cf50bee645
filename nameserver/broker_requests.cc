// REGISTER_BROKER and its relatives: wire.md §3.2, §3.4.

#include <glog/logging.h>

#include <utility>

#include "common/java_crc32.h"
#include "nameserver/request_processor.h"
#include "remoting/codes.h"
#include "remoting/headers.h"
#include "remoting/route_bodies.h"

namespace triad::nameserver {

using remoting::Command;

namespace {

Result<remoting::RegisterBrokerBody> DecodeBody(const remoting::RegisterBrokerRequest& header,
                                                const Command& request) {
  if (header.body_crc32 != 0 &&
      JavaCrc32(request.body) != static_cast<std::uint32_t>(header.body_crc32)) {
    return Status::InvalidArgument("crc32 not match");
  }
  if (request.body.empty()) return remoting::RegisterBrokerBody{};
  if (header.compressed) {
    return remoting::RegisterBrokerBody::DecodeCompressed(request.body);
  }
  return remoting::RegisterBrokerBody::Decode(request.body);
}

void LogRegistration(const BrokerRegistration& r, const Status& status) {
  if (status.ok()) {
    VLOG(1) << "registered " << r.broker_name << " id " << r.broker_id << " at " << r.address;
    return;
  }
  LOG(WARNING) << "refused the registration of " << r.broker_name << " id " << r.broker_id << " at "
               << r.address << ": " << status.message();
}

}  // namespace

Command RequestProcessor::RegisterBroker(const Command& request, ConnectionId connection,
                                         TimePoint now) {
  const auto header = remoting::RegisterBrokerRequest::Decode(request.ext);
  if (!header.ok()) return Failure(request, header.status());
  Result<remoting::RegisterBrokerBody> body = DecodeBody(*header, request);
  if (!body.ok()) return Failure(request, body.status());

  const NameServerConfig settings = config();
  BrokerRegistration r{.cluster = header->cluster_name,
                       .broker_name = header->broker_name,
                       .address = header->broker_addr,
                       .ha_address = header->ha_server_addr,
                       .broker_id = header->broker_id,
                       .timeout = std::nullopt,
                       .enable_acting_master = header->enable_acting_master,
                       .version = body->topics.data_version,
                       .topics = std::move(body->topics.topic_config_table),
                       .delete_missing_topics = settings.delete_missing_topics,
                       .connection = connection};
  if (header->heartbeat_timeout_ms.value_or(0) > 0) {
    r.timeout = std::chrono::milliseconds(*header->heartbeat_timeout_ms);
  }
  const Result<RegistrationAnswer> answer = [&] {
    const std::lock_guard hold(mutex_);
    return routes_.Register(r, now);
  }();
  LogRegistration(r, answer.status());
  if (!answer.ok()) return Failure(request, answer.status());

  Command response = Command::ResponseTo(request, remoting::kSuccess);
  remoting::RegisterBrokerResponse reply;
  reply.ha_server_addr = answer->leader_ha_address;
  reply.master_addr = answer->leader_address;
  reply.Encode(&response.ext);
  if (settings.return_order_topic_config) {
    if (std::optional<KvTable> orders = kv_.List(kOrderTopicNamespace)) {
      remoting::KVTable table;
      table.table = std::move(*orders);
      response.body = table.Encode();
    }
  }
  return response;
}

Command RequestProcessor::UnregisterBroker(const Command& request) {
  const auto header = remoting::BrokerIdentityRequest::Decode(request.ext);
  if (!header.ok()) return Failure(request, header.status());
  {
    const std::lock_guard hold(mutex_);
    routes_.Unregister(header->broker_name, header->broker_addr);
  }
  LOG(INFO) << "unregistered " << header->broker_name << " at " << header->broker_addr;
  return Command::ResponseTo(request, remoting::kSuccess);
}

Command RequestProcessor::BrokerHeartbeat(const Command& request, ConnectionId connection,
                                          TimePoint now) {
  const auto header = remoting::BrokerHeartbeatRequest::Decode(request.ext);
  if (!header.ok()) return Failure(request, header.status());
  Command response = Command::ResponseTo(request, remoting::kSuccess);
  const std::lock_guard hold(mutex_);
  // 0 all the same, as the original: a stock broker registers every 30 s, ours does at this word.
  if (!routes_.Heartbeat(header->broker_addr, connection, now, header->epoch)) {
    response.ext.SetBool("registered", false);
  }
  return response;
}

Command RequestProcessor::QueryDataVersion(const Command& request, ConnectionId connection,
                                           TimePoint now) {
  const auto header = remoting::BrokerIdentityRequest::Decode(request.ext);
  if (!header.ok()) return Failure(request, header.status());
  const auto asked = remoting::DataVersion::Decode(request.body);
  if (!asked.ok()) return Failure(request, asked.status());

  std::optional<remoting::DataVersion> stored;
  {
    const std::lock_guard hold(mutex_);
    routes_.Heartbeat(header->broker_addr, connection, now);
    const remoting::DataVersion* version = routes_.VersionOf(header->broker_addr);
    if (version != nullptr) stored = *version;
  }
  Command response = Command::ResponseTo(request, remoting::kSuccess);
  remoting::QueryDataVersionResponse reply;
  reply.changed = !stored || !(*stored == *asked);
  reply.Encode(&response.ext);
  if (stored) response.body = stored->Encode();
  return response;
}

Command RequestProcessor::GetBrokerMemberGroup(const Command& request) {
  const auto header = remoting::GetBrokerMemberGroupRequest::Decode(request.ext);
  if (!header.ok()) return Failure(request, header.status());
  remoting::BrokerMemberGroup group;
  group.broker_name = header->broker_name;
  group.cluster = header->cluster_name;
  {
    const std::lock_guard hold(mutex_);
    const remoting::BrokerData* broker = routes_.Broker(header->broker_name);
    if (broker != nullptr) group.broker_addrs = broker->broker_addrs;
  }
  Command response = Command::ResponseTo(request, remoting::kSuccess);
  response.body = group.Encode();
  return response;
}

}  // namespace triad::nameserver
