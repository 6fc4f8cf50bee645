// MembershipHistory: which membership is in force. One takes effect when its entry is appended and
// is taken back when that entry is truncated.
//
// Pure. Owner: the core. Bounds: one element per membership entry in the log.
// Source: Ongaro's dissertation 4.1.

#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "dledger/raft/types.h"

namespace triad::dledger {

// Half of the voters and one more.
inline std::size_t MajorityOf(const Membership& membership) {
  return membership.voters.size() / 2 + 1;
}
bool IsVoter(const Membership& membership, const PeerId& peer);
bool IsMember(const Membership& membership, const PeerId& peer);  // voter or learner
// Sorted, no duplicates, nobody both voter and learner, at least one voter.
bool IsWellFormed(const Membership& membership);

class MembershipHistory {
 public:
  // `in_log` ascending by index.
  MembershipHistory(Membership initial, std::vector<std::pair<LogIndex, Membership>> in_log);

  const Membership& current() const { return in_log_.empty() ? initial_ : in_log_.back().second; }
  void Append(LogIndex index, Membership membership);
  // Returns whether the current membership changed.
  bool TruncateFrom(LogIndex from);

 private:
  Membership initial_;
  std::vector<std::pair<LogIndex, Membership>> in_log_;
};

}  // namespace triad::dledger
