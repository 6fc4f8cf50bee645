// MembershipHistory: which membership is in force. One takes effect when its entry is appended and
// is taken back when that entry is truncated.
//
// Pure. Owner: the core. Bounds: one element per membership entry in the log; kMembersMax members.
// Source: Ongaro's dissertation 4.1.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dledger/raft/types.h"

namespace triad::dledger {

// Half of the voters and one more.
inline std::size_t MajorityOf(const Membership& membership) {
  return membership.voters.size() / 2 + 1;
}
bool IsVoter(const Membership& membership, const PeerId& peer);
bool IsLearner(const Membership& membership, const PeerId& peer);
bool IsMember(const Membership& membership, const PeerId& peer);  // voter or learner
// Sorted, no duplicates, nobody both voter and learner, at least one voter.
bool IsWellFormed(const Membership& membership);

// `membership` after one change, which must make sense (RefusalOf).
// `address`: of a learner to be added.
Membership Changed(Membership membership, MembershipOp op, const PeerId& peer,
                   const std::string& address = {});
// Why the change makes no sense to this membership, whoever asks for it; kNone when it does.
ChangeRefusal RefusalOf(const Membership& membership, MembershipOp op, const PeerId& peer);
// For people: "another change of the membership is not committed yet".
std::string_view Describe(ChangeRefusal refusal);
std::string_view Describe(TransferFailure failure);

class MembershipHistory {
 public:
  // `base` is in force until the first of `in_log`, which is ascending by index.
  MembershipHistory(Membership base, std::vector<std::pair<LogIndex, Membership>> in_log);

  const Membership& current() const { return in_log_.empty() ? base_ : in_log_.back().second; }
  // Of the entry that holds the current one; 0 when no entry of the log does.
  LogIndex current_index() const { return in_log_.empty() ? LogIndex{0} : in_log_.back().first; }
  // In force for an entry at `index`, from the entries before it.
  const Membership& Before(LogIndex index) const;

  void Append(LogIndex index, Membership membership);
  // Returns whether the current membership changed.
  bool TruncateFrom(LogIndex from);
  // The log begins at `first`.
  void PurgeBefore(LogIndex first);
  void Reset(Membership base);

 private:
  Membership base_;
  std::vector<std::pair<LogIndex, Membership>> in_log_;
};

}  // namespace triad::dledger
