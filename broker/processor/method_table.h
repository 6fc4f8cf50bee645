// MethodTable: registers methods of one processor with the dispatcher, each in a line.
//
// Methods take (request, reply) and answer exactly once; the processor outlives the dispatcher's
// use. What only the leader does is late with code 14, and but for ForLeaderOnce may be sent again
// when its outcome is unknown: it changes nothing the second time. Thread: at start only.

#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include "broker/processor/dispatcher.h"
#include "remoting/codes.h"

namespace triad::broker {

template <typename Processor>
class MethodTable {
 public:
  using Method = void (Processor::*)(const RequestPtr&, const Reply&);

  // `budget`: of what only the leader does.
  MethodTable(Dispatcher* dispatcher, Processor* processor, std::chrono::milliseconds budget)
      : dispatcher_(dispatcher),
        processor_(processor),
        policy_(LeaderGate::For(budget, remoting::kServiceNotAvailable)) {
    policy_.repeatable = true;
  }

  void ForAll(std::int32_t code, Method method) const {
    dispatcher_->Register(code, HandlerOf(method));
  }
  void ForLeader(std::int32_t code, Method method) const {
    dispatcher_->RegisterForLeader(code, policy_, HandlerOf(method));
  }
  // Not sent again when its outcome is unknown: the second time it would change, or take away, what
  // others made meanwhile.
  void ForLeaderOnce(std::int32_t code, Method method) const {
    LeaderGate::Policy once = policy_;
    once.repeatable = false;
    dispatcher_->RegisterForLeader(code, std::move(once), HandlerOf(method));
  }

 private:
  Handler HandlerOf(Method method) const {
    return [processor = processor_, method](const RequestPtr& request, const Reply& reply) {
      (processor->*method)(request, reply);
    };
  }

  Dispatcher* const dispatcher_;
  Processor* const processor_;
  LeaderGate::Policy policy_;
};

}  // namespace triad::broker
