#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "common/buggify.h"
#include "common/mutant.h"
#include "dledger/raft/parts.h"

namespace triad::dledger {

LeaderState Core::Parts::leader_state() const {
  return LeaderState{.log = log,
                     .membership = membership(),
                     .term = hard.term,
                     .commit_index = commit,
                     .read_round = reads.round()};
}

bool Core::Parts::LeaderReady() const {
  return role == Role::kLeader && commit >= first_own_index;
}

void Core::Parts::BecomeLeader() {
  CHECK(role == Role::kCandidate);
  CHECK(storage.hard_state_durable());
  role = Role::kLeader;
  leader = config.self;
  first_own_index = log.last() + 1;
  ticks_to_heartbeat = config.heartbeat_ticks;
  successor = PeerId();
  damaged_loads = 0;
  preferred.Restart();
  reads.Reset();
  replication.Start(membership(), log.last());
  out->want_noop = true;
  HeartbeatAll();
}

void Core::Parts::OnPropose(const Propose& input) {
  CHECK(role == Role::kLeader);
  CHECK(input.entry != nullptr);
  CHECK(input.entry->term == hard.term);
  CHECK(input.entry->index == log.last() + 1);
  CHECK(TakeMembership(*input.entry));
  log.Append(input.entry);
  storage.WriteLog(std::nullopt, {input.entry}, out);
  if (members.current_index() == log.last()) MembershipProposed(log.last());
  SendEntriesToAll();
  if (TRIAD_MUTANT(9)) MaybeCommit();
}

// Whether the answer is of this leadership and of the log that the peer has now.
bool Core::Parts::CountsAsHeard(Progress& peer, const AppendResponse& response) {
  if (response.read_round > reads.round() && !TRIAD_MUTANT(10)) return false;
  if (response.read_round < peer.round_min && !TRIAD_MUTANT(10)) return false;
  if (response.ok && response.match_index > log.last()) return false;
  replication.Heard(peer);
  if (response.recovering) {
    if (response.recovery_nonce == 0) return false;
    if (!peer.recovering || peer.recovery_nonce != response.recovery_nonce) {
      // Also an entry of its own term: then no candidate that lacks it can win with a forgotten
      // vote, whatever membership that candidate believes in.
      const LogIndex target = std::max(log.last(), first_own_index);
      replication.ReportedRecovering(peer, response.recovery_nonce, reads.NewRound(), target,
                                     log.last());
      HeartbeatAll();
      return false;
    }
    return true;
  }
  peer.recovering = false;
  peer.round = std::max(peer.round, response.read_round);
  return true;
}

void Core::Parts::OnAppendResponse(const PeerId& from, const AppendResponse& response) {
  if (response.term > hard.term) {
    BecomeFollower(response.term, PeerId());
    return;
  }
  if (role != Role::kLeader) return;
  Progress* peer = replication.Find(from);
  if (peer == nullptr) return;
  if (response.term < hard.term && !TRIAD_MUTANT(10)) return;
  if (!CountsAsHeard(*peer, response)) return;
  if (response.ok) {
    replication.Acknowledged(*peer, response.match_index);
  } else if (!replication.Refused(*peer, response, log)) {
    MaybeConfirmReads();
    return;
  }
  MaybeConfirmReads();
  replication.SendEntries(*peer, leader_state(), out);
  MaybeCommit();
  if (role != Role::kLeader) return;  // removed, by what it has just committed
  MaybeHandOver();
}

void Core::Parts::MaybeCommit() {
  const LogIndex own = TRIAD_MUTANT(9) ? log.last() : storage.durable_index();
  const LogIndex reached = replication.MajorityMatch(membership(), own);
  if (reached <= commit) return;
  // An entry of an earlier term is committed only by one of this term above it (3.6.2).
  if (log.TermAt(reached) != hard.term && !TRIAD_MUTANT(4)) return;
  const bool was_ready = LeaderReady();
  const bool is_urgent = !was_ready || commit < members.current_index() || TRIAD_BUGGIFY(4);
  AdvanceCommit(reached);
  if (!was_ready && LeaderReady() && reads.Start(commit)) HeartbeatAll();
  // Else the next append carries it, or the next tick: a message of its own would cost both sides
  // as much as the append did.
  if (is_urgent) SendCommitToAll();
  MaybeConfirmReads();
  SettleChange();
}

void Core::Parts::MaybeConfirmReads() {
  reads.Confirm(replication.MajorityRound(membership(), reads.round()), out);
  if (LeaderReady() && reads.Start(commit)) {
    HeartbeatAll();
    // A group of one voter needs nobody's answer.
    reads.Confirm(replication.MajorityRound(membership(), reads.round()), out);
  }
}

void Core::Parts::OnReadIndex(const ReadIndexRequest& input) {
  if (role != Role::kLeader || !reads.Add(input.context)) {
    out->reads_failed.push_back(input.context);
    return;
  }
  MaybeConfirmReads();
}

void Core::Parts::OnLoaded(const Loaded& input) {
  if (role != Role::kLeader || input.term != hard.term) return;
  Progress* peer = replication.Find(input.peer);
  if (peer == nullptr) return;
  // This peer cannot read what a follower needs; another one holds it too.
  if (input.damaged && ++damaged_loads >= kDamagedLoadsMax && successor.empty()) {
    damaged_loads = 0;
    OnTransfer(TransferLeadership{.to = PeerId(), .context = 0});
  }
  replication.SendLoaded(*peer, input, leader_state(), out);
  replication.SendEntries(*peer, leader_state(), out);
}

void Core::Parts::TickLeader() {
  replication.Tick(log.last());
  if (!replication.HeardMajority(membership())) {
    BecomeFollower(hard.term, PeerId());
    return;
  }
  TickTransfer();
  SendCommitToAll();
  if (--ticks_to_heartbeat > 0) return;
  ticks_to_heartbeat = config.heartbeat_ticks;
  replication.AllowRetries();
  HeartbeatAll();
  SendEntriesToAll();
  MaybeHandOver();
}

void Core::Parts::HeartbeatAll() {
  for (Progress& peer : replication.peers()) {
    replication.SendHeartbeat(peer, leader_state(), out);
  }
}

void Core::Parts::SendCommitToAll() {
  for (Progress& peer : replication.peers()) {
    replication.SendCommit(peer, leader_state(), out);
  }
}

void Core::Parts::SendEntriesToAll() {
  for (Progress& peer : replication.peers()) {
    if (TRIAD_BUGGIFY(2)) continue;  // the next heartbeat brings them
    replication.SendEntries(peer, leader_state(), out);
  }
}

}  // namespace triad::dledger
