// PeerAddress: one item of dLegerPeers, and the list's canonical text.
//
// Pure values.

#pragma once

#include <cstdint>
#include <optional>
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

// "host:port", "[::1]:port".
std::string HostPortText(const PeerAddress& peer);
// The inverse of HostPortText. Nothing when `text` is no such thing.
std::optional<PeerAddress> ParsePeerAddress(const PeerId& id, const std::string& text);
// "n0-host:port;n1-host:port", sorted by id.
std::string PeersText(std::vector<PeerAddress> peers);

}  // namespace triad::dledger
