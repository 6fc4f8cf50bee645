// Private codes between the peers of one group; everything else is in remoting/codes.h.

#pragma once

#include <cstdint>

#include "remoting/codes.h"

namespace triad::broker {

// Request, peer to peer: a client's request, wrapped (dispatcher.h).
inline constexpr std::int32_t kForwardRequest = 60001;
// Request, made by a peer for itself: create a consumer group and its retry topic.
inline constexpr std::int32_t kEnsureGroupRequest = 60003;
// 60004, 60005: peer to peer, the members and the subscriptions of a group
// (broker/service/peer_members.h).
// Response, from the other peer or from a handler to the gate: nothing was done, somebody else
// leads. Never reaches a client.
inline constexpr std::int32_t kNotLeaderResponse = 60002;

}  // namespace triad::broker
