#include "dledger/peer/handshake.h"

#include <glog/logging.h>

#include <utility>

namespace triad::dledger {
namespace {

constexpr std::size_t kReasonsMax = 256;
constexpr std::chrono::seconds kLogInterval{5};

}  // namespace

Handshake::Handshake(const Clock& clock, TransportOptions options, PeerEvents* events)
    : clock_(clock),
      options_(std::move(options)),
      peers_text_(PeersText(options_.peers)),
      events_(events) {
  CHECK(events_ != nullptr);
}

PeerFrame Handshake::OwnHello(const PeerId& to, std::string refusal) {
  Hello hello = events_->OwnState();
  hello.version = kPeerProtocolVersion;
  hello.group = options_.group;
  hello.from = options_.self;
  hello.to = to;
  hello.peers = peers_text_;
  if (const PeerAddress* self = Find(options_.self)) hello.peer_address = HostPortText(*self);
  hello.refusal = std::move(refusal);
  PeerFrame frame;
  frame.wall_ms = clock_.WallNowMs();
  frame.group_id = events_->OwnGroupId();
  frame.body = std::move(hello);
  return frame;
}

std::string Handshake::Check(const Hello& hello, std::uint64_t group_id) {
  if (hello.version != kPeerProtocolVersion) {
    return "peer protocol version " + std::to_string(hello.version) + ", here " +
           std::to_string(kPeerProtocolVersion);
  }
  if (hello.group != options_.group) {
    return "dLegerGroup '" + hello.group + "', here '" + options_.group + "'";
  }
  if (!GroupIdFits(group_id)) {
    return "group id " + std::to_string(group_id) + ", here " +
           std::to_string(events_->OwnGroupId()) +
           ": its store belongs to another group of the same name";
  }
  if (hello.to != options_.self) {
    return "it wants to talk to '" + hello.to.value() + "', this is '" + options_.self.value() +
           "'";
  }
  if (hello.from == options_.self) return "it says it is '" + hello.from.value() + "' too";
  if (events_->OwnGroupId() != 0) return "";  // its log says who is a member
  if (Find(hello.from) != nullptr) {
    if (group_id != 0) told_group_id_ = group_id;
    WarnOfOtherPeers(hello);
    return "";
  }
  // A peer that lost its disk, and its list is old: those on it say which group this is.
  if (group_id != 0 && group_id == told_group_id_) return "";
  return "dLegerSelfId '" + hello.from.value() + "' is not in dLegerPeers here: " + peers_text_;
}

bool Handshake::GroupIdFits(std::uint64_t group_id) const {
  const std::uint64_t own = events_->OwnGroupId();
  return own == 0 || group_id == 0 || own == group_id;
}

PeerFrame Handshake::Wrap(std::variant<Hello, Message, SnapshotMessage> body) const {
  PeerFrame frame;
  frame.wall_ms = clock_.WallNowMs();
  frame.group_id = events_->OwnGroupId();
  frame.body = std::move(body);
  return frame;
}

void Handshake::LogRefusal(const std::string& whom, const std::string& text) {
  const TimePoint now = clock_.MonoNow();
  const auto found = logged_at_.find(whom);
  if (found != logged_at_.end() && now - found->second < kLogInterval) return;
  if (logged_at_.size() >= kReasonsMax) logged_at_.clear();
  logged_at_[whom] = now;
  LOG(ERROR) << "peer " << whom << ": " << text;
}

const PeerAddress* Handshake::Find(const PeerId& id) const {
  for (const PeerAddress& peer : options_.peers) {
    if (peer.id == id) return &peer;
  }
  return nullptr;
}

void Handshake::WarnOfOtherPeers(const Hello& hello) {
  if (hello.peers == peers_text_) return;
  if (warned_of_.size() >= kReasonsMax) return;
  if (!warned_of_.insert(hello.from.value() + ' ' + hello.peers).second) return;
  LOG(WARNING) << "dLegerPeers differ: here " << peers_text_ << "; at " << hello.from << " "
               << hello.peers;
}

}  // namespace triad::dledger
