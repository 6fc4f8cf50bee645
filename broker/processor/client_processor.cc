#include "broker/processor/client_processor.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "broker/processor/names.h"
#include "broker/processor/response.h"
#include "broker/processor/system_state.h"
#include "broker/service/peer_members.h"
#include "remoting/headers.h"
#include "remoting/json.h"

namespace triad::broker {
namespace {

constexpr std::chrono::milliseconds kEnsureBudget{2500};
// A group that this peer does not know (yet): its members' heartbeats may be on their way.
constexpr std::chrono::milliseconds kListBudget{1000};
constexpr std::chrono::milliseconds kListRetry{50};

constexpr std::string_view kGroupField = "group";
constexpr std::string_view kOrderField = "order";
constexpr std::string_view kUnitField = "unit";

// What several creations have come to; the last one answers.
struct Gathering {
  explicit Gathering(std::size_t n) : open(n) {}
  std::atomic<std::size_t> open;
  std::mutex mutex;
  Status first_error;
};

}  // namespace

void ClientProcessor::Register(Dispatcher* dispatcher) {
  dispatcher_ = dispatcher;
  dispatcher->Register(remoting::kHeartBeat,
                       [this](RequestPtr request, Reply reply) { OnHeartbeat(request, reply); });
  dispatcher->Register(remoting::kUnregisterClient,
                       [this](RequestPtr request, Reply reply) { OnUnregister(request, reply); });
  dispatcher->Register(remoting::kGetConsumerListByGroup,
                       [this](RequestPtr request, Reply reply) { OnConsumerList(request, reply); });
  dispatcher->Register(PeerMembers::kRequest,
                       [this](RequestPtr request, Reply reply) { OnPeerAsks(request, reply); });
  dispatcher->Register(PeerMembers::kSubscriptionRequest, [this](RequestPtr request, Reply reply) {
    OnPeerAsksSubscription(request, reply);
  });
  dispatcher->Register(remoting::kCheckClientConfig,
                       [this](RequestPtr request, Reply reply) { OnCheckConfig(request, reply); });
  auto policy = LeaderGate::For(kEnsureBudget, remoting::kServiceNotAvailable);
  policy.repeatable = true;
  dispatcher->RegisterForLeader(
      kEnsureGroupRequest, std::move(policy),
      [this](RequestPtr request, Reply reply) { OnEnsureGroup(request, reply); });
}

void ClientProcessor::OnHeartbeat(const RequestPtr& request, const Reply& reply) {
  const remoting::Command& command = request->command;
  auto heartbeat = remoting::HeartbeatData::Decode(command.body);
  if (!heartbeat.ok()) {
    reply(BadRequest(command, heartbeat.status()));
    return;
  }
  const TimePoint now = context_.clock.MonoNow();
  const ClientInfo client{ClientId(heartbeat->client_id), command.language, command.version};
  for (const std::string& group : heartbeat->producer_groups) {
    const Status added = context_.producers.Heartbeat(request->connection, client, group, now);
    if (added.ok()) continue;
    reply(ResponseOf(command, added));
    return;
  }
  EnsureGroups(request, heartbeat.value(),
               [this, request, reply, client, heartbeat = heartbeat.value()](const Status& ready) {
                 Status status = ready;
                 const TimePoint then = context_.clock.MonoNow();
                 for (const remoting::ConsumerData& group : heartbeat.consumers) {
                   // A group that may not exist is passed over in silence, like the original does.
                   if (!context_.store.state().FindGroup(GroupName(group.group_name)) &&
                       !context_.config.auto_create_group) {
                     continue;
                   }
                   if (!CheckGroupName(group.group_name).ok()) continue;
                   auto renewed = context_.consumers.Heartbeat(request->connection, client, group,
                                                               heartbeat.without_sub, then);
                   if (!renewed.ok()) status = renewed.status();
                 }
                 if (!status.ok()) {
                   reply(ResponseOf(request->command, status));
                   return;
                 }
                 remoting::Command response = Success(request->command);
                 remoting::HeartbeatResponse header;
                 header.Encode(&response.ext);
                 reply(std::move(response));
               });
}

bool ClientProcessor::IsOrdered(const remoting::ConsumerData& group) const {
  for (const remoting::SubscriptionData& subscription : group.subscriptions) {
    const auto topic = context_.store.state().FindTopic(Topic(subscription.topic));
    if (topic && topic->order) return true;
  }
  return false;
}

void ClientProcessor::EnsureGroups(const RequestPtr& request,
                                   const remoting::HeartbeatData& heartbeat,
                                   std::function<void(Status)> done) {
  std::vector<const remoting::ConsumerData*> missing;
  for (const remoting::ConsumerData& group : heartbeat.consumers) {
    if (!CheckGroupName(group.group_name).ok()) continue;
    const StateCommand wanted = MissingGroupState(context_.config, context_.store.state(),
                                                  GroupName(group.group_name), false, false);
    if (!wanted.put_groups.empty() || !wanted.put_topics.empty()) missing.push_back(&group);
  }
  if (missing.empty()) {
    done(Status::Ok());
    return;
  }
  auto gathering = std::make_shared<Gathering>(missing.size());
  for (const remoting::ConsumerData* group : missing) {
    auto ensure = std::make_shared<Request>();
    ensure->command = remoting::Command::Request(kEnsureGroupRequest);
    ensure->command.ext.Set(kGroupField, group->group_name);
    ensure->command.ext.SetBool(kOrderField, IsOrdered(*group));
    ensure->command.ext.SetBool(kUnitField, group->unit_mode);
    ensure->connection = request->connection;
    ensure->client_address = request->client_address;
    ensure->arrived = request->arrived;
    dispatcher_->Dispatch(std::move(ensure), [gathering, done](remoting::Command response) {
      if (response.code != remoting::kSuccess) {
        const std::lock_guard lock(gathering->mutex);
        gathering->first_error = Status::Unavailable(std::move(response.remark));
      }
      if (--gathering->open > 0) return;
      Status status;
      {
        const std::lock_guard lock(gathering->mutex);
        status = gathering->first_error;
      }
      done(std::move(status));
    });
  }
}

void ClientProcessor::OnEnsureGroup(const RequestPtr& request, const Reply& reply) {
  const remoting::ExtFields& ext = request->command.ext;
  auto group = ext.GetString(kGroupField);
  Status valid = group.ok() ? CheckGroupName(group.value()) : group.status();
  if (!valid.ok()) {
    reply(ResponseOf(request->command, valid));
    return;
  }
  Proposal proposal;
  proposal.command =
      MissingGroupState(context_.config, context_.store.state(), GroupName(group.value()),
                        ext.BoolOr(kOrderField, false), ext.BoolOr(kUnitField, false));
  if (proposal.command.put_groups.empty() && proposal.command.put_topics.empty()) {
    reply(Success(request->command));
    return;
  }
  proposal.deadline = request->arrived + kEnsureBudget;
  proposal.done = [this, request, reply](const AppendOutcome& outcome) {
    if (!outcome.status.ok()) {
      reply(ResponseOf(request->command, outcome.status));
      return;
    }
    context_.registration.RegisterNow(kRegisterBudget,
                                      [request, reply] { reply(Success(request->command)); });
  };
  context_.store.appender().Submit(std::move(proposal));
}

void ClientProcessor::OnUnregister(const RequestPtr& request, const Reply& reply) {
  auto header = remoting::UnregisterClientRequest::Decode(request->command.ext);
  if (!header.ok()) {
    reply(BadRequest(request->command, header.status()));
    return;
  }
  if (!header->producer_group.empty()) {
    context_.producers.Unregister(request->connection, header->producer_group);
  }
  if (!header->consumer_group.empty()) {
    context_.consumers.Unregister(request->connection, GroupName(header->consumer_group));
  }
  reply(Success(request->command));
}

void ClientProcessor::OnConsumerList(const RequestPtr& request, const Reply& reply) {
  auto header = remoting::ConsumerGroupRequest::Decode(request->command.ext);
  if (!header.ok()) {
    reply(BadRequest(request->command, header.status()));
    return;
  }
  const GroupName group(header->consumer_group);
  if (context_.peer_members == nullptr || !context_.peer_members->young()) {
    AnswerList(request, reply, group, {});
    return;
  }
  context_.peer_members->Ask(group,
                             [this, request, reply, group](const std::vector<ClientId>& others) {
                               AnswerList(request, reply, group, others);
                             });
}

// The members in this peer's own table, for a peer that asks.
void ClientProcessor::OnPeerAsks(const RequestPtr& request, const Reply& reply) {
  auto header = remoting::ConsumerGroupRequest::Decode(request->command.ext);
  if (!header.ok()) {
    reply(ResponseOf(request->command, header.status()));
    return;
  }
  remoting::ConsumerIdList list;
  for (const ClientId& id : context_.consumers.ClientIds(GroupName(header->consumer_group))) {
    list.ids.push_back(id.value());
  }
  reply(SuccessWith(request->command, list.Encode()));
}

void ClientProcessor::OnPeerAsksSubscription(const RequestPtr& request, const Reply& reply) {
  const auto group = request->command.ext.GetString("consumerGroup");
  const auto topic = request->command.ext.GetString("topic");
  for (const Status& status : {group.status(), topic.status()}) {
    if (status.ok()) continue;
    reply(BadRequest(request->command, status));
    return;
  }
  const SubscriptionPtr known =
      context_.consumers.FindSubscription(GroupName(group.value()), Topic(topic.value()));
  if (known == nullptr) {
    reply(remoting::Command::ResponseTo(
        request->command, remoting::kSubscriptionNotExist,
        "group " + group.value() + " does not subscribe to " + topic.value() + " here"));
    return;
  }
  remoting::JsonWriter writer;
  known->WriteTo(&writer);
  reply(SuccessWith(request->command, writer.Take()));
}

void ClientProcessor::AnswerList(const RequestPtr& request, const Reply& reply,
                                 const GroupName& group, const std::vector<ClientId>& others) {
  remoting::ConsumerIdList list;
  for (const ClientId& id : context_.consumers.ClientIds(group)) list.ids.push_back(id.value());
  for (const ClientId& id : others) {
    if (std::find(list.ids.begin(), list.ids.end(), id.value()) != list.ids.end()) continue;
    list.ids.push_back(id.value());
  }
  if (!list.ids.empty()) {
    reply(SuccessWith(request->command, list.Encode()));
    return;
  }
  // Go takes an error for an empty list and drops its queues: better late than wrong.
  const bool may_wait = context_.clock.MonoNow() - request->arrived < kListBudget;
  if (may_wait && context_.timers.Schedule(kListRetry, [this, request, reply] {
        OnConsumerList(request, reply);
      }) != 0) {
    return;
  }
  reply(remoting::Command::ResponseTo(request->command, remoting::kSystemError,
                                      "no consumer for this group, " + group.value()));
}

void ClientProcessor::OnCheckConfig(const RequestPtr& request, const Reply& reply) {
  auto body = remoting::CheckClientConfigBody::Decode(request->command.body);
  if (!body.ok()) {
    reply(BadRequest(request->command, body.status()));
    return;
  }
  const std::string& type = body->subscription.expression_type;
  if (type.empty() || type == "TAG") {
    reply(Success(request->command));
    return;
  }
  reply(remoting::Command::ResponseTo(
      request->command, remoting::kSystemError,
      "The broker does not support consumer to filter message by " + type));
}

}  // namespace triad::broker
