// The topics and groups that every broker has (wire.md §9.1, §8.5), as a command for the log.
//
// Pure: reads the configuration and the state, returns what is missing. The leader proposes it.

#pragma once

#include <vector>

#include "broker/config/broker_config.h"
#include "broker/state/replicated_state.h"

namespace triad::broker {

// Empty when nothing is missing.
StateCommand MissingSystemState(const BrokerConfig& config, const ReplicatedState& state);

// What the settings ask for: MissingSystemState, and TBW102 with as many queues as the group was
// told. Commands to be applied in order; none when all is there.
std::vector<StateCommand> DueSystemState(const BrokerConfig& config, const ReplicatedState& state);

// Dead-letter topics that only can be written, as old brokers made them: made readable. Empty when
// there is none.
StateCommand UnreadableDeadLetters(const ReplicatedState& state);

// The group and its %RETRY% topic, as they are created for a new consumer group; without what
// exists. `order`: a subscribed topic is an ordered one.
StateCommand MissingGroupState(const BrokerConfig& config, const ReplicatedState& state,
                               const GroupName& group, bool order, bool unit_mode);

}  // namespace triad::broker
