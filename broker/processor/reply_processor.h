// ReplyProcessor: request-reply: SEND_REPLY_MESSAGE (324) and _V2 (325) are handed to the client
// that asked, as PUSH_REPLY_MESSAGE_TO_CLIENT (326).
//
// Answered by the peer that is asked: clients heartbeat every peer. The answer's code says whether
// the client took the reply; replies are not stored (docs/decisions.md). Thread: safe on every
// thread; nothing waits. Source: admin.md §6.8.

#pragma once

#include "broker/processor/broker_context.h"
#include "broker/processor/dispatcher.h"
#include "remoting/send_header.h"

namespace triad::broker {

inline constexpr std::chrono::milliseconds kPushReplyTimeout{10000};

class ReplyProcessor {
 public:
  // `context` outlives the processor.
  explicit ReplyProcessor(BrokerContext& context) : context_(context) {}
  void Register(Dispatcher* dispatcher);

 private:
  void OnReply(const RequestPtr& request, const Reply& reply);
  remoting::Command PushOf(const Request& request,
                           const remoting::SendMessageRequest& header) const;

  BrokerContext& context_;
};

}  // namespace triad::broker
