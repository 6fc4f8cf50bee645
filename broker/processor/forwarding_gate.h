// ForwardingGate: the LeaderGate of a real broker.
//
// Knows the leader from the node's LeaderInfo. Held requests wait in the order of Request.arrived
// (forwarded ones: of coming here), one lane per client connection, and are routed again at every
// leader change; one that the other peer refused (NotLeader) is routed again a little later. While
// a request of a connection is held, its later ones go behind it: none overtakes. (What was passed
// on before that one came back may be done first.) Bounds: max_held requests and max_held_bytes of
// bodies; beyond them `late` at once. Thread: safe on every thread; a leaf mutex, nothing runs
// under it. Waiters run on the timer's thread.

#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "broker/processor/leader_gate.h"
#include "broker/service/timer_queue.h"
#include "common/clock.h"
#include "dledger/node.h"
#include "remoting/client.h"

namespace triad::broker {

class ForwardingGate : public LeaderGate {
 public:
  struct Options {
    PeerId self;
    std::size_t max_held = 20000;
    std::size_t max_held_bytes = 64u << 20;
  };
  // All references outlive the gate and whatever it holds.
  ForwardingGate(Options options, const Clock& clock, TimerQueue& timers, remoting::Client& client);
  ~ForwardingGate() override;

  // Any thread; never blocks.
  void OnLeaderChange(const dledger::LeaderInfo& info);
  // Answers everything that is held (late); nothing is held from now on.
  void Stop();

  bool leads() const override;
  void Route(RequestPtr request, Reply reply, Policy policy, Handler local) override;

  std::size_t held() const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace triad::broker
