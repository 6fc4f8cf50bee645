// RequestProcessor: what a NameServer answers to each request code (wire.md §3.1, admin.md §2.4).
//
// No socket and no clock: commands and `now` come in, answers go out.
// Threads: Process is safe on every thread. The one lock guards the route table and the
// configuration for the length of one look-up or change; bodies are decoded and encoded outside
// of it. Codes for which NeedsDisk is true wait for the disk and belong on one background thread.
// Bounds: RouteLimits, kMaxKvBytes.

#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/file_system.h"
#include "nameserver/kv_config.h"
#include "nameserver/name_server_config.h"
#include "nameserver/route_table.h"
#include "remoting/command.h"

namespace triad::nameserver {

class RequestProcessor {
 public:
  // `started_at` begins the waiting time of needWaitForService. `file_system` outlives this.
  RequestProcessor(NameServerConfig config, FileSystem& file_system, TimePoint started_at);

  // Reads the KV file. Errors: kCorruption, kIoError.
  Status Load();

  static bool NeedsDisk(std::int32_t code);

  // Always an answer, also for a oneway request (the caller drops it then).
  remoting::Command Process(const remoting::Command& request, ConnectionId connection,
                            TimePoint now);

  std::vector<RemovedBroker> ConnectionClosed(ConnectionId connection);
  std::vector<RemovedBroker> Expire(TimePoint now);
  std::chrono::milliseconds scan_interval() const;

 private:
  using Command = remoting::Command;

  // Brokers (broker_requests.cc).
  Command RegisterBroker(const Command& request, ConnectionId connection, TimePoint now);
  Command UnregisterBroker(const Command& request);
  Command BrokerHeartbeat(const Command& request, ConnectionId connection, TimePoint now);
  Command QueryDataVersion(const Command& request, ConnectionId connection, TimePoint now);
  Command GetBrokerMemberGroup(const Command& request);

  // Routes and topics (route_requests.cc).
  Command GetRoute(const Command& request, TimePoint now);
  Command GetClusterInfo(const Command& request);
  Command GetAllTopics(const Command& request);
  Command GetTopicsByCluster(const Command& request);
  Command GetSystemTopics(const Command& request);
  Command GetUnitTopics(const Command& request);
  Command DeleteTopic(const Command& request);
  Command RegisterTopic(const Command& request);
  Command WipeWritePerm(const Command& request);
  Command AddWritePerm(const Command& request);

  // Settings (setting_requests.cc).
  Command PutKv(const Command& request);
  Command GetKv(const Command& request);
  Command DeleteKv(const Command& request);
  Command ListKv(const Command& request);
  Command UpdateConfig(const Command& request);
  Command GetConfig(const Command& request);

  NameServerConfig config() const;  // a copy

  FileSystem& file_system_;
  const TimePoint started_at_;
  KvConfig kv_;
  mutable std::mutex mutex_;
  NameServerConfig config_;
  RouteTable routes_;
};

// The answer for a failed status: 1, or 2 when something bounded is full.
remoting::Command Failure(const remoting::Command& request, const Status& status);

}  // namespace triad::nameserver
