#include "broker/processor/info_processor.h"

#include <utility>

#include "broker/processor/response.h"
#include "common/properties.h"
#include "remoting/bodies.h"
#include "remoting/headers.h"

namespace triad::broker {

void InfoProcessor::Register(Dispatcher* dispatcher) {
  dispatcher->Register(remoting::kGetBrokerConfig,
                       [this](RequestPtr request, Reply reply) { OnGetConfig(request, reply); });
  dispatcher->Register(remoting::kUpdateBrokerConfig,
                       [this](RequestPtr request, Reply reply) { OnUpdateConfig(request, reply); });
  dispatcher->Register(remoting::kGetBrokerRuntimeInfo,
                       [this](RequestPtr request, Reply reply) { OnRuntimeInfo(request, reply); });
}

void InfoProcessor::OnGetConfig(const RequestPtr& request, const Reply& reply) {
  remoting::Command response = SuccessWith(request->command, config_.Print());
  remoting::DataVersion version;
  version.counter = config_.version();
  remoting::GetBrokerConfigResponse header;
  header.version = version.Encode();
  header.Encode(&response.ext);
  reply(std::move(response));
}

void InfoProcessor::OnUpdateConfig(const RequestPtr& request, const Reply& reply) {
  const auto wanted = Properties::Parse(request->command.body);
  if (!wanted.ok()) {
    reply(remoting::Command::ResponseTo(
        request->command, remoting::kSystemError,
        "string2Properties error: " + std::string(wanted.status().message())));
    return;
  }
  const bool posted = context_.store.node().PostReader(
      [this, request, reply, wanted = *wanted] { Update(request, reply, wanted); });
  if (!posted) reply(ResponseOf(request->command, Status::Busy("too many reads wait")));
}

void InfoProcessor::Update(const RequestPtr& request, const Reply& reply,
                           const Properties& wanted) {
  const auto outcome = config_.Update(wanted, request->client_address);
  if (!outcome.ok()) {
    reply(ResponseOf(request->command, outcome.status()));
    return;
  }
  remoting::Command response = Success(request->command);
  response.remark = outcome->ToString();
  reply(std::move(response));
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
