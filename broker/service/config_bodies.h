// Topic and group configurations between the replicated state and the wire.
//
// Pure.

#pragma once

#include "broker/state/replicated_state.h"
#include "remoting/admin_bodies.h"
#include "remoting/route_bodies.h"

namespace triad::broker {

remoting::TopicConfigBody ToBody(const TopicConfig& topic);
TopicConfig FromBody(const remoting::TopicConfigBody& body);
remoting::SubscriptionGroupConfigBody ToBody(const GroupConfig& group);
GroupConfig FromBody(const remoting::SubscriptionGroupConfigBody& body);

// The whole topic table. `broker_permission` takes read or write off every topic (6 = none).
remoting::TopicConfigSerializeWrapper TopicTable(const ReplicatedState& state,
                                                 std::int64_t state_version,
                                                 std::int32_t broker_permission);

}  // namespace triad::broker
