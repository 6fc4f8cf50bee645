#include "dledger/raft/membership.h"

#include <glog/logging.h>

#include <algorithm>

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

}  // namespace

bool IsVoter(const Membership& membership, const PeerId& peer) {
  return Contains(membership.voters, peer);
}

bool IsMember(const Membership& membership, const PeerId& peer) {
  return IsVoter(membership, peer) || Contains(membership.learners, peer);
}

bool IsWellFormed(const Membership& membership) {
  if (membership.voters.empty()) return false;
  if (!IsStrictlySorted(membership.voters) || !IsStrictlySorted(membership.learners)) return false;
  return std::none_of(membership.learners.begin(), membership.learners.end(),
                      [&](const PeerId& peer) { return IsVoter(membership, peer); });
}

MembershipHistory::MembershipHistory(Membership initial,
                                     std::vector<std::pair<LogIndex, Membership>> in_log)
    : initial_(std::move(initial)), in_log_(std::move(in_log)) {
  CHECK(IsWellFormed(initial_));
  for (std::size_t i = 0; i < in_log_.size(); ++i) {
    CHECK(IsWellFormed(in_log_[i].second));
    CHECK(i == 0 || in_log_[i - 1].first < in_log_[i].first);
  }
}

void MembershipHistory::Append(LogIndex index, Membership membership) {
  CHECK(in_log_.empty() || in_log_.back().first < index);
  CHECK(IsWellFormed(membership));
  in_log_.emplace_back(index, std::move(membership));
}

bool MembershipHistory::TruncateFrom(LogIndex from) {
  const std::size_t before = in_log_.size();
  while (!in_log_.empty() && in_log_.back().first >= from) in_log_.pop_back();
  return in_log_.size() != before;
}

}  // namespace triad::dledger
