// InfoProcessor: a broker about itself: configuration (25, 26) and runtime information (28).
//
// Answered by every peer itself. UPDATE_BROKER_CONFIG is refused: no key can change while the
// broker runs, and an answer of success would be a lie. Thread: safe on every thread.

#pragma once

#include "broker/processor/broker_context.h"
#include "broker/processor/dispatcher.h"
#include "broker/service/runtime_info.h"

namespace triad::broker {

class InfoProcessor {
 public:
  InfoProcessor(BrokerContext& context, const RuntimeInfo& info) : context_(context), info_(info) {}
  void Register(Dispatcher* dispatcher);

 private:
  void OnGetConfig(const RequestPtr& request, const Reply& reply);
  void OnUpdateConfig(const RequestPtr& request, const Reply& reply);
  void OnRuntimeInfo(const RequestPtr& request, const Reply& reply);

  BrokerContext& context_;
  const RuntimeInfo& info_;
};

}  // namespace triad::broker
