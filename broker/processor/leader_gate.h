// LeaderGate: what only the leader may do is done here by the leader, and sent on by everybody
// else.
//
// Leader and ready: the local handler runs. Another peer leads: the original frame, the client's
// address and the remaining budget go to it, one hop, on one FIFO connection per peer; a non-leader
// answers NotLeader(hint, term) and the first peer goes on holding. Nobody leads: held (bounded)
// until somebody does or the budget ends; then `late` answers. Budgets count from Request.arrived:
// locks 0.8 s; sends, send-backs, admin 2.5 s; offset query 2.5 s, then silence. Source:
// architecture.md §5, "Forwarding"; wire.md §2.2, §6.1. Thread: Route and Again are safe on every
// thread; handlers run on the caller's thread or the timer's.

#pragma once

#include <chrono>
#include <functional>

#include "broker/processor/request.h"

namespace triad::broker {

class LeaderGate {
 public:
  virtual ~LeaderGate() = default;

  struct Policy {
    std::chrono::milliseconds budget{2500};
    // Answer at the end of the budget; an empty function = silence (never an error: wire.md D1).
    std::function<remoting::Command(const Request&)> late;
    // Requests that get silence there all the same; may be empty.
    std::function<bool(const Request&)> silent;
    // May a forwarded request whose outcome is unknown (the connection broke) be sent again? True
    // for what changes nothing the second time; false for sends: they are answered 1.
    bool repeatable = false;
  };
  // This peer is the ready leader: Route would run `local` at once.
  virtual bool leads() const = 0;
  // Runs `local` when this peer is the ready leader, else forwards or holds.
  virtual void Route(RequestPtr request, Reply reply, Policy policy, Handler local) = 0;

  // The policy of a family: `late` answers `code` with a remark that says who leads and how long
  // was waited.
  static Policy For(std::chrono::milliseconds budget, int code);
  // Silence at the end of the budget; repeatable.
  static Policy Silent(std::chrono::milliseconds budget);
};

}  // namespace triad::broker
