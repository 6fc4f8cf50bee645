#include "broker/processor/group_processor.h"

#include <utility>

#include "broker/processor/confirmed.h"
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
  methods.ForLeaderOnce(remoting::kUpdateAndCreateSubscriptionGroup, &GroupProcessor::OnUpdate);
  methods.ForLeaderOnce(remoting::kUpdateAndCreateSubscriptionGroupList,
                        &GroupProcessor::OnUpdateList);
  methods.ForLeaderOnce(remoting::kDeleteSubscriptionGroup, &GroupProcessor::OnDelete);
  methods.ForAll(remoting::kGetAllSubscriptionGroupConfig, &GroupProcessor::OnGetAll);
  methods.ForLeader(remoting::kGetSubscriptionGroupConfig, &GroupProcessor::OnGet);
  methods.ForAll(remoting::kSetMessageRequestMode, &GroupProcessor::OnRequestMode);
  dispatcher->Register(remoting::kUpdateAndGetGroupForbidden, OnForbidden);
}

void GroupProcessor::OnUpdate(const RequestPtr& request, const Reply& reply) {
  auto body = remoting::SubscriptionGroupConfigBody::Decode(request->command.body);
  if (!body.ok()) {
    reply(BadRequest(request->command, body.status()));
    return;
  }
  Put(request, reply, {FromBody(body.value())}, false);
}

void GroupProcessor::OnUpdateList(const RequestPtr& request, const Reply& reply) {
  auto body = remoting::SubscriptionGroupList::Decode(request->command.body);
  if (!body.ok()) {
    reply(BadRequest(request->command, body.status()));
    return;
  }
  std::vector<GroupConfig> groups;
  for (const auto& one : body->groups) groups.push_back(FromBody(one));
  Put(request, reply, groups, false);
}

void GroupProcessor::Put(const RequestPtr& request, const Reply& reply,
                         const std::vector<GroupConfig>& groups, bool confirmed) {
  Proposal proposal;
  for (const GroupConfig& group : groups) {
    const Status valid = CheckGroup(group);
    if (!valid.ok()) {
      reply(ResponseOf(request->command, valid));
      return;
    }
    const auto known = context_.store.state().FindGroup(group.name);
    if (known && *known == group) continue;
    proposal.command.put_groups.push_back(group);
  }
  if (!proposal.command.put_groups.empty()) {
    Submit(request, reply, std::move(proposal));
  } else if (confirmed) {
    reply(Success(request->command));
  } else {
    // Nothing to change, if this state is the newest: another leader may have changed it.
    WhenConfirmed(context_, request, reply,
                  [this, request, reply, groups] { Put(request, reply, groups, true); });
  }
}

void GroupProcessor::Submit(const RequestPtr& request, const Reply& reply, Proposal proposal) {
  proposal.deadline = request->arrived + kBudget;
  proposal.done = [this, request, reply,
                   deleted = proposal.command.delete_groups](const AppendOutcome& outcome) {
    for (const GroupName& group : deleted) {
      if (outcome.status.ok()) context_.pulled->ForgetGroup(group.value());
    }
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
  Proposal proposal;
  proposal.command.delete_groups.emplace_back(header->group_name);
  proposal.command.clean_offsets = header->clean_offset;
  if (header->clean_offset || context_.store.state().FindGroup(GroupName(header->group_name))) {
    Submit(request, reply, std::move(proposal));
    return;
  }
  WhenConfirmed(context_, request, reply, [this, request, reply, proposal] {
    if (context_.store.state().FindGroup(proposal.command.delete_groups.front())) {
      Submit(request, reply, proposal);
    } else {
      reply(Success(request->command));
    }
  });
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
  WhenConfirmed(context_, request, reply, [this, request, reply, name = header->group] {
    const auto group = context_.store.state().FindGroup(GroupName(name));
    if (group) {
      reply(SuccessWith(request->command, ToBody(*group).Encode()));
    } else {
      reply(remoting::Command::ResponseTo(request->command, remoting::kSubscriptionGroupNotExist,
                                          "No group in this broker. group: " + name));
    }
  });
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
