// RelayProcessor: requests of a tool that only a client can answer: GET_CONSUMER_RUNNING_INFO
// (307), CONSUME_MESSAGE_DIRECTLY (309), INVOKE_BROKER_TO_GET_CONSUMER_STATUS (223, as 221).
//
// Answered by the peer that is asked: consumers heartbeat every peer. What a client answers to 307
// and 309 is passed on as it is. Thread: safe on every thread; nothing waits. Source: admin.md §6.4
// to §6.6.

#pragma once

#include <chrono>

#include "broker/processor/broker_context.h"
#include "broker/processor/dispatcher.h"
#include "remoting/headers.h"

namespace triad::broker {

inline constexpr std::chrono::milliseconds kRelayTimeout{10000};
inline constexpr std::chrono::milliseconds kStatusTimeout{5000};

class RelayProcessor {
 public:
  // `context` outlives the processor.
  explicit RelayProcessor(BrokerContext& context) : context_(context) {}
  void Register(Dispatcher* dispatcher);

 private:
  void OnRunningInfo(const RequestPtr& request, const Reply& reply);
  void OnConsumeDirectly(const RequestPtr& request, const Reply& reply);
  void OnConsumerStatus(const RequestPtr& request, const Reply& reply);

  // Sends `relayed` to the client that `header` names and answers what it answers.
  void Relay(const RequestPtr& request, const Reply& reply,
             const remoting::ClientDirectedRequest& header, remoting::Command relayed);

  BrokerContext& context_;
};

}  // namespace triad::broker
