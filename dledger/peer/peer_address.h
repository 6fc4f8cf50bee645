// PeerAddress: one item of dLegerPeers, and the list's canonical text.
//
// Pure values.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/ids.h"

namespace triad::dledger {

struct PeerAddress {
  PeerId id;
  std::string host;  // name or address; an IPv6 address without brackets
  std::uint16_t port = 0;
  auto operator<=>(const PeerAddress&) const = default;
};

// "n0-host:port;n1-host:port", sorted by id.
std::string PeersText(std::vector<PeerAddress> peers);

}  // namespace triad::dledger
