// InfoProcessor: a broker about itself: configuration (25, 26) and runtime information (28).
//
// Answered by every peer itself. Of an update the keys of the group go through the log, wherever it
// was asked, and the others concern the peer that was asked, after them; the answer's remark says
// what is in force where. Nothing of it is done when a part of it is refused, or when no leader
// takes the group's part. Thread: safe on every thread; what uses the file runs on a reader thread.

#pragma once

#include <memory>
#include <string>

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
  // One UPDATE_BROKER_CONFIG on its way.
  struct Update {
    RequestPtr request;
    Reply reply;
    DynamicConfig::Change change;
    std::string told;  // what the answer says of the group's part
  };
  using UpdatePtr = std::shared_ptr<Update>;

  void OnGetConfig(const RequestPtr& request, const Reply& reply);
  void OnUpdateConfig(const RequestPtr& request, const Reply& reply);
  void OnRuntimeInfo(const RequestPtr& request, const Reply& reply);

  // ---- where it was asked ----
  void Begin(const RequestPtr& request, const Reply& reply, const Properties& wanted);
  void OnGroupAnswer(const UpdatePtr& update, remoting::Command answer);
  // Until this peer has applied what the leader has.
  void AwaitHere(const UpdatePtr& update);
  void PostFinish(const UpdatePtr& update);
  void Finish(const UpdatePtr& update);

  // ---- the leader; each answers with what is in force in the group ----
  void Propose(const Settings& settings, const RequestPtr& request, const Reply& reply);
  void AddTopics(const Settings& settings, const RequestPtr& request, const Reply& reply);
  void Tell(const Settings& settings, const RequestPtr& request, const Reply& reply,
            const std::string& note);

  BrokerContext& context_;
  DynamicConfig& config_;
  const RuntimeInfo& info_;
};

}  // namespace triad::broker
