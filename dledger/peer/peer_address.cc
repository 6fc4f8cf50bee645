#include "dledger/peer/peer_address.h"

#include <algorithm>
#include <charconv>

namespace triad::dledger {

std::string HostPortText(const PeerAddress& peer) {
  const bool is_v6 = peer.host.find(':') != std::string::npos;
  return (is_v6 ? '[' + peer.host + ']' : peer.host) + ':' + std::to_string(peer.port);
}

std::optional<PeerAddress> ParsePeerAddress(const PeerId& id, const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return std::nullopt;
  PeerAddress address{.id = id, .host = text.substr(0, colon)};
  const bool is_bracketed = address.host.front() == '[' && address.host.back() == ']';
  if (is_bracketed) address.host = address.host.substr(1, address.host.size() - 2);
  if (address.host.empty()) return std::nullopt;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, address.port);
  if (error != std::errc() || rest != end || address.port == 0) return std::nullopt;
  return address;
}

std::string PeersText(std::vector<PeerAddress> peers) {
  std::sort(peers.begin(), peers.end());
  std::string text;
  for (const PeerAddress& peer : peers) {
    if (!text.empty()) text += ';';
    text += peer.id.value() + '-' + HostPortText(peer);
  }
  return text;
}

}  // namespace triad::dledger
