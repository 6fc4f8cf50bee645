// InfoProcessor: a broker about itself: configuration (25, 26) and runtime information (28).
//
// Answered by every peer itself. The answer of an update says in its remark what is in force now
// and what only at the next start. Thread: safe on every thread; an update, which writes a file,
// runs on a reader thread.

#pragma once

#include "broker/processor/broker_context.h"
#include "broker/processor/dispatcher.h"
#include "broker/service/dynamic_config.h"
#include "broker/service/runtime_info.h"

namespace triad::broker {

class InfoProcessor {
 public:
  // All outlive the processor.
  InfoProcessor(BrokerContext& context, DynamicConfig& config, const RuntimeInfo& info)
      : context_(context), config_(config), info_(info) {}
  void Register(Dispatcher* dispatcher);

 private:
  void OnGetConfig(const RequestPtr& request, const Reply& reply);
  void OnUpdateConfig(const RequestPtr& request, const Reply& reply);
  void OnRuntimeInfo(const RequestPtr& request, const Reply& reply);

  void Update(const RequestPtr& request, const Reply& reply, const Properties& wanted);

  BrokerContext& context_;
  DynamicConfig& config_;
  const RuntimeInfo& info_;
};

}  // namespace triad::broker
