// BrokerParts: everything one broker process consists of, and who made it.
//
// Private to broker.cc (wiring), broker_duties.cc and broker_leave.cc. Threads: the one that calls
// Broker; callbacks say theirs.

#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "broker/broker.h"
#include "broker/process/banner.h"
#include "broker/processor/broker_context.h"
#include "broker/service/dedup_watch.h"
#include "broker/service/log_alarm.h"
#include "remoting/client.h"
#include "remoting/http_server.h"
#include "remoting/server.h"

namespace triad::broker {

class ClientProcessor;
class DelayService;
class Dispatcher;
class DlqProcessor;
class DynamicConfig;
class ForwardingGate;
class GroupProcessor;
class InfoProcessor;
class LockProcessor;
class LogComparison;
class LogReader;
class LogRepair;
class MetricsPage;
class OffsetCopyProcessor;
class OffsetProcessor;
class PlainSends;
class ProgressProcessor;
class PullProcessor;
class QueryProcessor;
class RelayProcessor;
class ReplicationProcessor;
class ReplicationStatus;
class ReplyProcessor;
class RuntimeInfo;
class SendBackProcessor;
class SendProcessor;
class StatsProcessor;
class StoreClaim;
class StrictWatch;
class TopicProcessor;

struct Broker::Parts {
  Parts(BrokerConfig c, BrokerOptions o, FileSystem& f, const Clock& k);
  ~Parts();

  // ---- broker.cc: wiring ----
  Status ChooseAddresses();
  Status OpenStore();
  void MakeServices();
  void MakeProcessors();
  Status Listen();
  void OnRequest(const remoting::ConnectionPtr& connection, remoting::Command command);
  void OnClosed(const remoting::ConnectionPtr& connection);
  Status ServeMetrics();

  // ---- broker_duties.cc: what comes by itself ----
  void OnLeaderChange(const dledger::LeaderInfo& info);
  void ProposeSystemState();
  void OpenDeadLetters();
  void NotifyMembers(const GroupName& group, const std::vector<Member>& members);
  void ScheduleHousekeeping();
  void Housekeep();
  void TellWhetherItLeads();

  // ---- broker_leave.cc ----
  std::size_t ClientConnections();
  bool HasOthers() const;
  Status TransferOnce();
  void HandOver();
  void WaitForClients();
  void Stop();

  BrokerConfig config;
  const BrokerOptions options;
  FileSystem& fs;
  const Clock& clock;
  BannerFacts facts;
  HostPort own_host;    // brokerIP1
  HostPort store_host;  // leaderIP when there is one: a message id must lead to who can answer

  std::unique_ptr<StoreClaim> claim;  // longer than the store
  // In order of construction; Stop ends their threads in the opposite order of use.
  std::unique_ptr<TimerQueue> timers;
  std::unique_ptr<remoting::Client> client;
  std::unique_ptr<ForwardingGate> gate;
  std::unique_ptr<ConsumerRegistry> consumers;
  std::unique_ptr<ProducerRegistry> producers;
  std::unique_ptr<MessageStore> store;
  std::unique_ptr<LeaderReads> reads;
  std::unique_ptr<OffsetService> offsets;
  std::unique_ptr<LockService> locks;
  std::unique_ptr<Registration> registration;
  std::unique_ptr<OtherGroups> other_groups;
  std::unique_ptr<StrictWatch> strict_watch;
  std::unique_ptr<LongPolling> long_polling;
  std::unique_ptr<DelayService> delays;
  std::unique_ptr<DiskGuard> disk;
  std::unique_ptr<PeerMembers> peer_members;
  Counters counters;
  std::unique_ptr<RuntimeInfo> info;
  std::unique_ptr<DynamicConfig> dynamic_config;
  LogAlarm log_alarm;
  std::unique_ptr<ReplicationStatus> replication;
  std::unique_ptr<LogReader> log_reader;
  std::unique_ptr<LogRepair> log_repair;
  std::unique_ptr<LogComparison> log_comparison;
  std::unique_ptr<BrokerContext> context;
  std::unique_ptr<Dispatcher> dispatcher;
  std::unique_ptr<ClientProcessor> client_processor;
  std::unique_ptr<DlqProcessor> dlq_processor;
  std::unique_ptr<GroupProcessor> group_processor;
  std::unique_ptr<InfoProcessor> info_processor;
  std::unique_ptr<LockProcessor> lock_processor;
  std::unique_ptr<OffsetCopyProcessor> offset_copy_processor;
  std::unique_ptr<OffsetProcessor> offset_processor;
  std::unique_ptr<ProgressProcessor> progress_processor;
  std::unique_ptr<PullProcessor> pull_processor;
  std::unique_ptr<QueryProcessor> query_processor;
  std::unique_ptr<RelayProcessor> relay_processor;
  std::unique_ptr<ReplyProcessor> reply_processor;
  std::unique_ptr<ReplicationProcessor> replication_processor;
  std::unique_ptr<SendBackProcessor> send_back_processor;
  std::unique_ptr<SendProcessor> send_processor;
  std::unique_ptr<PlainSends> plain_sends;
  std::unique_ptr<StatsProcessor> stats_processor;
  std::unique_ptr<TopicProcessor> topic_processor;
  std::unique_ptr<remoting::Server> server;
  std::unique_ptr<MetricsPage> metrics;                  // null: metricsExporterType=DISABLE
  std::unique_ptr<remoting::HttpServer> metrics_server;  // the same

  std::atomic<bool> leads{false};                // this peer serves as the leader
  std::atomic<bool> system_state_is_due{false};  // it was asked for in vain
  std::atomic<bool> wired{false};  // every service exists: the store's callbacks may use them
  int housekeepings = 0;
  DedupWatch dedup_watch;
  std::mutex mutex;
  std::set<std::uint64_t> peer_connections;  // those that forward to us
  bool stopped = false;
};

}  // namespace triad::broker
