// Who belongs to the group: changes of the membership, and whom to dial.

#include <glog/logging.h>

#include <algorithm>
#include <map>
#include <utility>

#include "dledger/log_driver.h"
#include "dledger/membership_codec.h"
#include "dledger/raft/membership.h"

namespace triad::dledger {
namespace {

constexpr std::size_t kMembershipBytesMax = 64u << 10;

std::string MembersText(const Membership& membership) {
  std::string text = JoinedIds(membership.voters);
  if (!membership.learners.empty()) text += "; learners " + JoinedIds(membership.learners);
  return text;
}

}  // namespace

void LogDriver::OnChange(MembershipOp op, const PeerAddress& peer, TimePoint deadline,
                         std::function<void(Status)> done) {
  if (!is_leader()) {
    done(Status::NotLeader(info_.leader.value()));
    return;
  }
  if (op == MembershipOp::kAddLearner && options_.peers.size() == 1 &&
      options_.peers[0].port == 0) {
    done(Status::InvalidArgument(
        "this peer has no peer port: it needs enableDLegerCommitLog and dLegerPeers"));
    return;
  }
  const std::string address = op == MembershipOp::kAddLearner ? HostPortText(peer) : std::string();
  if (peer.id.value().size() > kMemberTextBytesMax || address.size() > kMemberTextBytesMax) {
    done(Status::InvalidArgument("a peer's id and its host:port have at most " +
                                 std::to_string(kMemberTextBytesMax) + " bytes each"));
    return;
  }
  if (!HasRoomFor(kMembershipBytesMax, false)) {
    done(Status::Unavailable("no disk space for the log"));
    return;
  }
  if (changes_.size() >= kChangesMax) {
    done(Status::Busy("too many membership changes wait"));
    return;
  }
  const std::uint64_t context = next_change_++;
  changes_.push_back(
      PendingChange{.context = context, .deadline = deadline, .done = std::move(done)});
  ChangeMembership change;
  change.context = context;
  change.op = op;
  change.peer = peer.id;
  change.address = address;
  Step(std::move(change));
}

void LogDriver::OnChangeFate(const ChangeFate& fate) {
  const auto found = std::find_if(changes_.begin(), changes_.end(), [&](const PendingChange& c) {
    return c.context == fate.context;
  });
  if (found == changes_.end()) return;  // past its deadline
  const std::function<void(Status)> done = std::move(found->done);
  changes_.erase(found);
  switch (fate.outcome) {
    case ChangeFate::Outcome::kCommitted:
      LOG(INFO) << "the group's members are now " << MembersText(core_->membership());
      return done(Status::Ok());
    case ChangeFate::Outcome::kUnknown:
      return done(Status::TimedOut("leadership was lost; whether it is done, the status says"));
    case ChangeFate::Outcome::kRefused: break;
  }
  const std::string why(Describe(fate.why));
  switch (fate.why) {
    case ChangeRefusal::kNotLeader: return done(Status::NotLeader(info_.leader.value()));
    case ChangeRefusal::kUnknownPeer:
    case ChangeRefusal::kLastVoter: return done(Status::InvalidArgument(why));
    case ChangeRefusal::kAlreadyMember: return done(Status::AlreadyExists(why));
    default: return done(Status::Unavailable(why));
  }
}

void LogDriver::ExpireChanges() {
  const TimePoint now = clock_.MonoNow();
  std::vector<PendingChange> waiting = std::exchange(changes_, {});
  for (PendingChange& change : waiting) {
    if (change.deadline > now) {
      changes_.push_back(std::move(change));
    } else {
      change.done(Status::TimedOut("not committed yet; whether it will be, the status says"));
    }
  }
}

void LogDriver::ProposeMembership(const Membership& membership) {
  CHECK(is_tail_known_) << "a leader that is ready has appended";
  std::string payload = EncodeMembership(membership);
  RollIfNeeded(EntryBytes(payload.size()), options_.segment_bytes, &tail_);
  Step(Propose{
      MakeEntry(core_->term(), EntryType::kMembership, LogTimeMs(), std::move(payload), &tail_)});
}

// The members where the log says they are, those that are leaving, and, until this peer has read
// that it is a member, whoever its configuration names.
std::vector<PeerAddress> LogDriver::Members() const {
  const Membership& membership = core_->membership();
  std::map<PeerId, PeerAddress> configured;
  for (const PeerAddress& peer : options_.peers) configured[peer.id] = peer;
  std::map<PeerId, PeerAddress> wanted;
  const bool is_settled =
      membership.group_id != 0 && !core_->recovering() && IsMember(membership, options_.self);
  if (!is_settled) wanted = configured;
  const auto add = [&](const PeerId& id) {
    const auto told = membership.addresses.find(id);
    const auto address =
        told == membership.addresses.end() ? std::nullopt : ParsePeerAddress(id, told->second);
    if (address) {
      wanted[id] = *address;
    } else if (configured.contains(id)) {
      wanted[id] = configured[id];
    }
  };
  for (const PeerId& id : membership.voters) add(id);
  for (const PeerId& id : membership.learners) add(id);
  for (const PeerProgress& peer : core_->progress()) {
    if (!peer.leaving) continue;
    for (const PeerAddress& dialled : dialled_) {
      if (dialled.id == peer.peer) wanted[peer.peer] = dialled;
    }
  }
  wanted.erase(options_.self);
  std::vector<PeerAddress> list;
  for (auto& [id, address] : wanted) list.push_back(std::move(address));
  return list;
}

// Whoever speaks to this peer must get its answers, also a leader or candidate of a membership that
// this peer has not read yet: its log may be too short, and grows only if it can say so.
std::vector<PeerAddress> LogDriver::WantedPeers() const {
  std::vector<PeerAddress> wanted = Members();
  const TimePoint now = clock_.MonoNow();
  for (const auto& [id, caller] : callers_) {
    if (id == options_.self || !caller.IsHeard(now)) continue;
    const bool is_member =
        std::any_of(wanted.begin(), wanted.end(),
                    [&name = id](const PeerAddress& peer) { return peer.id == name; });
    if (is_member) continue;
    std::optional<PeerAddress> address = ParsePeerAddress(id, caller.peer_address);
    if (address) wanted.push_back(std::move(*address));
  }
  return wanted;
}

void LogDriver::UpdatePeers() {
  std::vector<PeerAddress> peers = WantedPeers();
  if (peers == dialled_) return;
  dialled_ = std::move(peers);
  hands_->SetPeers(dialled_);
}

void LogDriver::WarnOfOtherMembers() const {
  const Membership& membership = core_->membership();
  if (membership.group_id == 0) return;  // the log does not say yet
  std::vector<PeerId> members = membership.voters;
  members.insert(members.end(), membership.learners.begin(), membership.learners.end());
  std::sort(members.begin(), members.end());
  std::vector<PeerId> configured;
  for (const PeerAddress& peer : options_.peers) configured.push_back(peer.id);
  std::sort(configured.begin(), configured.end());
  LOG_IF(WARNING, members != configured)
      << "dLegerPeers names " << JoinedIds(configured) << ", the log says that the members are "
      << MembersText(membership)
      << ". The log is right: dLegerPeers counts for the first start of a group. Change the file.";
}

void LogDriver::FillPeers(NodeStatus* status) const {
  const TimePoint now = clock_.MonoNow();
  const std::vector<PeerAddress> peers = core_ == nullptr ? options_.peers : Members();
  for (const PeerAddress& address : peers) {
    if (address.id == options_.self) continue;
    NodeStatus::Peer peer;
    peer.id = address.id;
    peer.peer_address = HostPortText(address);
    const auto caller = callers_.find(address.id);
    if (caller != callers_.end()) {
      peer.client_address = caller->second.client_address;
      if (const auto& at = caller->second.heard_at) {
        peer.heard_ago = std::chrono::duration_cast<std::chrono::milliseconds>(now - *at);
      }
    }
    status->peers.push_back(std::move(peer));
  }
}

}  // namespace triad::dledger
