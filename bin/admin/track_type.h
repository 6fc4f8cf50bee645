// TrackType: what became of a message in a consumer group, by what the group's brokers say of it.
//
// Pure. Source: behaviour of the original's admin library (5.3.3).

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "remoting/bodies.h"
#include "triad/admin.h"

namespace triad::admin {

// A message: where it stands, and its tag.
struct Tracked {
  remoting::MessageQueue queue;
  std::int64_t offset = 0;
  std::string tag;
};

// PULL: the group chooses offsets itself; CONSUMED: it is behind the message, whatever its listener
// did. `progress`: of all topics and brokers.
std::string_view TrackTypeOf(const remoting::ConsumerConnection& group,
                             const remoting::ConsumeStats& progress, const Tracked& message);

// Whose log a message is in that was stored at `store_host`, by the peers that are registered now;
// a peer that is gone may have been of the only group. Empty: nobody knows.
std::string BrokerNameAt(const std::string& store_host,
                         const std::vector<client::BrokerGroup>& groups);

}  // namespace triad::admin
