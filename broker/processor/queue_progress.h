// QueueProgress: where a group stands in one queue, as GET_CONSUME_STATS and
// GET_BROKER_CONSUME_STATS tell it (admin.md §2.6). Reads files: reader threads only.

#pragma once

#include "broker/processor/broker_context.h"
#include "remoting/admin_bodies.h"

namespace triad::broker {

remoting::ConsumeStats::Item QueueProgress(const BrokerContext& context, const GroupName& group,
                                           const TopicQueue& queue);

}  // namespace triad::broker
