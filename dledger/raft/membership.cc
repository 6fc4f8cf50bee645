#include "dledger/raft/membership.h"

#include <glog/logging.h>

#include <algorithm>

#include "common/mutant.h"

namespace triad::dledger {
namespace {

bool Contains(const std::vector<PeerId>& peers, const PeerId& peer) {
  return std::find(peers.begin(), peers.end(), peer) != peers.end();
}

bool IsStrictlySorted(const std::vector<PeerId>& peers) {
  return std::adjacent_find(peers.begin(), peers.end(), [](const PeerId& a, const PeerId& b) {
           return !(a < b);
         }) == peers.end();
}

void InsertSorted(const PeerId& peer, std::vector<PeerId>* peers) {
  peers->insert(std::lower_bound(peers->begin(), peers->end(), peer), peer);
}

}  // namespace

bool IsVoter(const Membership& membership, const PeerId& peer) {
  return Contains(membership.voters, peer);
}

bool IsLearner(const Membership& membership, const PeerId& peer) {
  return Contains(membership.learners, peer);
}

bool IsMember(const Membership& membership, const PeerId& peer) {
  return IsVoter(membership, peer) || IsLearner(membership, peer);
}

bool IsWellFormed(const Membership& membership) {
  if (membership.voters.empty()) return false;
  if (!IsStrictlySorted(membership.voters) || !IsStrictlySorted(membership.learners)) return false;
  for (const auto& [peer, address] : membership.addresses) {
    if (!IsMember(membership, peer)) return false;
  }
  return std::none_of(membership.learners.begin(), membership.learners.end(),
                      [&](const PeerId& peer) { return IsVoter(membership, peer); });
}

ChangeRefusal RefusalOf(const Membership& membership, MembershipOp op, const PeerId& peer) {
  switch (op) {
    case MembershipOp::kAddLearner:
      if (peer.empty()) return ChangeRefusal::kUnknownPeer;
      if (IsMember(membership, peer)) return ChangeRefusal::kAlreadyMember;
      if (membership.voters.size() + membership.learners.size() >= kMembersMax) {
        return ChangeRefusal::kTooMany;
      }
      return ChangeRefusal::kNone;
    case MembershipOp::kPromote:
      if (IsVoter(membership, peer)) return ChangeRefusal::kAlreadyMember;
      return IsLearner(membership, peer) ? ChangeRefusal::kNone : ChangeRefusal::kUnknownPeer;
    case MembershipOp::kRemove:
      if (!IsMember(membership, peer)) return ChangeRefusal::kUnknownPeer;
      if (IsVoter(membership, peer) && membership.voters.size() == 1) {
        return ChangeRefusal::kLastVoter;
      }
      return ChangeRefusal::kNone;
  }
  return ChangeRefusal::kUnknownPeer;
}

Membership Changed(Membership membership, MembershipOp op, const PeerId& peer,
                   const std::string& address) {
  CHECK(RefusalOf(membership, op, peer) == ChangeRefusal::kNone);
  std::erase(membership.learners, peer);
  std::erase(membership.voters, peer);
  if (op == MembershipOp::kAddLearner) InsertSorted(peer, &membership.learners);
  if (op == MembershipOp::kPromote) InsertSorted(peer, &membership.voters);
  if (op == MembershipOp::kAddLearner && !address.empty()) membership.addresses[peer] = address;
  if (op == MembershipOp::kRemove) membership.addresses.erase(peer);
  CHECK(IsWellFormed(membership));
  return membership;
}

std::string_view Describe(ChangeRefusal refusal) {
  switch (refusal) {
    case ChangeRefusal::kNone: return "not refused";
    case ChangeRefusal::kNotLeader: return "this peer does not lead the group";
    case ChangeRefusal::kNotReady: return "the leader has only just been elected; try again";
    case ChangeRefusal::kTransferring: return "leadership is being handed over";
    case ChangeRefusal::kInFlight: return "another membership change is not committed yet";
    case ChangeRefusal::kUnknownPeer: return "no such member of the group";
    case ChangeRefusal::kAlreadyMember: return "it is that already";
    case ChangeRefusal::kNotCaughtUp: return "the learner has not caught up with the log";
    case ChangeRefusal::kLastVoter: return "it is the group's last voter";
    case ChangeRefusal::kNoQuorum:
      return "the voters that answer would be no majority of what remains";
    case ChangeRefusal::kTooMany: return "the group has as many members as it may have";
  }
  return "unknown";
}

std::string_view Describe(TransferFailure failure) {
  switch (failure) {
    case TransferFailure::kNotLeader: return "this peer does not lead the group";
    case TransferFailure::kInProgress: return "another transfer is under way";
    case TransferFailure::kNotVoter: return "the target is no other voter of the group";
    case TransferFailure::kNotReachable: return "the target does not answer";
    case TransferFailure::kNotCaughtUp:
      return "the target lags behind; the group would stand still";
    case TransferFailure::kNobody: return "no other voter is fit to lead";
    case TransferFailure::kTimedOut: return "the target did not take over in time";
  }
  return "unknown";
}

MembershipHistory::MembershipHistory(Membership base,
                                     std::vector<std::pair<LogIndex, Membership>> in_log)
    : base_(std::move(base)), in_log_(std::move(in_log)) {
  CHECK(IsWellFormed(base_));
  for (std::size_t i = 0; i < in_log_.size(); ++i) {
    CHECK(IsWellFormed(in_log_[i].second));
    CHECK(i == 0 || in_log_[i - 1].first < in_log_[i].first);
  }
}

const Membership& MembershipHistory::Before(LogIndex index) const {
  const Membership* result = &base_;
  for (const auto& [at, membership] : in_log_) {
    if (at < index) result = &membership;
  }
  return *result;
}

void MembershipHistory::Append(LogIndex index, Membership membership) {
  CHECK(in_log_.empty() || in_log_.back().first < index || TRIAD_MUTANT(14));
  CHECK(IsWellFormed(membership));
  in_log_.emplace_back(index, std::move(membership));
}

bool MembershipHistory::TruncateFrom(LogIndex from) {
  if (TRIAD_MUTANT(14)) return false;
  const std::size_t before = in_log_.size();
  while (!in_log_.empty() && in_log_.back().first >= from) in_log_.pop_back();
  return in_log_.size() != before;
}

void MembershipHistory::PurgeBefore(LogIndex first) {
  base_ = Before(first);
  std::erase_if(in_log_, [first](const auto& held) { return held.first < first; });
}

void MembershipHistory::Reset(Membership base) {
  CHECK(IsWellFormed(base));
  base_ = std::move(base);
  in_log_.clear();
}

}  // namespace triad::dledger
