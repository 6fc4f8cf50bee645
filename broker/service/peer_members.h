// PeerMembers: what the other peers know of a consumer group's members and subscriptions.
//
// Every peer keeps its own table, filled by heartbeats that come every 30 s. A peer that was just
// started lacks members, and a list without a living member makes the others take its queues; it
// lacks subscriptions, and refuses pulls that rely on them. So while it is young it asks the
// others. Bounds: one request per peer and call, kAskBudget. Thread: safe on every thread; `done`
// runs on the remoting client's thread or the caller's.

#pragma once

#include <functional>
#include <vector>

#include "broker/service/ask_all.h"
#include "broker/service/client_registry.h"
#include "common/clock.h"
#include "common/ids.h"
#include "dledger/node.h"
#include "remoting/client.h"

namespace triad::broker {

class PeerMembers {
 public:
  // Request between peers: the members in the other one's own table (body as code 38's answer).
  static constexpr std::int32_t kRequest = 60004;
  // Request between peers: a group's subscription to a topic (body), else code 24.
  static constexpr std::int32_t kSubscriptionRequest = 60005;
  // Clients learn of a peer within a route poll and greet it within a heartbeat, 30 s each.
  static constexpr std::chrono::seconds kYoung{90};
  static constexpr std::chrono::milliseconds kAskBudget{500};

  // All outlive it and every answer.
  PeerMembers(const Clock& clock, dledger::Node& node, remoting::Client& client)
      : clock_(clock), node_(node), client_(client), started_at_(clock.MonoNow()) {}

  bool young() const { return clock_.MonoNow() - started_at_ < kYoung; }
  // The members that any other peer knows; those that do not answer in time count as knowing none.
  void Ask(const GroupName& group, std::function<void(std::vector<ClientId>)> done);
  // The newest subscription that any other peer knows in time; null: none does.
  void AskSubscription(const GroupName& group, const Topic& topic,
                       std::function<void(SubscriptionPtr)> done);

 private:
  void AskOthers(const remoting::Command& request, std::function<void(std::vector<Answered>)> done);

  const Clock& clock_;
  dledger::Node& node_;
  remoting::Client& client_;
  const TimePoint started_at_;
};

}  // namespace triad::broker
