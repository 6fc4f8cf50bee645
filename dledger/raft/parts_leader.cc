#include <glog/logging.h>

#include <algorithm>
#include <utility>

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
  SendEntriesToAll();
  if (TRIAD_MUTANT(9)) MaybeCommit();
}

// Whether the answer is of this leadership and of the log that the peer has now.
bool Core::Parts::CountsAsHeard(Progress& peer, const AppendResponse& response) {
  if (response.read_round > reads.round() && !TRIAD_MUTANT(10)) return false;
  if (response.read_round < peer.round_min && !TRIAD_MUTANT(10)) return false;
  if (response.ok && response.match_index > log.last()) return false;
  if (response.recovering) {
    if (response.recovery_nonce == 0) return false;
    if (!peer.recovering || peer.recovery_nonce != response.recovery_nonce) {
      replication.ReportedRecovering(peer, response.recovery_nonce, reads.NewRound(), log.last());
      HeartbeatAll();
      return false;
    }
    peer.active = true;
    return true;
  }
  peer.recovering = false;
  replication.Heard(peer);
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
  replication.SendCommit(*peer, leader_state(), out);
  MaybeHandOver();
}

void Core::Parts::MaybeCommit() {
  const LogIndex own = TRIAD_MUTANT(9) ? log.last() : storage.durable_index();
  const LogIndex reached = replication.MajorityMatch(membership(), own);
  if (reached <= commit) return;
  // An entry of an earlier term is committed only by one of this term above it (3.6.2).
  if (log.TermAt(reached) != hard.term && !TRIAD_MUTANT(4)) return;
  const bool was_ready = LeaderReady();
  AdvanceCommit(reached);
  if (!was_ready && LeaderReady() && reads.Start(commit)) HeartbeatAll();
  for (Progress& peer : replication.peers()) {
    replication.SendCommit(peer, leader_state(), out);
  }
  MaybeConfirmReads();
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

PeerId Core::Parts::BestSuccessor() const {
  const Progress* best = nullptr;
  for (const Progress& peer : replication.peers()) {
    if (!peer.Counts() || !replication.IsActive(peer)) continue;
    if (best == nullptr || peer.match > best->match) best = &peer;
  }
  return best == nullptr ? PeerId() : best->peer;
}

void Core::Parts::OnTransfer(const TransferLeadership& input) {
  if (role != Role::kLeader || !successor.empty()) return;
  const PeerId to = input.to.empty() ? BestSuccessor() : input.to;
  const Progress* peer = to.empty() ? nullptr : replication.Find(to);
  if (peer == nullptr || !peer->Counts()) return;
  successor = to;
  transfer_ticks = 0;
  MaybeHandOver();
}

void Core::Parts::MaybeHandOver() {
  if (role != Role::kLeader || successor.empty()) return;
  const Progress* peer = replication.Find(successor);
  if (peer == nullptr || !peer->Counts()) {
    successor = PeerId();
    return;
  }
  if (peer->match == log.last()) Send(successor, Message{TimeoutNow{.term = hard.term}});
}

void Core::Parts::OnLoaded(const Loaded& input) {
  if (role != Role::kLeader || input.term != hard.term) return;
  Progress* peer = replication.Find(input.peer);
  if (peer == nullptr) return;
  replication.SendLoaded(*peer, input, leader_state(), out);
  replication.SendEntries(*peer, leader_state(), out);
}

void Core::Parts::TickLeader() {
  replication.Tick();
  if (!replication.HeardMajority(membership())) {
    BecomeFollower(hard.term, PeerId());
    return;
  }
  if (!successor.empty() && ++transfer_ticks >= config.election_ticks_max) successor = PeerId();
  if (--ticks_to_heartbeat > 0) return;
  ticks_to_heartbeat = config.heartbeat_ticks;
  for (Progress& peer : replication.peers()) peer.load_failed = false;
  HeartbeatAll();
  SendEntriesToAll();
  MaybeHandOver();
}

void Core::Parts::HeartbeatAll() {
  for (Progress& peer : replication.peers()) {
    replication.SendHeartbeat(peer, leader_state(), out);
  }
}

void Core::Parts::SendEntriesToAll() {
  for (Progress& peer : replication.peers()) {
    replication.SendEntries(peer, leader_state(), out);
  }
}

}  // namespace triad::dledger
