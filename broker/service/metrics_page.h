// MetricsPage: everything that a monitoring system asks this peer for, in Prometheus' text format.
//
// Names and labels are those of RocketMQ 5 where it has the metric, else they begin with triad_;
// docs/operations.md lists them. What a group of peers has once (lag of consumers, queue locks) is
// told by the leader alone; counters of messages that came in count while a peer led, so that sums
// over the peers are right. Made on demand, on a reader thread; requests that come meanwhile share
// it. Thread: Render anywhere; a leaf mutex. Bounds: lines_max lines, and those of ConsumerLag; the
// page says what it left out.

#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "broker/config/broker_config.h"
#include "broker/service/broker_stats.h"
#include "broker/service/client_registry.h"
#include "broker/service/consumer_lag.h"
#include "broker/service/counters.h"
#include "broker/service/disk_guard.h"
#include "broker/service/lock_service.h"
#include "broker/service/log_alarm.h"
#include "broker/service/long_polling.h"
#include "broker/service/offset_service.h"
#include "broker/store/message_store.h"
#include "common/clock.h"
#include "common/metrics_text.h"
#include "common/status.h"

namespace triad::broker {

// What the page tells about. All outlive it.
struct MetricsSources {
  const BrokerConfig& config;
  const Clock& clock;
  MessageStore& store;
  const ConsumerRegistry& consumers;
  const ProducerRegistry& producers;
  const LockService& locks;
  const OffsetService& offsets;
  const LongPolling& long_polling;
  const DiskGuard& disk;
  const LogAlarm& alarm;
  const Counters& counters;
  const BrokerStats& stats;
  std::function<std::size_t()> connections;  // of clients and peers
  std::function<bool(std::string_view)> is_system_topic;
};

struct MetricsLimits {
  std::size_t lines_max = 50000;
  ConsumerLagLimits lag;
};

class MetricsPage {
 public:
  static constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";

  explicit MetricsPage(MetricsSources sources, MetricsLimits limits = {});

  // `done` on a reader thread, or on the caller's. Errors: kBusy (too many reads wait).
  using Body = std::shared_ptr<const std::string>;
  void Render(std::function<void(Result<Body>)> done);

 private:
  std::string Make() const;
  void AddPeer(const dledger::NodeStatus& status, MetricsText* text) const;
  void AddPeersOfLeader(const dledger::NodeStatus& status, MetricsText* text) const;
  void AddLatencies(const dledger::NodeStatus& status, MetricsText* text) const;
  void AddStore(const dledger::NodeStatus& status, MetricsText* text) const;
  void AddClients(MetricsText* text) const;
  void AddMessages(MetricsText* text) const;
  void AddLag(MetricsText* text) const;
  void AddLagOfTopics(const ConsumerLag& lag, std::int64_t now_ms, MetricsText* text) const;
  void AddLagOfQueues(const ConsumerLag& lag, std::int64_t now_ms, MetricsText* text) const;
  void Finish(Result<Body> body);
  std::string_view IsSystem(std::string_view topic, std::string_view group) const;

  const MetricsSources sources_;
  const MetricsLimits limits_;
  std::mutex mutex_;
  std::vector<std::function<void(Result<Body>)>> waiting_;  // for the page that is being made
};

}  // namespace triad::broker
