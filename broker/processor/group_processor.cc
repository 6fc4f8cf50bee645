#include "broker/processor/group_processor.h"

#include <utility>

#include "broker/processor/method_table.h"
#include "broker/processor/names.h"
#include "broker/processor/response.h"
#include "broker/service/config_bodies.h"
#include "remoting/bodies.h"
#include "remoting/headers.h"

namespace triad::broker {
namespace {

Status CheckGroup(const GroupConfig& group) {
  TRIAD_RETURN_IF_ERROR(CheckGroupName(group.name.value()));
  if (group.retry_queue_nums < 0 || group.retry_queue_nums > 1024) {
    return Status::InvalidArgument("retryQueueNums must be 0 to 1024");
  }
  if (group.retry_max_times < 0) {
    return Status::InvalidArgument("retryMaxTimes must not be negative");
  }
  return Status::Ok();
}

}  // namespace

void GroupProcessor::Register(Dispatcher* dispatcher) {
  const MethodTable methods(dispatcher, this, kBudget);
  methods.ForLeader(remoting::kUpdateAndCreateSubscriptionGroup, &GroupProcessor::OnUpdate);
  methods.ForLeader(remoting::kUpdateAndCreateSubscriptionGroupList, &GroupProcessor::OnUpdateList);
  // Not repeated: the second time it would take the next group of that name, and its offsets.
  dispatcher->RegisterForLeader(
      remoting::kDeleteSubscriptionGroup, LeaderGate::For(kBudget, remoting::kServiceNotAvailable),
      [this](RequestPtr request, Reply reply) { OnDelete(request, reply); });
  methods.ForAll(remoting::kGetAllSubscriptionGroupConfig, &GroupProcessor::OnGetAll);
  methods.ForAll(remoting::kGetSubscriptionGroupConfig, &GroupProcessor::OnGet);
  methods.ForAll(remoting::kSetMessageRequestMode, &GroupProcessor::OnRequestMode);
  dispatcher->Register(remoting::kUpdateAndGetGroupForbidden, OnForbidden);
}

void GroupProcessor::OnUpdate(const RequestPtr& request, const Reply& reply) {
  auto body = remoting::SubscriptionGroupConfigBody::Decode(request->command.body);
  if (!body.ok()) {
    reply(BadRequest(request->command, body.status()));
    return;
  }
  Put(request, reply, {FromBody(body.value())});
}

void GroupProcessor::OnUpdateList(const RequestPtr& request, const Reply& reply) {
  auto body = remoting::SubscriptionGroupList::Decode(request->command.body);
  if (!body.ok()) {
    reply(BadRequest(request->command, body.status()));
    return;
  }
  std::vector<GroupConfig> groups;
  for (const auto& one : body->groups) groups.push_back(FromBody(one));
  Put(request, reply, std::move(groups));
}

void GroupProcessor::Put(const RequestPtr& request, const Reply& reply,
                         std::vector<GroupConfig> groups) {
  Proposal proposal;
  for (GroupConfig& group : groups) {
    const Status valid = CheckGroup(group);
    if (!valid.ok()) {
      reply(ResponseOf(request->command, valid));
      return;
    }
    const auto known = context_.store.state().FindGroup(group.name);
    if (known && *known == group) continue;
    proposal.command.put_groups.push_back(std::move(group));
  }
  if (proposal.command.put_groups.empty()) {
    reply(Success(request->command));
    return;
  }
  proposal.deadline = request->arrived + kBudget;
  proposal.done = [request, reply](const AppendOutcome& outcome) {
    reply(ResponseOf(request->command, outcome.status));
  };
  context_.store.appender().Submit(std::move(proposal));
}

void GroupProcessor::OnDelete(const RequestPtr& request, const Reply& reply) {
  auto header = remoting::DeleteSubscriptionGroupRequest::Decode(request->command.ext);
  if (!header.ok()) {
    reply(BadRequest(request->command, header.status()));
    return;
  }
  const GroupName group(header->group_name);
  if (!context_.store.state().FindGroup(group) && !header->clean_offset) {
    reply(Success(request->command));
    return;
  }
  Proposal proposal;
  proposal.command.delete_groups.push_back(group);
  proposal.command.clean_offsets = header->clean_offset;
  proposal.deadline = request->arrived + kBudget;
  proposal.done = [request, reply](const AppendOutcome& outcome) {
    reply(ResponseOf(request->command, outcome.status));
  };
  context_.store.appender().Submit(std::move(proposal));
}

void GroupProcessor::OnGetAll(const RequestPtr& request, const Reply& reply) {
  remoting::SubscriptionGroupWrapper wrapper;
  const DataVersion version = context_.store.state().data_version();
  wrapper.data_version.counter = version.counter;
  wrapper.data_version.timestamp_ms = version.timestamp_ms;
  for (const GroupConfig& group : context_.store.state().Groups()) {
    wrapper.groups.emplace(group.name.value(), ToBody(group));
  }
  reply(SuccessWith(request->command, wrapper.Encode()));
}

void GroupProcessor::OnGet(const RequestPtr& request, const Reply& reply) {
  auto header = remoting::GroupRequest::Decode(request->command.ext);
  if (!header.ok()) {
    reply(BadRequest(request->command, header.status()));
    return;
  }
  const auto group = context_.store.state().FindGroup(GroupName(header->group));
  if (group) {
    reply(SuccessWith(request->command, ToBody(*group).Encode()));
  } else {
    reply(remoting::Command::ResponseTo(request->command, remoting::kSubscriptionGroupNotExist,
                                        "No group in this broker. group: " + header->group));
  }
}

// No group is ever forbidden a topic: reading that, and allowing it, is what can be done.
void GroupProcessor::OnForbidden(const RequestPtr& request, const Reply& reply) {
  const remoting::ExtFields& fields = request->command.ext;
  const auto group = fields.GetString("group");
  const auto topic = fields.GetString("topic");
  if (!group.ok() || !topic.ok()) {
    reply(BadRequest(request->command, group.ok() ? topic.status() : group.status()));
    return;
  }
  if (!fields.BoolOr("readable", true)) {
    reply(NotSupported(request->command, "a group cannot be forbidden a topic"));
    return;
  }
  remoting::JsonWriter writer;
  writer.BeginObject();
  writer.Key("group").String(*group);
  writer.Key("readable").Bool(true);
  writer.Key("topic").String(*topic);
  writer.EndObject();
  reply(SuccessWith(request->command, writer.Take()));
}

// Every group pulls; to say so again changes nothing.
void GroupProcessor::OnRequestMode(const RequestPtr& request, const Reply& reply) {
  const auto body = remoting::Json::Parse(request->command.body);
  if (!body.ok() || !body->is_object()) {
    reply(BadRequest(request->command,
                     Status::InvalidArgument("SetMessageRequestModeRequestBody: no JSON object")));
    return;
  }
  const std::string topic = (*body)["topic"].AsString();
  const GroupName group((*body)["consumerGroup"].AsString());
  const auto refuse = [&](std::int32_t code, std::string remark) {
    reply(remoting::Command::ResponseTo(request->command, code, std::move(remark)));
  };
  if (topic.starts_with("%RETRY%")) {
    refuse(remoting::kNoPermission, "retry topic is not allowed to set mode");
  } else if (!context_.store.state().FindTopic(Topic(topic))) {
    refuse(remoting::kTopicNotExist, "topic[" + topic + "] not exist");
  } else if (!context_.store.state().FindGroup(group)) {
    refuse(remoting::kSubscriptionGroupNotExist, "subscription group not exist");
  } else if ((*body)["mode"].AsString("PULL") != "PULL") {
    reply(NotSupported(request->command, "POP is not there yet, groups pull"));
  } else {
    reply(Success(request->command));
  }
}

}  // namespace triad::broker
