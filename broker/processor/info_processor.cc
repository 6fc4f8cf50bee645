#include "broker/processor/info_processor.h"

#include <glog/logging.h>

#include <chrono>
#include <utility>
#include <vector>

#include "broker/processor/response.h"
#include "broker/processor/system_state.h"
#include "common/properties.h"
#include "remoting/bodies.h"
#include "remoting/headers.h"

namespace triad::broker {
namespace {

constexpr std::chrono::milliseconds kAwaitStep{10};

}  // namespace

void InfoProcessor::Register(Dispatcher* dispatcher) {
  dispatcher->Register(remoting::kGetBrokerConfig,
                       [this](RequestPtr request, Reply reply) { OnGetConfig(request, reply); });
  dispatcher->Register(remoting::kUpdateBrokerConfig,
                       [this](RequestPtr request, Reply reply) { OnUpdateConfig(request, reply); });
  dispatcher->Register(remoting::kGetBrokerRuntimeInfo,
                       [this](RequestPtr request, Reply reply) { OnRuntimeInfo(request, reply); });
}

void InfoProcessor::OnGetConfig(const RequestPtr& request, const Reply& reply) {
  remoting::Command response =
      SuccessWith(request->command, config_.Print(context_.store.node().leader_info().ready));
  remoting::DataVersion version;
  version.counter = config_.version();
  remoting::GetBrokerConfigResponse header;
  header.version = version.Encode();
  header.Encode(&response.ext);
  reply(std::move(response));
}

// ---- changes: where it was asked ----------------------------------------------------------------

void InfoProcessor::OnUpdateConfig(const RequestPtr& request, const Reply& reply) {
  const auto wanted = Properties::Parse(request->command.body);
  if (!wanted.ok()) {
    reply(remoting::Command::ResponseTo(
        request->command, remoting::kSystemError,
        "string2Properties error: " + std::string(wanted.status().message())));
    return;
  }
  const bool posted = context_.store.node().PostReader(
      [this, request, reply, wanted = *wanted] { Begin(request, reply, wanted); });
  if (!posted) reply(ResponseOf(request->command, Status::Busy("too many reads wait")));
}

void InfoProcessor::Begin(const RequestPtr& request, const Reply& reply, const Properties& wanted) {
  auto change = config_.Check(wanted);
  if (!change.ok()) {
    reply(ResponseOf(request->command, change.status()));
    return;
  }
  const auto update = std::make_shared<Update>(Update{request, reply, std::move(*change), {}});
  if (update->change.group.empty()) {
    Finish(update);
    return;
  }
  auto text = SetInPropertiesText("", update->change.group);
  CHECK(text.ok()) << text.status();
  // The leader gets the group's part alone: the rest is none of its own.
  auto part = std::make_shared<Request>(*request);
  part->command.body = std::move(*text);
  LeaderGate::Policy policy = LeaderGate::For(kBudget, remoting::kServiceNotAvailable);
  policy.repeatable = true;
  context_.gate.Route(
      std::move(part),
      [this, update](remoting::Command answer) { OnGroupAnswer(update, std::move(answer)); },
      std::move(policy),
      [this, update](const RequestPtr& routed, const Reply& answer) {
        Propose(update->change.group, routed, answer);
      });
}

void InfoProcessor::OnGroupAnswer(const UpdatePtr& update, remoting::Command answer) {
  if (answer.code == remoting::kSuccess) {
    update->told = answer.remark;
    AwaitHere(update);
    return;
  }
  if (!update->change.local.entries().empty()) {
    answer.remark += "; the keys of this peer alone were not changed";
  }
  update->reply(std::move(answer));
}

void InfoProcessor::AwaitHere(const UpdatePtr& update) {
  const bool is_here = config_.Has(update->change.group);
  if (!is_here && context_.clock.MonoNow() < update->request->arrived + kBudget) {
    context_.timers.Schedule(kAwaitStep, [this, update] { AwaitHere(update); });
    return;
  }
  if (!is_here) update->told += "; not seen in force at the peer that was asked";
  PostFinish(update);
}

void InfoProcessor::PostFinish(const UpdatePtr& update) {
  if (context_.store.node().PostReader([this, update] { Finish(update); })) return;
  // The file follows by itself.
  const bool is_done = update->change.local.entries().empty();
  remoting::Command response =
      is_done ? Success(update->request->command)
              : ResponseOf(update->request->command,
                           Status::Busy("too many reads wait: nothing was changed here"));
  response.remark += (response.remark.empty() ? "" : "; ") + update->told;
  update->reply(std::move(response));
}

void InfoProcessor::Finish(const UpdatePtr& update) {
  const remoting::Command& command = update->request->command;
  const auto outcome = config_.UpdateLocal(update->change.local, update->request->client_address);
  const Status written = config_.WriteGroup();
  remoting::Command response =
      outcome.ok() ? Success(command) : ResponseOf(command, outcome.status());
  std::string text = update->told;
  const std::string local = outcome.ok() ? outcome->ToString() : response.remark;
  text += (text.empty() || local.empty() ? "" : "; ") + local;
  if (!written.ok()) text += "; not in the file of this peer: " + std::string(written.message());
  response.remark = std::move(text);
  update->reply(std::move(response));
}

// ---- changes: the leader ------------------------------------------------------------------------

void InfoProcessor::Propose(const Settings& settings, const RequestPtr& request,
                            const Reply& reply) {
  for (const auto& [key, value] : settings) {
    LOG(INFO) << "configuration: " << request->client_address << " tells the group " << key << "="
              << value;
  }
  Proposal proposal;
  proposal.command.put_settings = settings;
  proposal.deadline = request->arrived + kBudget;
  proposal.done = [this, settings, request, reply](const AppendOutcome& outcome) {
    if (outcome.status.ok()) {
      AddTopics(settings, request, reply);
    } else {
      reply(ResponseOf(request->command, outcome.status));
    }
  };
  context_.store.appender().Submit(std::move(proposal));
}

// The topics that the settings ask for, before anybody is told that they are in force.
void InfoProcessor::AddTopics(const Settings& settings, const RequestPtr& request,
                              const Reply& reply) {
  std::vector<StateCommand> due = DueSystemState(context_.config, context_.store.state());
  if (due.empty()) {
    Tell(settings, request, reply, "");
    return;
  }
  for (std::size_t i = 0; i < due.size(); ++i) {
    Proposal proposal;
    proposal.command = std::move(due[i]);
    proposal.deadline = request->arrived + kBudget;
    const bool is_last = i + 1 == due.size();
    proposal.done = [this, settings, request, reply, is_last](const AppendOutcome& outcome) {
      if (!is_last) return;
      Tell(settings, request, reply,
           outcome.status.ok() ? ""
                               : "; its topics come with the next leader: " +
                                     std::string(outcome.status.message()));
    };
    context_.store.appender().Submit(std::move(proposal));
  }
}

void InfoProcessor::Tell(const Settings& settings, const RequestPtr& request, const Reply& reply,
                         const std::string& note) {
  remoting::Command response = Success(request->command);
  for (const auto& [key, value] : settings) {
    response.remark += (response.remark.empty() ? "in force in the group: " : ", ") + key;
  }
  response.remark += note;
  // Tools ask the name server for the route at once.
  context_.registration.RegisterNow(kRegisterBudget, [reply, response] { reply(response); });
}

void InfoProcessor::OnRuntimeInfo(const RequestPtr& request, const Reply& reply) {
  remoting::KVTable body;
  body.table = info_.Table();
  // Members of one group that subscribe differently: their messages vanish.
  body.table["triadSubscriptionConflicts"] =
      std::to_string(context_.consumers.subscription_conflicts());
  reply(SuccessWith(request->command, body.Encode()));
}

}  // namespace triad::broker
