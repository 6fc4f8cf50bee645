// Dispatcher: which handler serves which request code.
//
// Filled once at start (every processor has `void Register(Dispatcher*)`), read-only afterwards.
// Also unwraps what another peer forwards (kForwardRequest) and judges it exactly like the
// original. Unknown code: 3 with the connection left open. Oneway requests: the answer is dropped
// here, so handlers always answer, exactly once. Thread: Dispatch is safe on every thread; handlers
// run on the caller's.

#pragma once

#include <chrono>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "broker/processor/codes.h"
#include "broker/processor/leader_gate.h"
#include "broker/processor/request.h"
#include "common/clock.h"

namespace triad::broker {

class Dispatcher {
 public:
  // `clock` and `gate` outlive the dispatcher.
  Dispatcher(const Clock& clock, LeaderGate& gate) : clock_(clock), gate_(gate) {}

  // Served by every peer itself. One handler per code.
  void Register(std::int32_t code, Handler handler);
  // Served by the leader only: `gate.Route(request, reply, policy, handler)`. A handler that finds
  // out too late that it is not the leader answers NotLeaderResponse and is routed again.
  void RegisterForLeader(std::int32_t code, LeaderGate::Policy policy, Handler handler);

  // A request as it came from a socket.
  void OnRequest(const remoting::ConnectionPtr& connection, remoting::Command command) const;
  // The same for one that came at `arrived`.
  void OnRequestFrom(const remoting::ConnectionPtr& connection, remoting::Command command,
                     TimePoint arrived) const;
  void Dispatch(RequestPtr request, Reply reply) const;
  std::vector<std::int32_t> codes() const;  // registered, ascending

 private:
  void OnForwarded(const remoting::ConnectionPtr& connection, remoting::Command outer) const;

  const Clock& clock_;
  LeaderGate& gate_;
  std::unordered_map<std::int32_t, Handler> handlers_;
};

// The wrapping of a forwarded request (leader_gate.cc sends it, the dispatcher takes it).
// `elapsed`: since the first arrival. Errors: kInvalidArgument.
Result<remoting::Command> WrapForwarded(const Request& request, std::chrono::milliseconds elapsed);
struct Forwarded {
  remoting::Command command;
  std::string client_address;
  std::chrono::milliseconds elapsed{0};
};
Result<Forwarded> UnwrapForwarded(const remoting::Command& outer);

}  // namespace triad::broker
