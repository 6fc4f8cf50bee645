#include "dledger/peer/peer_address.h"

#include <algorithm>

namespace triad::dledger {

std::string PeersText(std::vector<PeerAddress> peers) {
  std::sort(peers.begin(), peers.end());
  std::string text;
  for (const PeerAddress& peer : peers) {
    if (!text.empty()) text += ';';
    const bool is_v6 = peer.host.find(':') != std::string::npos;
    text += peer.id.value() + '-' + (is_v6 ? '[' + peer.host + ']' : peer.host) + ':' +
            std::to_string(peer.port);
  }
  return text;
}

}  // namespace triad::dledger
