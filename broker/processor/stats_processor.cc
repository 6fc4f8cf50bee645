#include "broker/processor/stats_processor.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "broker/processor/method_table.h"
#include "broker/processor/queue_progress.h"
#include "broker/processor/response.h"
#include "broker/service/store_times.h"
#include "remoting/bodies.h"

namespace triad::broker {
namespace {

constexpr std::int32_t kUnitsMax = 1024;  // of one QUERY_CONSUME_QUEUE

std::string EncodeQueue(const remoting::MessageQueue& queue) {
  remoting::JsonWriter writer;
  queue.WriteTo(&writer);
  return writer.Take();
}

// "topic@group": the two. nullopt: there is no @.
std::optional<std::pair<std::string, std::string>> SplitKey(const std::string& key) {
  const std::size_t at = key.find('@');
  if (at == std::string::npos) return std::nullopt;
  return std::make_pair(key.substr(0, at), key.substr(at + 1));
}

}  // namespace

void StatsProcessor::Register(Dispatcher* dispatcher) {
  const MethodTable methods(dispatcher, this, kBudget);
  methods.ForLeader(remoting::kQueryConsumeTimeSpan, &StatsProcessor::OnTimeSpan);
  methods.ForLeader(remoting::kGetBrokerConsumeStats, &StatsProcessor::OnBrokerConsumeStats);
  methods.ForAll(remoting::kViewBrokerStatsData, &StatsProcessor::OnStats);
  methods.ForAll(remoting::kQueryConsumeQueue, &StatsProcessor::OnConsumeQueue);
  methods.ForAll(remoting::kGetBrokerHaStatus, &StatsProcessor::OnHaStatus);
  methods.ForAll(remoting::kDeleteExpiredCommitLog, &StatsProcessor::OnCleanLog);
  dispatcher->Register(remoting::kGetTimerMetrics, OnTimerMetrics);
  // Consume queues go by themselves, with the log's segments and with their topics.
  for (const std::int32_t code :
       {remoting::kCleanExpiredConsumeQueue, remoting::kCleanUnusedTopic}) {
    dispatcher->Register(code, [](const RequestPtr& request, const Reply& reply) {
      reply(Success(request->command));
    });
  }
}

void StatsProcessor::OnReader(const RequestPtr& request, const Reply& reply,
                              std::function<void()> task) {
  if (context_.store.node().PostReader(std::move(task))) return;
  reply(ResponseOf(request->command, Status::Busy("too many reads wait")));
}

remoting::MessageQueue StatsProcessor::Name(const TopicQueue& queue) const {
  return {queue.topic.value(), context_.config.broker_name, queue.queue_id.value()};
}

// ---- 303 ----------------------------------------------------------------------------------------

void StatsProcessor::OnTimeSpan(const RequestPtr& request, const Reply& reply) {
  const auto header = remoting::TopicGroupRequest::Decode(request->command.ext);
  if (!header.ok()) {
    reply(BadRequest(request->command, header.status()));
    return;
  }
  const auto topic = context_.store.state().FindTopic(Topic(header->topic));
  if (!topic) {
    reply(remoting::Command::ResponseTo(request->command, remoting::kTopicNotExist,
                                        "topic[" + header->topic + "] not exist"));
    return;
  }
  OnReader(request, reply, [this, request, reply, topic = *topic, group = header->group] {
    remoting::JsonWriter writer;
    writer.BeginObject().Key("consumeTimeSpanSet").BeginArray();
    for (std::int32_t id = 0; id < topic.write_queues; ++id) {
      WriteTimeSpan({topic.name, QueueId(id)}, GroupName(group), &writer);
    }
    writer.EndArray().EndObject();
    reply(SuccessWith(request->command, writer.Take()));
  });
}

void StatsProcessor::WriteTimeSpan(const TopicQueue& queue, const GroupName& group,
                                   remoting::JsonWriter* writer) {
  const QueueRange range = context_.store.RangeOf(queue);
  const auto time_of = [&](QueueOffset offset) {
    const bool is_there = offset >= range.min && offset < range.max;
    return is_there ? StoreTimeOf(context_.store, queue, offset) : std::int64_t{0};
  };
  const bool empty = range.min == range.max;
  const std::int64_t oldest = empty ? -1 : time_of(range.min);
  const std::int64_t newest = empty ? -1 : time_of(range.max - 1);
  const auto stored = context_.store.state().FindOffset({group, queue});
  const QueueOffset offset = stored.value_or(QueueOffset(0));
  const std::int64_t consumed = offset.value() > 0 ? time_of(offset - 1) : oldest;
  std::int64_t delay = 0;
  if (offset < range.max) {
    delay = std::max<std::int64_t>(
        0, context_.clock.WallNowMs() - time_of(std::max(offset, range.min)));
  }
  writer->BeginObject();
  writer->Key("consumeTimeStamp").Int(consumed);
  writer->Key("delayTime").Int(delay);
  writer->Key("maxTimeStamp").Int(newest);
  writer->Key("messageQueue").Raw(EncodeQueue(Name(queue)));
  writer->Key("minTimeStamp").Int(oldest);
  writer->EndObject();
}

// ---- 315 ----------------------------------------------------------------------------------------

// Whether there could be such a figure: what it is about exists.
bool StatsProcessor::IsKnown(const std::string& name, const std::string& key) const {
  if (!BrokerStats::IsName(name)) return false;
  if (name.rfind("BROKER_", 0) == 0) return key == context_.config.cluster_name;
  const ReplicatedState& state = context_.store.state();
  if (name.rfind("TOPIC_", 0) == 0) return state.FindTopic(Topic(key)).has_value();
  const auto parts = SplitKey(key);
  return parts && state.FindTopic(Topic(parts->first)) && state.FindGroup(GroupName(parts->second));
}

void StatsProcessor::OnStats(const RequestPtr& request, const Reply& reply) {
  const auto header = remoting::ViewBrokerStatsRequest::Decode(request->command.ext);
  if (!header.ok()) {
    reply(BadRequest(request->command, header.status()));
    return;
  }
  auto data = stats_.Find(header->stats_name, header->stats_key, context_.clock.MonoNow());
  // An idle topic is no error (cases.md ADM-1).
  if (!data && IsKnown(header->stats_name, header->stats_key)) data = remoting::BrokerStatsData();
  if (data) {
    reply(SuccessWith(request->command, data->Encode()));
    return;
  }
  reply(remoting::Command::ResponseTo(
      request->command, remoting::kSystemError,
      "The stats <" + header->stats_name + "> <" + header->stats_key + "> not exist"));
}

// ---- 317 ----------------------------------------------------------------------------------------

void StatsProcessor::OnBrokerConsumeStats(const RequestPtr& request, const Reply& reply) {
  const auto header = remoting::BrokerConsumeStatsRequest::Decode(request->command.ext);
  if (!header.ok()) {
    reply(BadRequest(request->command, header.status()));
    return;
  }
  OnReader(request, reply, [this, request, reply, ordered_only = header->is_order] {
    ReadBrokerConsumeStats(request, reply, ordered_only);
  });
}

void StatsProcessor::ReadBrokerConsumeStats(const RequestPtr& request, const Reply& reply,
                                            bool ordered_only) {
  const ReplicatedState& state = context_.store.state();
  Behind behind;
  remoting::JsonWriter writer;
  writer.BeginObject();
  writer.Key("brokerAddr").String(context_.config.FullClientAddress());
  writer.Key("consumeStatsList").BeginArray();
  for (const GroupConfig& group : state.Groups()) {
    writer.BeginObject().Key(group.name.value()).BeginArray();
    std::set<Topic> topics;
    for (const auto& [queue, offset] : state.OffsetsOf(group.name)) topics.insert(queue.topic);
    for (const Topic& name : topics) {
      const auto topic = state.FindTopic(name);
      if (!topic || (ordered_only && !topic->order)) continue;
      if (const auto body = ConsumeStatsOf(group.name, *topic, &behind)) writer.Raw(*body);
    }
    writer.EndArray().EndObject();
  }
  writer.EndArray();
  writer.Key("totalDiff").Int(behind.diff);
  writer.Key("totalInflightDiff").Int(behind.in_flight);
  writer.EndObject();
  reply(SuccessWith(request->command, writer.Take()));
}

std::optional<std::string> StatsProcessor::ConsumeStatsOf(const GroupName& group,
                                                          const TopicConfig& topic,
                                                          Behind* behind) {
  const bool online = context_.consumers.Online(group);
  if (online && context_.consumers.FindSubscription(group, topic.name) == nullptr) {
    return std::nullopt;
  }
  remoting::ConsumeStats stats;
  stats.consume_tps = stats_.MinuteRate(kGroupGetNums, topic.name.value() + "@" + group.value(),
                                        context_.clock.MonoNow());
  for (std::int32_t id = 0; id < topic.write_queues; ++id) {
    const TopicQueue queue{topic.name, QueueId(id)};
    const remoting::ConsumeStats::Item item = QueueProgress(context_, group, queue);
    behind->diff += item.broker_offset - item.consumer_offset;
    behind->in_flight += item.pull_offset - item.consumer_offset;
    stats.offset_table[Name(queue)] = item;
  }
  return stats.Encode();
}

// ---- 321 ----------------------------------------------------------------------------------------

void StatsProcessor::OnConsumeQueue(const RequestPtr& request, const Reply& reply) {
  const auto header = remoting::QueryConsumeQueueRequest::Decode(request->command.ext);
  if (!header.ok()) {
    reply(BadRequest(request->command, header.status()));
    return;
  }
  OnReader(request, reply, [this, request, reply, header = header.value()] {
    ReadConsumeQueue(request, reply, header);
  });
}

void StatsProcessor::ReadConsumeQueue(const RequestPtr& request, const Reply& reply,
                                      const remoting::QueryConsumeQueueRequest& header) {
  const TopicQueue queue{Topic(header.topic), QueueId(header.queue_id)};
  const auto range = context_.store.queues().Range(queue);
  if (!range) {
    reply(remoting::Command::ResponseTo(
        request->command, remoting::kSystemError,
        std::to_string(header.queue_id) + "@" + header.topic + " is not exist!"));
    return;
  }
  std::vector<QueueUnit> units;
  const auto wanted = static_cast<std::size_t>(std::clamp(header.count, 0, kUnitsMax));
  for (QueueOffset next{header.index};
       units.size() < wanted && next >= range->min && next < range->max;) {
    const auto read = context_.store.queues().Read(queue, next, wanted - units.size());
    if (!read.ok()) {
      reply(ResponseOf(request->command, read.status()));
      return;
    }
    if (read->empty()) break;
    units.insert(units.end(), read->begin(), read->end());
    next += static_cast<std::int64_t>(read->size());
  }
  if (units.empty()) {  // code 0 without a body, like the original
    reply(Success(request->command));
    return;
  }
  remoting::JsonWriter writer;
  writer.BeginObject();
  SubscriptionPtr subscription;
  if (!header.consumer_group.empty()) {
    subscription =
        context_.consumers.FindSubscription(GroupName(header.consumer_group), queue.topic);
    writer.Key("filterData").String("null");
  }
  writer.Key("maxQueueIndex").Int(range->max.value());
  writer.Key("minQueueIndex").Int(range->min.value());
  writer.Key("queueData").BeginArray();
  for (const QueueUnit& unit : units) {
    writer.BeginObject();
    writer.Key("eval").Bool(!header.consumer_group.empty());
    writer.Key("physicOffset").Int(unit.position.value());
    writer.Key("physicSize").Int(unit.size_bytes);
    writer.Key("tagsCode").Int(unit.tag_code);
    writer.EndObject();
  }
  writer.EndArray();
  if (subscription != nullptr) {
    writer.Key("subscriptionData");
    subscription->WriteTo(&writer);
  }
  writer.EndObject();
  reply(SuccessWith(request->command, writer.Take()));
}

// ---- 907 ----------------------------------------------------------------------------------------

// From the group's own progress. A follower that lacks something is looked up in the log.
void StatsProcessor::OnHaStatus(const RequestPtr& request, const Reply& reply) {
  OnReader(request, reply, [this, request, reply] {
    const dledger::NodeStatus status = context_.store.node().status();
    const bool leads = status.leader.role == dledger::Role::kLeader;
    const std::int64_t end = status.end_position.value();
    int in_sync = 0;
    remoting::JsonWriter connections;
    connections.BeginArray();
    for (const dledger::NodeStatus::Peer& peer : status.peers) {
      if (!leads || !peer.connected) continue;
      std::int64_t acknowledged = end;
      if (peer.match == LogIndex{0}) {
        acknowledged = 0;
      } else if (peer.match < status.last_index) {
        const auto entries = context_.store.node().ReadRange(peer.match, peer.match + 1, 1);
        acknowledged = entries.ok() && !entries->empty() ? entries->front()->end().value() : 0;
      } else {
        ++in_sync;
      }
      connections.BeginObject();
      connections.Key("addr").String(peer.client_address);
      connections.Key("diff").Int(end - acknowledged);
      connections.Key("inSync").Bool(acknowledged == end);
      connections.Key("slaveAckOffset").Int(acknowledged);
      connections.Key("transferFromWhere").Int(acknowledged);
      connections.Key("transferredByteInSecond").Int(0);
      connections.EndObject();
    }
    connections.EndArray();
    remoting::JsonWriter writer;
    writer.BeginObject();
    writer.Key("haClientRuntimeInfo").BeginObject();
    writer.Key("lastReadTimestamp").Int(0);
    writer.Key("lastWriteTimestamp").Int(0);
    writer.Key("masterFlushOffset").Int(leads ? 0 : end);
    writer.Key("maxOffset").Int(end);
    writer.Key("transferredByteInSecond").Int(0);
    writer.EndObject();
    writer.Key("haConnectionInfo").Raw(connections.text());
    writer.Key("inSyncSlaveNums").Int(in_sync);
    writer.Key("master").Bool(leads);
    writer.Key("masterCommitLogMaxOffset").Int(end);
    writer.EndObject();
    reply(SuccessWith(request->command, writer.Take()));
  });
}

// ---- 329 ----------------------------------------------------------------------------------------

// Like the original it does not wait: what is past fileReservedTime goes right behind the answer.
void StatsProcessor::OnCleanLog(const RequestPtr& request, const Reply& reply) {
  context_.store.node().CleanNow();
  reply(Success(request->command));
}

// ---- 61 -----------------------------------------------------------------------------------------

// There are no timer messages: nothing waits.
void StatsProcessor::OnTimerMetrics(const RequestPtr& request, const Reply& reply) {
  remoting::JsonWriter writer;
  writer.BeginObject();
  writer.Key("dataVersion");
  remoting::DataVersion().WriteTo(&writer);
  writer.Key("timingCount").BeginObject().EndObject();
  writer.EndObject();
  reply(SuccessWith(request->command, writer.Take()));
}

}  // namespace triad::broker
