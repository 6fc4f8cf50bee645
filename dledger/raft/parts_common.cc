#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "common/mutant.h"
#include "dledger/raft/parts.h"

namespace triad::dledger {

void Core::Parts::SetHardState(const HardState& state) {
  CHECK(state.term >= hard.term);
  // Within one term a vote is given once.
  CHECK(state.term > hard.term || hard.voted_for.empty() || hard.voted_for == state.voted_for);
  if (state == hard) return;
  hard = state;
  const bool votes_for_another = !hard.voted_for.empty() && hard.voted_for != config.self;
  if (TRIAD_MUTANT(2) && votes_for_another) return;
  if (TRIAD_MUTANT(3) && votes_for_another) {
    storage.SaveHardState(HardState{.term = state.term, .voted_for = {}}, out);
    return;
  }
  storage.SaveHardState(hard, out);
}

void Core::Parts::BecomeFollower(Term term, const PeerId& of) {
  CHECK(term >= hard.term);
  if (role == Role::kLeader) LeaveLeadership();
  const bool same = term == hard.term && role == Role::kFollower && leader == of;
  if (term > hard.term) SetHardState(HardState{.term = term, .voted_for = {}});
  if (same) return;
  role = Role::kFollower;
  leader = of;
  own_vote.reset();
  follower.Reset();
  election.Restart();
  if (leader.empty()) election.ForgetLeader();
}

void Core::Parts::LeaveLeadership() {
  reads.FailAll(out);
  AbandonChange();
  replication.Stop();
  successor = PeerId();
}

void Core::Parts::AdvanceCommit(LogIndex index) {
  CHECK(index <= log.last());
  commit = std::max(commit, index);
}

bool Core::Parts::TakeMembership(const Entry& entry) {
  if (entry.type != EntryType::kMembership || decode_membership == nullptr) return true;
  Membership decoded;
  if (!decode_membership(entry, &decoded) || !IsWellFormed(decoded)) return false;
  members.Append(entry.index, std::move(decoded));
  return true;
}

void Core::Parts::Send(const PeerId& to, Message message) {
  out->messages.push_back(Envelope{.to = to, .message = std::move(message)});
}

void Core::Parts::SendWhenTermDurable(const PeerId& to, Message message) {
  if (storage.hard_state_durable()) {
    Send(to, std::move(message));
    return;
  }
  outbox.Hold(storage.hard_state_token(), hard.term, to, std::move(message));
}

void Core::Parts::CheckInvariants() const {
  CHECK(commit <= log.last());
  CHECK(commit + 1 >= log.first());
  CHECK(storage.durable_index() <= log.last());
  CHECK(members.current_index() <= log.last() || TRIAD_MUTANT(14));
  CHECK_EQ(role == Role::kLeader, leader == config.self);
  CHECK(successor.empty() || role == Role::kLeader);
  CHECK(!change.has_value() || role == Role::kLeader);
}

// What every step owes, whatever its input was.
void Core::Parts::FinishStep() {
  CheckInvariants();
  // Applied state must not get ahead of the log on this disk: after a crash it would have a gap.
  const LogIndex safe = std::min(TRIAD_MUTANT(20) ? log.last() : commit, storage.durable_index());
  if (safe > announced) {
    announced = safe;
    out->committed = safe;
  }
  const bool changed = last_soft.role != role || last_soft.term != hard.term ||
                       last_soft.leader != leader || last_soft.recovering != recovery.active();
  if (!changed) return;
  last_soft =
      SoftState{.role = role, .term = hard.term, .leader = leader, .recovering = recovery.active()};
  out->soft = last_soft;
}

void Core::Parts::OnTick() {
  if (role == Role::kLeader) {
    TickLeader();
    return;
  }
  if (election.Tick() && MayCampaign()) StartPreVote();
}

void Core::Parts::OnStorageDone(const StorageDone& done) {
  storage.Done(done.token);
  outbox.Release(done.token, hard.term, out);
  recovery.Done(done.token);
  if (own_vote.has_value() && storage.IsDone(*own_vote)) {
    own_vote.reset();
    if (role == Role::kCandidate) AskForVotes();
  }
  if (role == Role::kLeader) {
    MaybeCommit();
    MaybeHandOver();
  } else {
    MaybeEndRecovery();
    AnswerLeader();
  }
}

void Core::Parts::OnDisconnected(const Disconnected& input) {
  if (role == Role::kLeader) {
    Progress* peer = replication.Find(input.peer);
    if (peer != nullptr) replication.Disconnected(*peer);
    return;
  }
  if (input.peer.empty() || input.peer != leader) return;
  BecomeFollower(hard.term, PeerId());
  election.RestartSoon();
}

void Core::Parts::OnMessage(const MessageIn& input) {
  if (input.from.empty() || input.from == config.self) return;
  const Term term = std::visit([](const auto& m) { return m.term; }, input.message.body);
  if (term > kTermMax) return;
  // Requests of strangers are taken: this peer may not have heard of them yet (4.2.2 works without
  // knowing its askers). Answers are not: nobody but members was asked.
  const bool is_known =
      IsMember(membership(), input.from) || replication.Find(input.from) != nullptr;
  const bool is_answer = std::holds_alternative<VoteResponse>(input.message.body) ||
                         std::holds_alternative<AppendResponse>(input.message.body);
  if (is_answer && !is_known) return;
  struct Visitor {
    Parts& p;
    const PeerId& from;
    void operator()(const VoteRequest& m) {
      m.pre_vote ? p.OnPreVoteRequest(from, m) : p.OnVoteRequest(from, m);
    }
    void operator()(const VoteResponse& m) { p.OnVoteResponse(from, m); }
    void operator()(const AppendRequest& m) { p.OnAppendRequest(from, m); }
    void operator()(const AppendResponse& m) { p.OnAppendResponse(from, m); }
    void operator()(const TimeoutNow& m) { p.OnTimeoutNow(from, m); }
  };
  std::visit(Visitor{*this, input.from}, input.message.body);
}

}  // namespace triad::dledger
