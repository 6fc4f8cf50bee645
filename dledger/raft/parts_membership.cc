#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "common/mutant.h"
#include "dledger/raft/parts.h"

namespace triad::dledger {

bool Core::Parts::MembershipCommitted() const {
  return members.current_index() <= commit;
}

// The voters of `after` that answer are a majority of them.
bool Core::Parts::MajorityAnswers(const Membership& after) const {
  const auto answers = [&](const PeerId& voter) {
    if (voter == config.self) return true;
    const Progress* peer = replication.Find(voter);
    return peer != nullptr && !peer->recovering && replication.IsActive(*peer);
  };
  const auto count = std::count_if(after.voters.begin(), after.voters.end(), answers);
  return static_cast<std::size_t>(count) >= MajorityOf(after);
}

ChangeRefusal Core::Parts::WhyNotChange(const ChangeMembership& input) const {
  if (role != Role::kLeader) return ChangeRefusal::kNotLeader;
  // Without an entry of its own term committed, an earlier leader's change may still win (the 2015
  // correction to 4.1).
  if (!LeaderReady() && !TRIAD_MUTANT(11)) return ChangeRefusal::kNotReady;
  if (!successor.empty()) return ChangeRefusal::kTransferring;
  if ((change.has_value() || !MembershipCommitted()) && !TRIAD_MUTANT(12)) {
    return ChangeRefusal::kInFlight;
  }
  const ChangeRefusal senseless = RefusalOf(membership(), input.op, input.peer);
  if (senseless != ChangeRefusal::kNone) return senseless;
  if (input.op == MembershipOp::kPromote) {
    const Progress* learner = replication.Find(input.peer);
    if (learner == nullptr || !replication.IsCaughtUp(*learner)) return ChangeRefusal::kNotCaughtUp;
  }
  if (!MajorityAnswers(Changed(membership(), input.op, input.peer))) {
    return ChangeRefusal::kNoQuorum;
  }
  return ChangeRefusal::kNone;
}

void Core::Parts::OnChangeMembership(const ChangeMembership& input) {
  const ChangeRefusal why = WhyNotChange(input);
  if (why != ChangeRefusal::kNone) {
    out->changes.push_back(
        ChangeFate{.context = input.context, .outcome = ChangeFate::Outcome::kRefused, .why = why});
    return;
  }
  change = PendingChange{.context = input.context,
                         .membership = Changed(membership(), input.op, input.peer, input.address),
                         .index = LogIndex{0}};
  out->propose_membership = change->membership;
}

// A membership entry is in the log.
void Core::Parts::MembershipProposed(LogIndex index) {
  replication.Update(membership(), log.last());
  if (index == LogIndex{1}) return;  // the group's first entry
  CHECK(change.has_value()) << "nobody asked for a membership entry";
  CHECK(change->membership == membership());
  change->index = index;
}

// Leadership ends: what becomes of an entry that others may hold is for the next leader to say.
void Core::Parts::AbandonChange() {
  if (!change.has_value()) return;
  const bool certainly_not = change->index == LogIndex{0} || TRIAD_MUTANT(29);
  out->changes.push_back(ChangeFate{
      .context = change->context,
      .outcome = certainly_not ? ChangeFate::Outcome::kRefused : ChangeFate::Outcome::kUnknown,
      .why = certainly_not ? ChangeRefusal::kNotLeader : ChangeRefusal::kNone});
  change.reset();
}

// The commit index of this leader has grown.
void Core::Parts::SettleChange() {
  if (!MembershipCommitted()) return;
  for (Progress& peer : replication.peers()) {  // its last news: its own removal
    if (peer.leaving) replication.SendHeartbeat(peer, leader_state(), out);
  }
  replication.DropLeaving();
  if (change.has_value() && change->index != LogIndex{0}) {
    out->changes.push_back(ChangeFate{.context = change->context,
                                      .outcome = ChangeFate::Outcome::kCommitted,
                                      .why = ChangeRefusal::kNone});
    change.reset();
  }
  if (IsVoter(membership(), config.self)) return;
  // Its own removal is committed. The group need not wait for an election timeout.
  const Progress* next = BestSuccessor();
  if (next != nullptr && next->match == log.last()) {
    Send(next->peer, Message{TimeoutNow{.term = hard.term}});
  }
  BecomeFollower(hard.term, PeerId());
}

}  // namespace triad::dledger
