#include "broker/processor/progress_processor.h"

#include <algorithm>
#include <set>
#include <utility>

#include "broker/processor/method_table.h"
#include "broker/processor/queue_progress.h"
#include "broker/processor/response.h"
#include "broker/service/long_polling.h"

namespace triad::broker {
namespace {

remoting::ConnectionInfo Describe(const Member& member) {
  remoting::ConnectionInfo info;
  info.client_addr = member.connection->remote_address();
  info.client_id = member.client.id.value();
  info.language = member.client.language;
  info.version = member.client.version;
  return info;
}

}  // namespace

void ProgressProcessor::Register(Dispatcher* dispatcher) {
  const MethodTable methods(dispatcher, this, kBudget);
  methods.ForLeader(remoting::kGetConsumeStats, &ProgressProcessor::OnConsumeStats);
  methods.ForLeader(remoting::kInvokeBrokerToResetOffset, &ProgressProcessor::OnReset);
  methods.ForAll(remoting::kGetConsumerConnectionList, &ProgressProcessor::OnConsumerConnections);
  methods.ForAll(remoting::kGetProducerConnectionList, &ProgressProcessor::OnProducerConnections);
  methods.ForAll(remoting::kGetAllProducerInfo, &ProgressProcessor::OnAllProducers);
  methods.ForAll(remoting::kQueryTopicConsumeByWho, &ProgressProcessor::OnGroupsOfTopic);
  methods.ForAll(remoting::kQueryTopicsByConsumer, &ProgressProcessor::OnTopicsOfGroup);
  methods.ForAll(remoting::kQuerySubscriptionByConsumer, &ProgressProcessor::OnSubscription);
  methods.ForAll(remoting::kGetAllConsumerOffset, &ProgressProcessor::OnAllOffsets);
  methods.ForAll(remoting::kGetAllDelayOffset, &ProgressProcessor::OnDelayOffsets);
}

remoting::MessageQueue ProgressProcessor::Name(const TopicQueue& queue) const {
  remoting::MessageQueue name;
  name.topic = queue.topic.value();
  name.broker_name = context_.config.broker_name;
  name.queue_id = queue.queue_id.value();
  return name;
}

void ProgressProcessor::OnConsumerConnections(const RequestPtr& request, const Reply& reply) {
  auto header = remoting::ConsumerGroupRequest::Decode(request->command.ext);
  if (!header.ok()) {
    reply(BadRequest(request->command, header.status()));
    return;
  }
  const auto group = context_.consumers.Find(GroupName(header->consumer_group));
  if (!group) {
    reply(remoting::Command::ResponseTo(
        request->command, remoting::kConsumerNotOnline,
        "the consumer group[" + header->consumer_group + "] not online"));
    return;
  }
  remoting::ConsumerConnection body;
  body.consume_type = group->consume_type;
  body.message_model = group->message_model;
  body.consume_from_where = group->consume_from_where;
  for (const Member& member : group->members) body.connections.push_back(Describe(member));
  for (const auto& [topic, subscription] : group->subscriptions) {
    body.subscription_table.emplace(topic.value(), *subscription);
  }
  reply(SuccessWith(request->command, body.Encode()));
}

void ProgressProcessor::OnProducerConnections(const RequestPtr& request, const Reply& reply) {
  auto header = remoting::ProducerGroupRequest::Decode(request->command.ext);
  if (!header.ok()) {
    reply(BadRequest(request->command, header.status()));
    return;
  }
  remoting::ProducerConnection body;
  for (const Member& member : context_.producers.Find(header->producer_group)) {
    body.connections.push_back(Describe(member));
  }
  if (body.connections.empty()) {
    reply(remoting::Command::ResponseTo(
        request->command, remoting::kSystemError,
        "the producer group[" + header->producer_group + "] not exist"));
    return;
  }
  reply(SuccessWith(request->command, body.Encode()));
}

void ProgressProcessor::OnAllProducers(const RequestPtr& request, const Reply& reply) {
  const TimePoint now = context_.clock.MonoNow();
  const std::int64_t wall_ms = context_.clock.WallNowMs();
  remoting::JsonWriter writer;
  writer.BeginObject().Key("data").BeginObject();
  for (const auto& [group, members] : context_.producers.All()) {
    writer.Key(group).BeginArray();
    for (const Member& member : members) {
      const auto age =
          std::chrono::duration_cast<std::chrono::milliseconds>(now - member.last_heartbeat);
      writer.BeginObject();
      writer.Key("clientId").String(member.client.id.value());
      writer.Key("language").String(member.client.language);
      writer.Key("lastUpdateTimestamp").Int(wall_ms - age.count());
      writer.Key("remoteIP")
          .String("/" + member.connection->remote_address());  // as Java writes it
      writer.Key("version").Int(member.client.version);
      writer.EndObject();
    }
    writer.EndArray();
  }
  writer.EndObject().EndObject();
  reply(SuccessWith(request->command, writer.Take()));
}

std::vector<Topic> ProgressProcessor::TopicsFor(
    const remoting::GetConsumeStatsRequest& header) const {
  std::set<Topic> topics;
  for (std::string& name : SplitAddressList(header.topic_list)) topics.insert(Topic(name));
  if (!topics.empty()) return {topics.begin(), topics.end()};
  const GroupName group(header.consumer_group);
  if (header.topic.empty()) {
    for (const auto& [queue, offset] : context_.store.state().OffsetsOf(group)) {
      topics.insert(queue.topic);
    }
  } else {
    topics.insert(Topic(header.topic));
  }
  // What an online group does not subscribe to any more is not its progress.
  if (context_.consumers.Online(group)) {
    std::erase_if(topics, [&](const Topic& topic) {
      return context_.consumers.FindSubscription(group, topic) == nullptr;
    });
  }
  return {topics.begin(), topics.end()};
}

void ProgressProcessor::OnConsumeStats(const RequestPtr& request, const Reply& reply) {
  auto header = remoting::GetConsumeStatsRequest::Decode(request->command.ext);
  if (!header.ok()) {
    reply(BadRequest(request->command, header.status()));
    return;
  }
  // What the group committed a moment ago is its progress too. Without a majority it is not: then
  // the last that is certain is told, as it is while nobody asks.
  context_.offsets.Flush(
      GroupName(header->consumer_group), request->arrived + kBudget,
      [this, request, reply, header = header.value()](const Status& flushed) {
        if (flushed.code() == StatusCode::kNotLeader) {
          reply(NotLeaderResponse(request->command));
          return;
        }
        const bool posted = context_.store.node().PostReader([this, request, reply, header] {
          ReadConsumeStats(request, reply, GroupName(header.consumer_group), TopicsFor(header));
        });
        if (!posted) reply(ResponseOf(request->command, Status::Busy("too many reads wait")));
      });
}

void ProgressProcessor::ReadConsumeStats(const RequestPtr& request, const Reply& reply,
                                         const GroupName& group, const std::vector<Topic>& topics) {
  remoting::ConsumeStats stats;
  for (const Topic& name : topics) {
    const auto topic = context_.store.state().FindTopic(name);
    if (!topic) continue;
    stats.consume_tps += context_.stats->MinuteRate(
        kGroupGetNums, name.value() + "@" + group.value(), context_.clock.MonoNow());
    for (std::int32_t id = 0; id < topic->read_queues; ++id) {
      const TopicQueue queue{name, QueueId(id)};
      stats.offset_table[Name(queue)] = QueueProgress(context_, group, queue);
    }
  }
  reply(SuccessWith(request->command, stats.Encode()));
}

void ProgressProcessor::OnGroupsOfTopic(const RequestPtr& request, const Reply& reply) {
  auto header = remoting::TopicRequest::Decode(request->command.ext);
  if (!header.ok()) {
    reply(BadRequest(request->command, header.status()));
    return;
  }
  const Topic topic(header->topic);
  std::set<GroupName> groups;
  for (const GroupName& group : context_.consumers.GroupsOf(topic)) groups.insert(group);
  for (const GroupName& group : context_.store.state().GroupsWithOffsets(topic)) {
    groups.insert(group);
  }
  remoting::GroupList list;
  for (const GroupName& group : groups) list.groups.push_back(group.value());
  reply(SuccessWith(request->command, list.Encode()));
}

void ProgressProcessor::OnTopicsOfGroup(const RequestPtr& request, const Reply& reply) {
  auto header = remoting::GroupRequest::Decode(request->command.ext);
  if (!header.ok()) {
    reply(BadRequest(request->command, header.status()));
    return;
  }
  std::set<std::string> topics;
  for (const auto& [queue, offset] : context_.store.state().OffsetsOf(GroupName(header->group))) {
    topics.insert(queue.topic.value());
  }
  remoting::TopicList list;
  list.topic_list.assign(topics.begin(), topics.end());
  list.broker_addr = context_.config.FullClientAddress();
  reply(SuccessWith(request->command, list.Encode()));
}

void ProgressProcessor::OnSubscription(const RequestPtr& request, const Reply& reply) {
  auto header = remoting::TopicGroupRequest::Decode(request->command.ext);
  if (!header.ok()) {
    reply(BadRequest(request->command, header.status()));
    return;
  }
  remoting::QuerySubscriptionBody body;
  body.group = header->group;
  body.topic = header->topic;
  if (const auto found =
          context_.consumers.FindSubscription(GroupName(header->group), Topic(header->topic))) {
    body.known = true;
    body.subscription = *found;
  }
  reply(SuccessWith(request->command, body.Encode()));
}

void ProgressProcessor::OnAllOffsets(const RequestPtr& request, const Reply& reply) {
  remoting::ConsumerOffsetTable table;
  for (const GroupConfig& group : context_.store.state().Groups()) {
    for (const auto& [queue, offset] : context_.store.state().OffsetsOf(group.name)) {
      table.offset_table[queue.topic.value() + "@" + group.name.value()][queue.queue_id.value()] =
          offset.value();
    }
  }
  reply(SuccessWith(request->command, table.Encode()));
}

void ProgressProcessor::OnDelayOffsets(const RequestPtr& request, const Reply& reply) {
  remoting::DelayOffsetTable table;
  const auto levels = ParseDelayLevels(context_.store.state().delay_levels());
  const std::size_t count = levels.ok() ? levels->size() : 0;
  for (std::size_t level = 1; level <= count; ++level) {
    const auto number = static_cast<std::int32_t>(level);
    table.offset_table[number] = context_.store.state().DelayProgress(number).value();
  }
  reply(SuccessWith(request->command, table.Encode()));
}

void ProgressProcessor::OnReset(const RequestPtr& request, const Reply& reply) {
  auto header = remoting::ResetOffsetRequest::Decode(request->command.ext);
  if (!header.ok()) {
    reply(BadRequest(request->command, header.status()));
    return;
  }
  const auto topic = context_.store.state().FindTopic(Topic(header->topic));
  if (!topic) {
    reply(remoting::Command::ResponseTo(request->command, remoting::kTopicNotExist,
                                        "Topic " + header->topic + " does not exist"));
    return;
  }
  if (!context_.store.state().FindGroup(GroupName(header->group))) {
    reply(remoting::Command::ResponseTo(request->command, remoting::kSubscriptionGroupNotExist,
                                        "Group " + header->group + " does not exist"));
    return;
  }
  // First what the group has committed, so that it cannot overwrite the reset; then by time, from
  // files.
  context_.offsets.Flush(
      GroupName(header->group), request->arrived + kBudget,
      [this, request, reply, header = header.value(), topic = *topic](const Status& flushed) {
        if (flushed.code() == StatusCode::kNotLeader) {
          reply(NotLeaderResponse(request->command));
          return;
        }
        const bool posted = context_.store.node().PostReader(
            [this, request, reply, header, topic] { ReadReset(request, reply, header, topic); });
        if (!posted) reply(ResponseOf(request->command, Status::Busy("too many reads wait")));
      });
}

void ProgressProcessor::ReadReset(const RequestPtr& request, const Reply& reply,
                                  const remoting::ResetOffsetRequest& header,
                                  const TopicConfig& topic) {
  const GroupName group(header.group);
  std::vector<OffsetCommit> commits;
  for (std::int32_t id = 0; id < topic.read_queues; ++id) {
    if (header.queue_id >= 0 && header.queue_id != id) continue;
    const TopicQueue queue{topic.name, QueueId(id)};
    const QueueRange range = context_.store.RangeOf(queue);
    QueueOffset target = range.max;
    if (header.offset.has_value() && *header.offset >= 0) {
      target = QueueOffset(*header.offset);
      if (target < range.min || target > range.max) {
        reply(remoting::Command::ResponseTo(
            request->command, remoting::kSystemError,
            "Target offset " + std::to_string(*header.offset) + " not in consume queue range [" +
                std::to_string(range.min.value()) + "-" + std::to_string(range.max.value()) + "]"));
        return;
      }
    } else if (header.timestamp_ms >= 0) {
      auto by_time = context_.store.OffsetByTime(queue, header.timestamp_ms, false);
      if (!by_time.ok()) {
        reply(ResponseOf(request->command, by_time.status()));
        return;
      }
      target = by_time.value();
    }
    const auto stored = context_.store.state().FindOffset({group, queue});
    // Without force a reset only goes back.
    if (!header.is_force && stored && *stored < target) target = *stored;
    commits.push_back({{group, queue}, target, 0});
  }
  CommitReset(request, reply, header, std::move(commits));
}

void ProgressProcessor::CommitReset(const RequestPtr& request, const Reply& reply,
                                    const remoting::ResetOffsetRequest& header,
                                    std::vector<OffsetCommit> commits) {
  remoting::ResetOffsetBody body;
  for (const OffsetCommit& commit : commits) {
    body.offset_table[Name(commit.key.queue)] = commit.offset.value();
  }
  if (commits.empty()) {
    reply(SuccessWith(request->command, body.Encode()));
    return;
  }
  // From here on the group's own commits are ignored.
  const auto marks = context_.resets->Mark(commits, context_.clock.MonoNow());
  if (!marks.ok()) {
    reply(ResponseOf(request->command, marks.status()));
    return;
  }
  // In arrival order with the members' own commits: what arrived before it cannot overwrite it.
  context_.offsets.CommitNow(
      commits, request->arrived + kBudget,
      [this, request, reply, header, body, commits, id = *marks](const Status& status) {
        if (!status.ok()) {
          // Unknown: it may still be made, and an old commit must not undo it.
          if (status.code() != StatusCode::kTimedOut) context_.resets->Unmark(commits, id);
          reply(ResponseOf(request->command, status));
          return;
        }
        for (const OffsetCommit& commit : commits) {
          context_.pulled->Forget(commit.key.group.value(), commit.key.queue);
        }
        PushReset(header, body);
        // Held pulls look again: the reset's next pull may be one of them.
        if (context_.long_polling != nullptr) {
          context_.timers.Schedule(std::chrono::milliseconds(0),
                                   [this] { context_.long_polling->WakeAll(); });
        }
        reply(SuccessWith(request->command, request->command.language == "CPP" ? body.EncodeForCpp()
                                                                               : body.Encode()));
      });
}

void ProgressProcessor::PushReset(const remoting::ResetOffsetRequest& header,
                                  const remoting::ResetOffsetBody& body) {
  const auto group = context_.consumers.Find(GroupName(header.group));
  if (!group || group->message_model == remoting::MessageModel::kBroadcasting) return;
  remoting::ResetConsumerClientOffsetRequest push;
  push.topic = header.topic;
  push.group = header.group;
  push.timestamp_ms = header.timestamp_ms;
  push.is_force = header.is_force;
  push.queue_id = header.queue_id;
  for (const Member& member : group->members) {
    remoting::Command command = remoting::Command::Request(remoting::kResetConsumerClientOffset);
    command.flag |= remoting::kFlagOneway;
    command.serialize_type = member.connection->last_serialize_type();
    push.Encode(&command.ext);
    command.body = member.client.language == "CPP" ? body.EncodeForCpp() : body.Encode();
    member.connection->Send(std::move(command));
  }
}

}  // namespace triad::broker
