// The processors of one peer over a real store, without sockets: requests go in, answers come out.

#pragma once

#include <memory>
#include <string>
#include <utility>

#include "broker/processor/broker_context.h"
#include "broker/processor/client_processor.h"
#include "broker/processor/dispatcher.h"
#include "broker/processor/forwarding_gate.h"
#include "broker/processor/group_processor.h"
#include "broker/processor/info_processor.h"
#include "broker/processor/lock_processor.h"
#include "broker/processor/offset_copy_processor.h"
#include "broker/processor/offset_processor.h"
#include "broker/processor/progress_processor.h"
#include "broker/processor/relay_processor.h"
#include "broker/processor/reply_processor.h"
#include "broker/processor/stats_processor.h"
#include "broker/processor/system_state.h"
#include "broker/processor/topic_processor.h"
#include "remoting/client.h"
#include "tests/unit/broker/one_peer.h"

namespace triad::broker {

class OneBroker {
 public:
  static BrokerConfig DefaultConfig() {
    BrokerConfigSource source;
    source.file = "broker.conf";
    source.text = "brokerName=b0\nbrokerIP1=127.0.0.1\noffsetCommitIntervalMs=10\n";
    auto loaded = LoadBrokerConfig(source);
    CHECK(loaded.faults.empty()) << loaded.faults[0];
    return loaded.config;
  }

  explicit OneBroker(BrokerConfig config = DefaultConfig(), std::int64_t memory_bytes = 1LL << 34)
      : config_(std::move(config)),
        peer_(nullptr, [this](const Settings& put) { dynamic_config_.Follow(put); }),
        client_(remoting::CreateClient({}, {})),
        gate_({.self = PeerId("n0")}, SystemClock(), timers_, *client_),
        reads_(peer_.store().node()),
        offsets_(OffsetService::Options{.interval = config_.offset_commit_interval}, SystemClock(),
                 timers_, peer_.store().appender(), peer_.store().state(), reads_),
        locks_(SystemClock(), peer_.store().appender(), peer_.store().state(), reads_, offsets_),
        registration_(config_, SystemClock(), timers_, *client_, peer_.store().state(), reads_),
        disk_(PosixFileSystem(), "/", 99, 0),
        consumers_(100, [this](const GroupName& group,
                               const std::vector<Member>&) { notified_.push_back(group.value()); }),
        producers_(100),
        info_(config_, SystemClock(), counters_, disk_, alarm_, peer_.store()),
        context_{config_,       SystemClock(), peer_.store(), timers_,  gate_,
                 consumers_,    producers_,    reads_,        offsets_, locks_,
                 registration_, disk_,         counters_},
        dispatcher_(SystemClock(), gate_),
        client_processor_(context_),
        group_processor_(context_),
        dynamic_config_(&config_, PosixFileSystem(),
                        {[this] { ++registrations_; },
                         [this](const std::string& list) { name_servers_ = list; },
                         [this](const BrokerConfig& c) {
                           retentions_.push_back(std::to_string(c.file_reserved_hours) + " h at " +
                                                 c.delete_when);
                         },
                         [this](std::int32_t capacity) { send_queue_ = capacity; }}),
        info_processor_(context_, dynamic_config_, info_),
        lock_processor_(context_),
        offset_copy_processor_(context_),
        offset_processor_(context_, memory_bytes),
        progress_processor_(context_),
        relay_processor_(context_),
        reply_processor_(context_),
        stats_processor_(context_, *context_.stats),
        topic_processor_(context_) {
    client_processor_.Register(&dispatcher_);
    group_processor_.Register(&dispatcher_);
    info_processor_.Register(&dispatcher_);
    lock_processor_.Register(&dispatcher_);
    offset_copy_processor_.Register(&dispatcher_);
    offset_processor_.Register(&dispatcher_);
    progress_processor_.Register(&dispatcher_);
    relay_processor_.Register(&dispatcher_);
    reply_processor_.Register(&dispatcher_);
    stats_processor_.Register(&dispatcher_);
    topic_processor_.Register(&dispatcher_);
    peer_.Apply(MissingSystemState(config_, peer_.store().state()));
    locks_.OnLeaderTerm(peer_.term());
    gate_.OnLeaderChange(peer_.store().node().leader_info());
  }
  ~OneBroker() {
    gate_.Stop();
    timers_.Stop();
    client_->Stop();
    peer_.store().Stop();
  }

  using Fields = std::vector<std::pair<std::string, std::string>>;
  std::shared_ptr<RecordingConnection> Connect() {
    const std::uint64_t id = ++connections_;
    return std::make_shared<RecordingConnection>(id, "10.0.0.9:" + std::to_string(40000 + id));
  }
  void Start(const std::shared_ptr<RecordingConnection>& connection, std::int32_t code,
             const Fields& fields, std::string body = {}) {
    remoting::Command request = remoting::Command::Request(code);
    for (const auto& [key, value] : fields) request.ext.Set(key, value);
    request.body = std::move(body);
    dispatcher_.OnRequest(connection, std::move(request));
  }
  void SendOneway(std::int32_t code, std::string body) {
    remoting::Command request = remoting::Command::Request(code);
    request.flag |= remoting::kFlagOneway;
    request.body = std::move(body);
    dispatcher_.OnRequest(Connect(), std::move(request));
  }
  remoting::Command AskOn(const std::shared_ptr<RecordingConnection>& connection, std::int32_t code,
                          const Fields& fields, std::string body = {}) {
    Start(connection, code, fields, std::move(body));
    return connection->Next();
  }
  remoting::Command Ask(std::int32_t code, const Fields& fields, std::string body = {}) {
    return AskOn(Connect(), code, fields, std::move(body));
  }

  OnePeerStore& peer() { return peer_; }
  const ReplicatedState& state() { return peer_.store().state(); }
  ConsumerRegistry& consumers() { return consumers_; }
  ProducerRegistry& producers() { return producers_; }
  ForwardingGate& gate() { return gate_; }
  BrokerContext& context() { return context_; }
  const Dispatcher& dispatcher() const { return dispatcher_; }
  int registrations() const { return registrations_; }
  const std::string& name_servers() const { return name_servers_; }
  const std::vector<std::string>& retentions() const { return retentions_; }
  std::int32_t send_queue() const { return send_queue_; }

 private:
  BrokerConfig config_;
  OnePeerStore peer_;
  TimerQueue timers_;
  std::unique_ptr<remoting::Client> client_;
  ForwardingGate gate_;
  LeaderReads reads_;
  OffsetService offsets_;
  LockService locks_;
  Registration registration_;
  DiskGuard disk_;
  std::vector<std::string> notified_;
  ConsumerRegistry consumers_;
  ProducerRegistry producers_;
  Counters counters_;
  LogAlarm alarm_;
  RuntimeInfo info_;
  BrokerContext context_;
  Dispatcher dispatcher_;
  ClientProcessor client_processor_;
  GroupProcessor group_processor_;
  int registrations_ = 0;
  std::string name_servers_;
  std::vector<std::string> retentions_;
  std::int32_t send_queue_ = 0;
  DynamicConfig dynamic_config_;
  InfoProcessor info_processor_;
  LockProcessor lock_processor_;
  OffsetCopyProcessor offset_copy_processor_;
  OffsetProcessor offset_processor_;
  ProgressProcessor progress_processor_;
  RelayProcessor relay_processor_;
  ReplyProcessor reply_processor_;
  StatsProcessor stats_processor_;
  TopicProcessor topic_processor_;
  std::uint64_t connections_ = 0;
};

}  // namespace triad::broker
