// Handshake: who may talk to whom. What the dialling and the accepting side share.
//
// Owner: the transport's thread. Logs refusals, at most one line per peer and 5 s; remembers for
// which peer lists it warned. Bounds: kReasonsMax remembered texts.

#pragma once

#include <map>
#include <set>
#include <string>
#include <variant>

#include "common/clock.h"
#include "dledger/peer/transport.h"

namespace triad::dledger {

class Handshake {
 public:
  Handshake(const Clock& clock, TransportOptions options, PeerEvents* events);

  // The frame to say first, or to answer with. Filled from OwnState().
  PeerFrame OwnHello(const PeerId& to, std::string refusal);
  // Why the sender of `hello` is refused; empty = welcome. A differing peer list only warns, and
  // means nothing once the group has begun.
  std::string Check(const Hello& hello, std::uint64_t group_id);
  // Two group ids may meet when equal or when one is not set yet.
  bool GroupIdFits(std::uint64_t group_id) const;

  PeerFrame Wrap(std::variant<Hello, Message, SnapshotMessage> body) const;
  // One ERROR line, unless `whom` had one within 5 s.
  void LogRefusal(const std::string& whom, const std::string& text);

  const TransportOptions& options() const { return options_; }
  PeerEvents& events() const { return *events_; }
  const PeerAddress* Find(const PeerId& id) const;

 private:
  void WarnOfOtherPeers(const Hello& hello);

  const Clock& clock_;
  const TransportOptions options_;
  const std::string peers_text_;
  PeerEvents* const events_;
  std::map<std::string, TimePoint> logged_at_;
  std::set<std::string> warned_of_;
  std::uint64_t told_group_id_ = 0;  // by a peer of dLegerPeers; 0 = by nobody yet
};

}  // namespace triad::dledger
