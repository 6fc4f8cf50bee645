// WhenConfirmed: what only the leader may answer, from a state that misses nothing.
//
// Thread: safe on every thread; `then` runs as LeaderReads says and must not block.

#pragma once

#include <functional>

#include "broker/processor/broker_context.h"
#include "broker/processor/request.h"

namespace triad::broker {

// `then` runs when this peer led after the call and everything committed before it is applied;
// else the request is answered. Within kBudget of its arrival.
void WhenConfirmed(BrokerContext& context, const RequestPtr& request, const Reply& reply,
                   std::function<void()> then);

}  // namespace triad::broker
