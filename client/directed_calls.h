// Directed calls: what a broker asks one consumer on a tool's behalf: running info (307), consume
// one message now (309), the offsets it stands at (221).
//
// Pure, but for the listener of 309, which runs on the caller's thread. Source: admin.md §6.4-6.6.

#pragma once

#include <functional>
#include <string>

#include "client/consumer_context.h"
#include "client/queue_table.h"
#include "common/clock.h"
#include "remoting/client_bodies.h"
#include "remoting/command.h"

namespace triad::client {

// Bodies of the answers to 307 and 221. `self`: as in heartbeats.
std::string RunningInfoBody(const ConsumerContext& context, const remoting::ConsumerData& self,
                            const QueueTable& table, TimePoint now);
std::string StatusBody(const ConsumerContext& context, const QueueTable& table,
                       const std::string& topic);

// Calls `listener` with the message in the request's body; offsets do not move. `listener` says
// whether the message was consumed, and may throw.
using DirectListener = std::function<bool(const Messages& messages, const MessageQueue& queue)>;
remoting::Command ConsumeDirectly(const remoting::Command& request, bool orderly,
                                  const DirectListener& listener);

}  // namespace triad::client
