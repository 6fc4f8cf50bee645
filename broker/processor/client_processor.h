// ClientProcessor: heartbeats, leaving, membership lists: HEART_BEAT (34), UNREGISTER_CLIENT (35),
// GET_CONSUMER_LIST_BY_GROUP (38), CHECK_CLIENT_CONFIG (46).
//
// Every peer takes heartbeats itself, so a new leader already knows the groups. Before a heartbeat
// is answered, its groups and their %RETRY% topics exist and are registered: the leader creates
// them (kEnsureGroupRequest, forwarded like a client's request). Thread: safe on every thread.
// Source: wire.md §4.1-4.3, §7.2.

#pragma once

#include <memory>
#include <string>

#include "broker/processor/broker_context.h"
#include "broker/processor/dispatcher.h"
#include "remoting/client_bodies.h"

namespace triad::broker {

class ClientProcessor {
 public:
  explicit ClientProcessor(BrokerContext& context) : context_(context) {}
  void Register(Dispatcher* dispatcher);

 private:
  void OnHeartbeat(const RequestPtr& request, const Reply& reply);
  void OnUnregister(const RequestPtr& request, const Reply& reply);
  void OnConsumerList(const RequestPtr& request, const Reply& reply);
  void OnCheckConfig(const RequestPtr& request, const Reply& reply);
  void OnEnsureGroup(const RequestPtr& request, const Reply& reply);

  // Calls `done` when every group of the heartbeat has its configuration and retry topic.
  void EnsureGroups(const RequestPtr& request, const remoting::HeartbeatData& heartbeat,
                    std::function<void(Status)> done);
  void OnPeerAsks(const RequestPtr& request, const Reply& reply);
  void OnPeerAsksSubscription(const RequestPtr& request, const Reply& reply);
  void AnswerList(const RequestPtr& request, const Reply& reply, const GroupName& group,
                  const std::vector<ClientId>& others);
  bool IsOrdered(const remoting::ConsumerData& group) const;

  BrokerContext& context_;
  Dispatcher* dispatcher_ = nullptr;
};

}  // namespace triad::broker
