#include "broker/broker.h"

#include <glog/logging.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "broker/broker_parts.h"
#include "broker/process/advertised_address.h"
#include "broker/process/banner.h"
#include "broker/process/machine.h"
#include "broker/process/store_claim.h"
#include "broker/processor/broker_context.h"
#include "broker/processor/client_processor.h"
#include "broker/processor/dispatcher.h"
#include "broker/processor/dlq_processor.h"
#include "broker/processor/forwarding_gate.h"
#include "broker/processor/group_processor.h"
#include "broker/processor/info_processor.h"
#include "broker/processor/lock_processor.h"
#include "broker/processor/names.h"
#include "broker/processor/offset_copy_processor.h"
#include "broker/processor/offset_processor.h"
#include "broker/processor/plain_sends.h"
#include "broker/processor/progress_processor.h"
#include "broker/processor/pull_processor.h"
#include "broker/processor/query_processor.h"
#include "broker/processor/relay_processor.h"
#include "broker/processor/replication_processor.h"
#include "broker/processor/reply_processor.h"
#include "broker/processor/send_back_processor.h"
#include "broker/processor/send_processor.h"
#include "broker/processor/stats_processor.h"
#include "broker/processor/topic_processor.h"
#include "broker/service/delay_service.h"
#include "broker/service/dynamic_config.h"
#include "broker/service/log_comparison.h"
#include "broker/service/long_polling.h"
#include "broker/service/metrics_page.h"
#include "broker/service/other_groups.h"
#include "broker/service/peer_members.h"
#include "broker/service/strict_topics.h"
#include "remoting/client.h"
#include "remoting/server.h"

namespace triad::broker {
namespace {

constexpr std::size_t kMembersMax = 200000;

std::size_t ConnectionThreads(const BrokerConfig& config) {
  if (config.connection_threads > 0) return static_cast<std::size_t>(config.connection_threads);
  return std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 4);
}

dledger::RetentionOptions RetentionOf(const BrokerConfig& config) {
  dledger::RetentionOptions retention;
  retention.age = std::chrono::hours(config.file_reserved_hours.get());
  const Result<std::vector<int>> hours = ParseHours(config.delete_when);
  if (hours.ok()) retention.hours = hours.value();  // the table has checked it
  retention.expired_percent = config.disk_max_used_percent;
  retention.forced_percent = config.clean_forcibly ? config.disk_forced_percent : 0;
  retention.held_percent = (config.disk_forced_percent + config.disk_warning_percent) / 2;
  retention.free_floor_bytes = static_cast<std::uint64_t>(config.disk_free_floor_bytes);
  retention.interval = config.clean_interval;
  return retention;
}

}  // namespace

Broker::Parts::Parts(BrokerConfig c, BrokerOptions o, FileSystem& f, const Clock& k)
    : config(std::move(c)), options(std::move(o)), fs(f), clock(k) {}

Broker::Parts::~Parts() = default;

Status Broker::Parts::ChooseAddresses() {
  if (config.broker_ip1.empty()) {
    const ChosenAddress chosen = ChooseAddress(ListInterfaces());
    config.broker_ip1 = chosen.address;
    facts = {chosen.how, chosen.candidates};
    LOG_IF(WARNING, chosen.fallback) << chosen.how << "; set brokerIP1";
  } else {
    facts = {"as brokerIP1 says", ""};
  }
  // Records carry an IP address, also when clients are told a name.
  auto ip = ResolveHost(config.broker_ip1);
  if (!ip.ok()) {
    return Status::InvalidArgument("brokerIP1: " + std::string(ip.status().message()));
  }
  const bool v6 = ip->find(':') != std::string::npos;
  auto host =
      ParseHostPort((v6 ? "[" + *ip + "]" : *ip) + ":" + std::to_string(config.listen_port));
  if (!host.ok()) return host.status();
  own_host = store_host = std::move(host.value());
  if (config.leader_ip.empty()) return Status::Ok();
  auto leader_host = ParseHostPort(config.LeaderAddress());
  if (!leader_host.ok()) return leader_host.status();
  store_host = std::move(leader_host.value());
  return Status::Ok();
}

Status Broker::Parts::OpenStore() {
  auto claimed = StoreClaim::Make(fs, config.store_root, config.dledger_group, config.self.value());
  if (!claimed.ok()) return claimed.status();
  claim = std::move(claimed.value());
  MessageStoreOptions o;
  o.root_dir = config.store_root;
  o.delay_levels = config.delay_levels;
  o.appender.store_host = store_host;
  o.appender.max_waiting = static_cast<std::size_t>(config.send_queue_capacity.get());
  o.node.group = config.dledger_group;
  o.node.self = config.self;
  o.node.preferred_leader = PeerId(config.preferred_leader_id);
  for (const GroupMember& member : config.members) {
    o.node.peers.push_back({member.id, member.host, member.port});
  }
  o.node.client_address = config.FullClientAddress();
  o.node.bind_address = config.bind_address;
  o.node.segment_bytes = static_cast<std::uint64_t>(config.segment_bytes);
  o.node.cache_bytes = static_cast<std::size_t>(config.cache_bytes);
  o.node.sync_flush = config.flush == FlushDiskType::kSyncFlush;
  o.node.heartbeat = config.raft_heartbeat;
  o.node.election_min = config.raft_election_timeout;
  o.node.election_max = config.raft_election_timeout * 2;
  o.node.bootstrap_without = options.bootstrap_without;
  o.node.retention = RetentionOf(config);
  o.node.snapshot_bytes_per_second = static_cast<std::uint64_t>(config.snapshot_bytes_per_second);
  if (options.world.adjust_store) options.world.adjust_store(&o);
  MessageStore::Listener listener;
  listener.on_arrival = [this](const TopicQueue& queue, QueueOffset max) {
    if (!wired) return;
    long_polling->OnArrival(queue, max);
    delays->OnArrival(queue);
  };
  listener.on_put = [this](const Topic& topic, std::int64_t messages, std::int64_t bytes) {
    if (!wired) return;
    context->stats->NotePut(topic, messages, bytes, leads);
    if (leads) counters.NoteStored(messages, bytes);
  };
  listener.on_topics_changed = [this] {
    if (wired) registration->OnTopicsChanged();
  };
  listener.on_settings = [this](const Settings& put) {
    if (wired) dynamic_config->Follow(put);
  };
  listener.on_leader_change = [this](const dledger::LeaderInfo& change) {
    if (wired) OnLeaderChange(change);
  };
  auto opened = MessageStore::Open(fs, clock, std::move(o), std::move(listener));
  if (!opened.ok()) return opened.status();
  store = std::move(opened.value());
  return Status::Ok();
}

void Broker::Parts::MakeServices() {
  reads = std::make_unique<LeaderReads>(store->node());
  OffsetService::Options offset_options;
  offset_options.interval = config.offset_commit_interval;
  offsets = std::make_unique<OffsetService>(offset_options, clock, *timers, store->appender(),
                                            store->state(), *reads);
  locks = std::make_unique<LockService>(clock, store->appender(), store->state(), *reads, *offsets);
  registration =
      std::make_unique<Registration>(config, clock, *timers, *client, store->state(), *reads);
  disk = std::make_unique<DiskGuard>(fs, config.store_root, config.disk_warning_percent,
                                     static_cast<std::uint64_t>(config.disk_free_floor_bytes));
  disk->Refresh();
  info = std::make_unique<RuntimeInfo>(config, clock, counters, *disk, log_alarm, *store);
  DynamicConfig::Effects effects;
  effects.on_permission = [this] { registration->OnTopicsChanged(); };
  effects.on_name_servers = [this](const std::string& list) { registration->SetNameServers(list); };
  effects.on_retention = [this](const BrokerConfig& changed) {
    store->node().SetRetention(RetentionOf(changed));
  };
  effects.on_send_queue = [this](std::int32_t capacity) {
    store->appender().SetWaitingMax(static_cast<std::size_t>(capacity));
  };
  dynamic_config = std::make_unique<DynamicConfig>(&config, fs, std::move(effects));
  dynamic_config->StartWith(store->state().settings());
  replication = std::make_unique<ReplicationStatus>(config, *disk, log_alarm, *store);
  log_reader = std::make_unique<LogReader>(*store, log_alarm);
  log_repair = std::make_unique<LogRepair>(*store, log_alarm, *client);
  log_comparison =
      std::make_unique<LogComparison>(config, *timers, *client, *store, *log_reader, log_alarm);
  consumers = std::make_unique<ConsumerRegistry>(
      kMembersMax, [this](const GroupName& group, const std::vector<Member>& members) {
        NotifyMembers(group, members);
      });
  producers = std::make_unique<ProducerRegistry>(kMembersMax);
  long_polling = std::make_unique<LongPolling>(*timers);
  delays = std::make_unique<DelayService>(clock, *timers, *store);
  context = std::make_unique<BrokerContext>(BrokerContext{
      config, clock, *store, *timers, *gate, *consumers, *producers, *reads, *offsets, *locks,
      *registration, *disk, counters, long_polling.get(), store_host, own_host});
  if (config.is_group()) {
    peer_members = std::make_unique<PeerMembers>(clock, store->node(), *client);
    context->peer_members = peer_members.get();
  }
  other_groups = std::make_unique<OtherGroups>(config.broker_name, *registration, *client);
  context->other_groups = other_groups.get();
  strict_watch =
      std::make_unique<StrictWatch>(config.broker_name, store->state(), *other_groups, counters);
  context->memory_bytes = MachineMemoryBytes();
}

void Broker::Parts::MakeProcessors() {
  dispatcher = std::make_unique<Dispatcher>(clock, *gate);
  // Makes one and registers its codes.
  const auto make = [this](auto* processor, auto&... more) {
    using Processor = typename std::remove_reference_t<decltype(*processor)>::element_type;
    *processor = std::make_unique<Processor>(*context, more...);
    (*processor)->Register(dispatcher.get());
  };
  const std::int64_t memory_bytes = MachineMemoryBytes();
  make(&client_processor);
  make(&dlq_processor);
  make(&group_processor);
  make(&info_processor, *dynamic_config, *info);
  make(&lock_processor);
  make(&offset_copy_processor);
  make(&offset_processor, memory_bytes);
  make(&progress_processor);
  make(&pull_processor);
  make(&query_processor);
  make(&relay_processor);
  make(&reply_processor);
  make(&replication_processor, *replication, *log_reader, *log_repair);
  make(&send_back_processor);
  make(&send_processor);
  make(&stats_processor, *context->stats);
  make(&topic_processor);
  plain_sends = std::make_unique<PlainSends>(*context, *dispatcher);
}

Status Broker::Parts::Listen() {
  remoting::ServerOptions o;
  o.bind_address = config.bind_address;
  o.ports = {static_cast<std::uint16_t>(config.listen_port),
             static_cast<std::uint16_t>(config.listen_port - 2)};
  o.threads = ConnectionThreads(config);
  o.max_connections = static_cast<std::size_t>(config.max_connections);
  // A request that was on its way when the time was up is still answered.
  o.idle_timeout = std::chrono::seconds(config.idle_seconds + 5);
  remoting::ServerHandler handler;
  handler.on_request = [this](const remoting::ConnectionPtr& connection,
                              remoting::Command command) {
    OnRequest(connection, std::move(command));
  };
  handler.before_requests = [this] { store->appender().BeginGather(); };
  handler.on_frame = [this](const remoting::ConnectionPtr& connection, std::string_view frame) {
    return plain_sends->Take(connection, frame);
  };
  handler.after_requests = [this] {
    plain_sends->Flush();
    store->appender().EndGather();
  };
  handler.on_closed = [this](const remoting::ConnectionPtr& connection) { OnClosed(connection); };
  const auto& make = options.world.make_server;
  server = make ? make(o, handler) : remoting::CreateServer(std::move(o), std::move(handler));
  const Status started = server->Start();
  return started.ok() ? started : ExplainListenError(config, started);
}

Status Broker::Parts::ServeMetrics() {
  if (config.metrics_exporter == MetricsExporter::kDisable) return Status::Ok();
  metrics = std::make_unique<MetricsPage>(MetricsSources{
      config, clock, *store, *consumers, *producers, *locks, *offsets, *long_polling, *disk,
      log_alarm, counters, *context->stats, [this] { return server->connection_count(); },
      [this](std::string_view topic) { return IsSystemTopic(config, topic); }});
  const auto page = [this](remoting::HttpServer::Answer answer) {
    metrics->Render([answer = std::move(answer)](Result<MetricsPage::Body> body) {
      remoting::HttpResponse response;
      if (body.ok()) {
        response.content_type = MetricsPage::kContentType;
        response.body = std::move(body).value();
      } else {
        response.status = 503;
        response.body = std::make_shared<const std::string>(std::string(body.status().message()));
      }
      answer(std::move(response));
    });
  };
  remoting::HttpServerOptions o;
  o.bind_address = config.metrics_host.empty() ? config.bind_address : config.metrics_host;
  o.port = static_cast<std::uint16_t>(config.metrics_port);
  metrics_server = remoting::CreateHttpServer(std::move(o), {{"/metrics", page}});
  const Status started = metrics_server->Start();
  return started.ok() ? started : ExplainMetricsError(config, started);
}

void Broker::Parts::OnRequest(const remoting::ConnectionPtr& connection,
                              remoting::Command command) {
  if (command.code == kForwardRequest) {
    const std::lock_guard lock(mutex);
    peer_connections.insert(connection->id());
  }
  dispatcher->OnRequest(connection, std::move(command));
}

void Broker::Parts::OnClosed(const remoting::ConnectionPtr& connection) {
  {
    const std::lock_guard lock(mutex);
    peer_connections.erase(connection->id());
  }
  consumers->OnConnectionClosed(connection);
  producers->OnConnectionClosed(connection);
  long_polling->OnConnectionClosed(connection->id());
}

Broker::Broker(BrokerConfig config, BrokerOptions options, FileSystem& fs, const Clock& clock)
    : parts_(std::make_unique<Parts>(std::move(config), std::move(options), fs, clock)) {}

Broker::~Broker() {
  Stop();
}

Status Broker::Start() {
  Parts& p = *parts_;
  TRIAD_RETURN_IF_ERROR(p.ChooseAddresses());
  const BrokerWorld& world = p.options.world;
  p.timers = world.make_timers ? world.make_timers() : std::make_unique<TimerQueue>();
  remoting::ClientHandler handler;
  handler.on_disconnect = [&p](const std::string& address) {
    if (p.wired) p.registration->OnDisconnect(address);
  };
  p.client = world.make_client ? world.make_client(handler)
                               : remoting::CreateClient({}, std::move(handler));
  ForwardingGate::Options gate_options;
  gate_options.self = p.config.self;
  p.gate = std::make_unique<ForwardingGate>(gate_options, p.clock, *p.timers, *p.client);
  TRIAD_RETURN_IF_ERROR(p.OpenStore());
  p.MakeServices();
  p.MakeProcessors();
  p.wired = true;
  // Listening before joining: a port in use must not cost the group an election.
  TRIAD_RETURN_IF_ERROR(p.Listen());
  TRIAD_RETURN_IF_ERROR(p.ServeMetrics());
  TRIAD_RETURN_IF_ERROR(p.store->Start());
  p.registration->Start();
  p.log_comparison->Start();
  p.ScheduleHousekeeping();
  return Status::Ok();
}

std::vector<std::string> Broker::Banner() const {
  return BannerLines(parts_->config, parts_->facts);
}

std::string Broker::BootLine() const {
  return BootLineOf(parts_->config);
}

void Broker::Leave() {
  parts_->HandOver();
  parts_->WaitForClients();
  Stop();
}

void Broker::Stop() {
  if (parts_->timers) parts_->Stop();
}

}  // namespace triad::broker
