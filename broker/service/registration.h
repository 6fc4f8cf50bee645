// Registration: tells every name server who serves this group, and with which topics.
//
// All name servers in parallel; a dead one delays nobody. Registers within one timer tick of a
// leader change, on a topic change, every registerNameServerPeriod, and when a lost connection is
// back; in between BROKER_HEARTBEAT once a second (not to a name server that answers 3). As
// brokerId 0 only after a ReadIndex; a follower's id is its peer number + 1; stateVersion is the
// term. Thread: safe on every thread. Bounds: one call per name server in flight. Source: wire.md
// §3.2, §3.4, §10.3.

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "broker/config/broker_config.h"
#include "broker/service/leader_reads.h"
#include "broker/service/timer_queue.h"
#include "broker/state/replicated_state.h"
#include "common/clock.h"
#include "dledger/node.h"
#include "remoting/client.h"

namespace triad::broker {

// The name servers are told before a client looks the new table up; a slow one delays an answer so
// long.
inline constexpr std::chrono::milliseconds kRegisterBudget{1000};

class Registration {
 public:
  // All references outlive the object.
  Registration(const BrokerConfig& config, const Clock& clock, TimerQueue& timers,
               remoting::Client& client, const ReplicatedState& state, LeaderReads& reads);
  ~Registration();

  void Start();
  // Any thread, never blocks.
  void OnLeaderChange(const dledger::LeaderInfo& info);
  void OnTopicsChanged();
  void OnDisconnect(const std::string& address);
  // Another list of name servers; what is new is told at once, what is gone no more.
  void SetNameServers(const std::string& list);
  std::vector<std::string> name_servers() const;
  // Registers the table as it is now everywhere; `done` when every name server has it or
  // `timeout` has passed, whichever is first.
  void RegisterNow(std::chrono::milliseconds timeout, std::function<void()> done);
  // From now on as a follower, whatever the log says (leaving).
  void StepAside();
  // Unregisters everywhere and stops. Blocks for at most `timeout`.
  void Stop(std::chrono::milliseconds timeout);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

// "a:1; b:2;" to {"a:1", "b:2"}: blanks and empty items are dropped.
std::vector<std::string> SplitAddressList(const std::string& list);

}  // namespace triad::broker
