// LockProcessor: LOCK_BATCH_MQ (41) and UNLOCK_BATCH_MQ (42). The leader only; budget 0.8 s, below
// the clients' 1 s.
//
// Beside lockOKMQSet the answer carries "fenceTokens": {"topic@queueId": token}, which stock
// clients ignore. Thread: safe on every thread. Source: wire.md §7.6.

#pragma once

#include "broker/processor/broker_context.h"
#include "broker/processor/dispatcher.h"
#include "remoting/client_bodies.h"

namespace triad::broker {

class LockProcessor {
 public:
  explicit LockProcessor(BrokerContext& context) : context_(context) {}
  void Register(Dispatcher* dispatcher);

 private:
  void OnLock(const RequestPtr& request, const Reply& reply);
  void OnUnlock(const RequestPtr& request, const Reply& reply);
  std::vector<TopicQueue> QueuesOf(const remoting::LockBatchRequest& body) const;

  BrokerContext& context_;
};

}  // namespace triad::broker
