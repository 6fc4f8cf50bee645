#include "broker/service/metrics_page.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "broker/service/replication_status.h"
#include "remoting/command.h"
#include "remoting/version_text.h"

namespace triad::broker {
namespace {

using Type = MetricsText::Type;

constexpr double kMicrosPerSecond = 1e6;
constexpr std::string_view kSystemGroupPrefix = "cid_rmq_sys_";

double Seconds(std::chrono::microseconds time) {
  return static_cast<double>(time.count()) / kMicrosPerSecond;
}

std::string_view Text(bool value) {
  return value ? "true" : "false";
}

bool IsSystemGroup(std::string_view group) {
  return group.size() >= kSystemGroupPrefix.size() &&
         std::equal(
             kSystemGroupPrefix.begin(), kSystemGroupPrefix.end(), group.begin(),
             [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); });
}

bool IsRetry(std::string_view topic) {
  return topic.starts_with(kRetryPrefix) || topic.starts_with(kDlqPrefix);
}

std::string_view ModeText(remoting::ConsumeType type) {
  return type == remoting::ConsumeType::kActively ? "PULL" : "PUSH";
}

// One sample of a family that has one.
template <typename Number>
void One(MetricsText* text, std::string_view name, Type type, std::string_view help, Number value) {
  text->Family(name, type, help);
  text->Add({}, value);
}

std::int64_t Read(const std::atomic<std::int64_t>& counter) {
  return counter.load(std::memory_order_relaxed);
}

std::int64_t AgeMs(std::int64_t now_ms, std::int64_t stored_ms) {
  return std::max<std::int64_t>(now_ms - stored_ms, 0);
}

}  // namespace

MetricsPage::MetricsPage(MetricsSources sources, MetricsLimits limits)
    : sources_(std::move(sources)), limits_(limits) {}

void MetricsPage::Render(std::function<void(Result<Body>)> done) {
  {
    const std::lock_guard hold(mutex_);
    waiting_.push_back(std::move(done));
    if (waiting_.size() > 1) return;
  }
  const bool posted = sources_.store.node().PostReader(
      [this] { Finish(Body(std::make_shared<const std::string>(Make()))); });
  if (!posted) Finish(Status::Busy("too many reads wait"));
}

void MetricsPage::Finish(Result<Body> body) {
  std::vector<std::function<void(Result<Body>)>> waiting;
  {
    const std::lock_guard hold(mutex_);
    waiting.swap(waiting_);
  }
  for (const auto& done : waiting) done(body);
}

std::string_view MetricsPage::IsSystem(std::string_view topic, std::string_view group) const {
  return Text(IsSystemGroup(group) || (!topic.empty() && sources_.is_system_topic(topic)));
}

std::string MetricsPage::Make() const {
  MetricsText text({{"cluster", sources_.config.cluster_name},
                    {"node_type", "broker"},
                    {"node_id", sources_.config.broker_name}},
                   limits_.lines_max);
  const dledger::NodeStatus status = sources_.store.node().status();
  AddPeer(status, &text);
  AddPeersOfLeader(status, &text);
  AddLatencies(status, &text);
  AddStore(status, &text);
  AddClients(&text);
  AddMessages(&text);
  if (status.leader.ready) AddLag(&text);
  return text.Take();
}

void MetricsPage::AddPeer(const dledger::NodeStatus& status, MetricsText* text) const {
  const BrokerConfig& config = sources_.config;
  text->Family("triad_peer_info", Type::kGauge, "Which peer of which replication group answers");
  text->Add({{"group", config.dledger_group},
             {"peer", config.self.value()},
             {"version", remoting::kServerVersionName}},
            1);
  One(text, "triad_leader", Type::kGauge, "1: this peer serves as the leader of its group",
      status.leader.ready ? 1 : 0);
  const Readiness readiness = ReadinessOf(status, config.self, sources_.disk.Writable());
  One(text, "triad_ready", Type::kGauge, "1: this peer does its part", readiness.ready ? 1 : 0);
  One(text, "triad_term", Type::kGauge, "Raft term", status.leader.term.value());
  One(text, "triad_first_index", Type::kGauge, "First log entry that is kept",
      status.first_index.value());
  One(text, "triad_last_index", Type::kGauge, "Last log entry", status.last_index.value());
  One(text, "triad_commit_index", Type::kGauge, "Last log entry known to be committed",
      status.commit_index.value());
  One(text, "triad_applied_index", Type::kGauge, "Last log entry applied here",
      status.applied_index.value());
  One(text, "triad_log_alarm", Type::kGauge,
      "1: this peer's log was found to differ from the leader's",
      sources_.alarm.text().empty() ? 0 : 1);
}

void MetricsPage::AddPeersOfLeader(const dledger::NodeStatus& status, MetricsText* text) const {
  text->Family("triad_peer_connected", Type::kGauge, "1: there is a connection to that peer");
  for (const auto& peer : status.peers) {
    text->Add({{"peer", peer.id.value()}}, peer.connected ? 1 : 0);
  }
  if (!status.leader.ready) return;
  text->Family("triad_peer_lag_entries", Type::kGauge,
               "Log entries that the peer lacks, as the leader sees it");
  for (const auto& peer : status.peers) {
    const std::uint64_t last = status.last_index.value();
    text->Add({{"peer", peer.id.value()}}, last - std::min(peer.match.value(), last));
  }
  text->Family("triad_peer_recovering", Type::kGauge, "1: the peer neither votes nor counts yet");
  for (const auto& peer : status.peers) {
    text->Add({{"peer", peer.id.value()}}, peer.recovering ? 1 : 0);
  }
}

void MetricsPage::AddLatencies(const dledger::NodeStatus& status, MetricsText* text) const {
  const Counters& counters = sources_.counters;
  text->Family("triad_send_latency_seconds", Type::kHistogram,
               "From the arrival of a stored message to its answer");
  text->AddHistogram({}, counters.put_latency.Read(), kMicrosPerSecond);
  text->Family("triad_pull_latency_seconds", Type::kHistogram,
               "Pulls that found something, without the time they were held");
  text->AddHistogram({}, counters.get_latency.Read(), kMicrosPerSecond);
  text->Family("rocketmq_message_size", Type::kHistogram, "Bodies of stored messages in bytes");
  text->AddHistogram({}, counters.put_sizes.Read(), 1);
  One(text, "triad_log_sync_p99_seconds", Type::kGauge, "fdatasync of the log, the last minute",
      Seconds(status.sync.p99));
  One(text, "triad_log_sync_max_seconds", Type::kGauge, "fdatasync of the log, the last minute",
      Seconds(status.sync.max));
  One(text, "triad_loop_delay_p99_seconds", Type::kGauge,
      "How late the log thread's ticks came, the last minute", Seconds(status.loop_delay.p99));
  One(text, "triad_loop_delay_max_seconds", Type::kGauge,
      "How late the log thread's ticks came, the last minute", Seconds(status.loop_delay.max));
}

void MetricsPage::AddStore(const dledger::NodeStatus& status, MetricsText* text) const {
  text->Family("rocketmq_storage_size", Type::kGauge, "Bytes of the log");
  text->Add({{"storage_type", "local"}, {"storage_medium", "disk"}},
            status.end_position - status.begin_position);
  text->Family("rocketmq_processor_watermark", Type::kGauge,
               "Requests that wait; sends: for the log");
  text->Add({{"processor", "send"}}, sources_.store.appender().waiting());
  const std::int32_t permission = sources_.config.broker_permission;
  One(text, "rocketmq_broker_permission", Type::kGauge, "4 = read, 2 = write, 6 = both",
      permission);
  One(text, "rocketmq_topic_number", Type::kGauge, "Topics",
      sources_.store.state().Topics().size());
  One(text, "rocketmq_consumer_group_number", Type::kGauge, "Consumer groups",
      sources_.store.state().Groups().size());
  const Space space = sources_.disk.space();
  One(text, "triad_disk_total_bytes", Type::kGauge, "Size of the store's file system",
      space.total_bytes);
  One(text, "triad_disk_available_bytes", Type::kGauge, "Free bytes of the store's file system",
      space.available_bytes);
  One(text, "triad_disk_writable", Type::kGauge, "0: messages are refused, the disk is full",
      sources_.disk.Writable().ok() ? 1 : 0);
}

void MetricsPage::AddClients(MetricsText* text) const {
  text->Family("rocketmq_producer_connections", Type::kGauge, "Producers that are connected");
  for (const MemberCount& count : sources_.producers.Counts()) {
    text->Add({{"language", count.language},
               {"version", remoting::VersionName(count.version)},
               {"protocol_type", "remoting"}},
              count.members);
  }
  text->Family("rocketmq_consumer_connections", Type::kGauge, "Consumers that are connected");
  for (const MemberCount& count : sources_.consumers.Counts()) {
    text->Add({{"consumer_group", count.group},
               {"language", count.language},
               {"version", remoting::VersionName(count.version)},
               {"consume_mode", ModeText(count.consume_type)},
               {"protocol_type", "remoting"},
               {"is_system", IsSystem("", count.group)}},
              count.members);
  }
  One(text, "triad_connections", Type::kGauge, "Open connections of clients and peers",
      sources_.connections());
  One(text, "triad_held_pulls", Type::kGauge, "Pulls that wait for a message",
      sources_.long_polling.size());
  One(text, "triad_pending_offset_commits", Type::kGauge,
      "Consumer offsets that are not in the log yet", sources_.offsets.pending());
}

void MetricsPage::AddMessages(MetricsText* text) const {
  const Counters& counters = sources_.counters;
  One(text, "triad_sends_failed_total", Type::kCounter, "Sends that were not stored",
      Read(counters.put_failed));
  One(text, "triad_sends_duplicate_total", Type::kCounter,
      "Sends answered with the first one's place", Read(counters.put_duplicates));
  One(text, "triad_retry_copies_total", Type::kCounter,
      "Failed messages that clients sent to a retry topic themselves", Read(counters.retry_copies));
  const auto dedup = sources_.store.state().DedupUses();
  text->Family("triad_dedup_keys", Type::kGauge, "Message keys that a repeated send is known by");
  for (const auto& use : dedup) text->Add({{"topic", use.topic}}, use.keys);
  text->Family("triad_dedup_keys_evicted_total", Type::kCounter,
               "Keys forgotten before their time, as there were too many, since the start");
  for (const auto& use : dedup) text->Add({{"topic", use.topic}}, use.evicted);
  text->Family("triad_pulls_total", Type::kCounter, "Pulls by whether they found a message");
  text->Add({{"result", "found"}}, Read(counters.get_found));
  text->Add({{"result", "nothing"}}, Read(counters.get_miss));

  const auto came_in = [this, text](std::string_view statistic) {
    for (const BrokerStats::Total& total : sources_.stats.Totals(statistic)) {
      if (total.led == 0) continue;
      text->Add({{"topic", total.key}, {"is_system", IsSystem(total.key, "")}}, total.led);
    }
  };
  text->Family("rocketmq_messages_in_total", Type::kCounter, "Messages stored while this peer led");
  came_in(kTopicPutNums);
  text->Family("rocketmq_throughput_in_total", Type::kCounter, "Their bytes");
  came_in(kTopicPutSize);

  const auto went_out = [this, text](std::string_view statistic) {
    for (const BrokerStats::Total& total : sources_.stats.Totals(statistic)) {
      const std::size_t at = total.key.find('@');
      const std::string topic = total.key.substr(0, at);
      const std::string group = at == std::string::npos ? "" : total.key.substr(at + 1);
      text->Add({{"topic", topic},
                 {"consumer_group", group},
                 {"is_retry", Text(IsRetry(topic))},
                 {"is_system", IsSystem(topic, group)}},
                total.sum);
    }
  };
  text->Family("rocketmq_messages_out_total", Type::kCounter, "Messages handed out by this peer");
  went_out(kGroupGetNums);
  text->Family("rocketmq_throughput_out_total", Type::kCounter, "Their bytes");
  went_out(kGroupGetSize);

  text->Family("rocketmq_send_to_dlq_messages_total", Type::kCounter,
               "Messages that became dead letters while this peer led");
  for (const BrokerStats::Total& total : sources_.stats.Totals(kTopicPutNums)) {
    if (total.led == 0 || !total.key.starts_with(kDlqPrefix)) continue;
    const std::string group = total.key.substr(kDlqPrefix.size());
    text->Add({{"consumer_group", group}, {"is_system", IsSystem("", group)}}, total.led);
  }
}

void MetricsPage::AddLag(MetricsText* text) const {
  One(text, "triad_split_strict_topics", Type::kGauge,
      "Topics with order=strict that another broker group takes messages of as well",
      Read(sources_.counters.split_topics));
  One(text, "triad_queue_locks", Type::kGauge, "Queues locked by orderly consumers",
      sources_.locks.leases());
  const ConsumerLag lag =
      ReadConsumerLag(sources_.store, sources_.consumers, sources_.clock, limits_.lag);
  const std::int64_t now_ms = sources_.store.node().LogTimeMs();
  One(text, "triad_lag_queues_left_out", Type::kGauge,
      "Queues of consumer groups that the lag leaves out: there are too many", lag.queues_left_out);
  One(text, "triad_lag_ages_left_out", Type::kGauge,
      "Queues whose lag is told in messages only: too many to look up", lag.ages_left_out);
  AddLagOfTopics(lag, now_ms, text);
  AddLagOfQueues(lag, now_ms, text);
}

void MetricsPage::AddLagOfTopics(const ConsumerLag& lag, std::int64_t now_ms,
                                 MetricsText* text) const {
  struct Sum {
    std::int64_t messages = 0;
    std::int64_t age_ms = 0;
    bool known = true;
  };
  std::map<std::pair<GroupName, Topic>, Sum> sums;
  for (const QueueLag& queue : lag.queues) {
    Sum& sum = sums[{queue.group, queue.queue.topic}];
    sum.messages += queue.messages;
    if (queue.stored_ms) sum.age_ms = std::max(sum.age_ms, AgeMs(now_ms, *queue.stored_ms));
    if (queue.messages > 0 && !queue.stored_ms) sum.known = false;
  }
  const auto add = [this, text](const std::pair<GroupName, Topic>& key, std::int64_t value) {
    const std::string& topic = key.second.value();
    text->Add({{"consumer_group", key.first.value()},
               {"topic", topic},
               {"is_retry", Text(IsRetry(topic))},
               {"is_system", IsSystem(topic, key.first.value())}},
              value);
  };
  text->Family("rocketmq_consumer_lag_messages", Type::kGauge,
               "Messages that the group has not consumed");
  for (const auto& [key, sum] : sums) add(key, sum.messages);
  text->Family("rocketmq_consumer_lag_latency", Type::kGauge,
               "Age of the oldest of them in milliseconds");
  for (const auto& [key, sum] : sums) {
    if (sum.known) add(key, sum.age_ms);
  }
}

void MetricsPage::AddLagOfQueues(const ConsumerLag& lag, std::int64_t now_ms,
                                 MetricsText* text) const {
  const auto add = [text](const QueueLag& queue, auto value) {
    text->Add({{"consumer_group", queue.group.value()},
               {"topic", queue.queue.topic.value()},
               {"queue_id", std::to_string(queue.queue.queue_id.value())}},
              value);
  };
  text->Family("triad_queue_lag_messages", Type::kGauge,
               "Messages of the queue that the group has not consumed");
  for (const QueueLag& queue : lag.queues) add(queue, queue.messages);
  text->Family("triad_queue_lag_seconds", Type::kGauge, "Age of the oldest of them");
  for (const QueueLag& queue : lag.queues) {
    if (queue.messages > 0 && !queue.stored_ms) continue;
    const std::int64_t age_ms = queue.stored_ms ? AgeMs(now_ms, *queue.stored_ms) : 0;
    add(queue, static_cast<double>(age_ms) / 1000);
  }
}

}  // namespace triad::broker
