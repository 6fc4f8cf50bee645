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
  remoting::Command response =
      SuccessWith(request->command, BrokerConfigTable().Print(context_.config));
  remoting::DataVersion version;  // the configuration never changes while the broker runs
  remoting::GetBrokerConfigResponse header;
  header.version = version.Encode();
  header.Encode(&response.ext);
  reply(std::move(response));
}

void InfoProcessor::OnUpdateConfig(const RequestPtr& request, const Reply& reply) {
  auto wanted = Properties::Parse(request->command.body);
  if (!wanted.ok()) {
    reply(remoting::Command::ResponseTo(request->command, remoting::kSystemError,
                                        "string2Properties error"));
    return;
  }
  std::string keys;
  for (const auto& [key, entry] : wanted->entries()) keys += (keys.empty() ? "" : ", ") + key;
  const std::string file =
      context_.config.config_file.empty() ? "its configuration file" : context_.config.config_file;
  reply(remoting::Command::ResponseTo(
      request->command, remoting::kNoPermission,
      "no key can be changed while this broker runs; edit " + file +
          " and restart the peer (the others go on serving). Not changed: " + keys));
}

void InfoProcessor::OnRuntimeInfo(const RequestPtr& request, const Reply& reply) {
  remoting::KVTable body;
  body.table = info_.Table();
  reply(SuccessWith(request->command, body.Encode()));
}

}  // namespace triad::broker
