#include "dledger/raft/replication.h"

#include <glog/logging.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "common/buggify.h"
#include "common/mutant.h"

namespace triad::dledger {

Replication::Replication(const CoreConfig& config)
    : self_(config.self),
      active_ticks_(config.election_ticks_min),
      max_inflight_bytes_(config.max_inflight_bytes),
      max_append_bytes_(config.max_append_bytes) {
  CHECK_GT(max_inflight_bytes_, 0u);
  CHECK_GT(max_append_bytes_, 0u);
}

Progress Replication::NewProgress(const PeerId& peer, bool learner, LogIndex last_index) const {
  Progress progress;
  progress.peer = peer;
  progress.learner = learner;
  progress.next = last_index + 1;
  progress.inflight_limit = std::min(max_append_bytes_, max_inflight_bytes_);
  progress.heard_at = now_;  // one election timeout of grace
  progress.goal = last_index;
  progress.goal_at = now_;
  return progress;
}

void Replication::Start(const Membership& membership, LogIndex last_index) {
  peers_.clear();
  Update(membership, last_index);
}

void Replication::Update(const Membership& membership, LogIndex last_index) {
  for (Progress& peer : peers_) peer.leaving = !IsMember(membership, peer.peer);
  const auto take = [&](const PeerId& peer, bool learner) {
    if (peer == self_) return;
    Progress* known = Find(peer);
    if (known == nullptr) {
      peers_.push_back(NewProgress(peer, learner, last_index));
    } else {
      known->learner = learner;
    }
  };
  for (const PeerId& peer : membership.voters) take(peer, false);
  for (const PeerId& peer : membership.learners) take(peer, true);
}

void Replication::DropLeaving() {
  if (TRIAD_MUTANT(13)) return;
  std::erase_if(peers_, [](const Progress& peer) { return peer.leaving; });
}

const Progress* Replication::Find(const PeerId& peer) const {
  for (const Progress& progress : peers_) {
    if (progress.peer == peer) return &progress;
  }
  return nullptr;
}

Progress* Replication::Find(const PeerId& peer) {
  return const_cast<Progress*>(std::as_const(*this).Find(peer));
}

void Replication::Tick(LogIndex last_index) {
  ++now_;
  for (Progress& peer : peers_) {
    if (peer.match < peer.goal || peer.lag == Progress::kLagUnknown) continue;
    peer.goal = last_index;
    peer.goal_at = now_;
  }
}

std::int64_t Replication::LagTicks(const Progress& peer) const {
  return std::max(peer.lag, now_ - peer.goal_at);
}

bool Replication::IsCaughtUp(const Progress& peer) const {
  return !peer.recovering && !peer.leaving && peer.replicating && IsActive(peer) &&
         LagTicks(peer) <= active_ticks_;
}

void Replication::Heard(Progress& peer) {
  peer.heard_at = now_;
  peer.active = true;
}

bool Replication::IsActive(const Progress& peer) const {
  return peer.active && now_ - peer.heard_at < active_ticks_;
}

bool Replication::HeardMajority(const Membership& membership) const {
  std::size_t count = IsVoter(membership, self_) ? 1 : 0;
  for (const Progress& peer : peers_) {
    // A closed connection alone does not depose a leader: it may be back within the timeout.
    if (peer.Counts() && now_ - peer.heard_at < active_ticks_) ++count;
  }
  return count >= MajorityOf(membership);
}

AppendRequest Replication::MakeRequest(const Progress& peer, LogIndex prev,
                                       const LeaderState& leader) const {
  AppendRequest request;
  request.term = leader.term;
  request.prev_index = prev;
  request.prev_term = leader.log.TermAt(prev);
  request.commit_index = leader.commit_index;
  request.read_round = leader.read_round;
  if (peer.recovering && leader.commit_index >= peer.recovery_target &&
      ConfirmedSinceReport(peer, leader.membership)) {
    request.recovery_nonce = peer.recovery_nonce;
    request.recovery_target = peer.recovery_target;
  }
  return request;
}

void Replication::SendHeartbeat(Progress& peer, const LeaderState& leader, Output* output) {
  // Below the log's start only a state transfer helps; the peer still must hear that we live.
  const LogIndex prev = leader.log.KnowsTermAt(peer.next - 1) ? peer.next - 1 : leader.log.last();
  Emit(peer, MakeRequest(peer, prev, leader), 0, output);
}

void Replication::SendEntries(Progress& peer, const LeaderState& leader, Output* output) {
  while (SendSome(peer, leader, output)) {
  }
}

bool Replication::SendSome(Progress& peer, const LeaderState& leader, Output* output) {
  if (!leader.log.KnowsTermAt(peer.next - 1)) {
    RequestSnapshot(peer, leader, output);
    return false;
  }
  if (peer.next > leader.log.last() || peer.inflight_bytes >= peer.inflight_limit) return false;
  if (!peer.replicating && peer.probe_sent) return false;
  if (peer.next < leader.log.window_first()) {
    RequestLoad(peer, leader, output);
    return false;
  }
  AppendRequest request = MakeRequest(peer, peer.next - 1, leader);
  std::size_t bytes = 0;
  for (LogIndex index = peer.next; index <= leader.log.last(); ++index) {
    EntryRef entry = leader.log.Find(index);
    CHECK(entry != nullptr);
    if (!request.entries.empty() && bytes + entry->size() > max_append_bytes_) break;
    bytes += entry->size();
    request.entries.push_back(std::move(entry));
    if (TRIAD_BUGGIFY(1)) break;  // the rest in a request of its own
  }
  Emit(peer, std::move(request), bytes, output);
  return peer.replicating;
}

void Replication::Emit(Progress& peer, AppendRequest request, std::size_t bytes, Output* output) {
  if (!request.entries.empty()) {
    const LogIndex last = request.entries.back()->index;
    if (peer.replicating) {
      peer.next = last + 1;
      peer.inflight.push_back(Progress::InFlight{.last = last, .bytes = bytes});
      peer.inflight_bytes += bytes;
    } else {
      peer.probe_sent = true;
    }
  }
  const LogIndex covered = request.prev_index + request.entries.size();
  peer.commit_sent = std::max(peer.commit_sent, std::min(request.commit_index, covered));
  output->messages.push_back(Envelope{.to = peer.peer, .message = Message{std::move(request)}});
}

void Replication::SendCommit(Progress& peer, const LeaderState& leader, Output* output) {
  if (!peer.replicating || !peer.inflight.empty()) return;
  if (!leader.log.KnowsTermAt(peer.next - 1)) return;
  if (peer.commit_sent >= std::min(leader.commit_index, peer.next - 1)) return;
  Emit(peer, MakeRequest(peer, peer.next - 1, leader), 0, output);
}

void Replication::RequestLoad(Progress& peer, const LeaderState& leader, Output* output) {
  if (peer.load_pending || peer.load_failed) return;
  peer.load_pending = true;
  peer.load_from = peer.next;
  output->loads.push_back(LoadRequest{.peer = peer.peer,
                                      .term = leader.term,
                                      .from = peer.next,
                                      .to = leader.log.window_first(),
                                      .max_bytes = max_append_bytes_});
}

void Replication::RequestSnapshot(Progress& peer, const LeaderState& leader, Output* output) {
  if (peer.snapshot_pending || peer.snapshot_failed || !IsActive(peer)) return;
  peer.snapshot_pending = true;
  output->snapshots.push_back(SnapshotNeeded{.peer = peer.peer, .term = leader.term});
}

void Replication::SnapshotDone(Progress& peer, const SnapshotSent& sent, const LogView& log) {
  if (!peer.snapshot_pending) return;
  peer.snapshot_pending = false;
  peer.snapshot_failed = !sent.ok;
  if (!sent.ok || log.KnowsTermAt(peer.next - 1)) return;
  // Still unknown to this log when more was purged meanwhile: another snapshot then.
  Probe(peer, std::max(sent.base_index, peer.match) + 1);
}

void Replication::AllowRetries() {
  for (Progress& peer : peers_) {
    peer.load_failed = false;
    peer.snapshot_failed = false;
  }
}

void Replication::SendLoaded(Progress& peer, const Loaded& loaded, const LeaderState& leader,
                             Output* output) {
  if (!peer.load_pending || loaded.from != peer.load_from) return;
  peer.load_pending = false;
  peer.load_failed = loaded.entries.empty();
  const bool wanted = loaded.from == peer.next && (peer.replicating || !peer.probe_sent);
  if (loaded.entries.empty() || !wanted) return;
  AppendRequest request = MakeRequest(peer, loaded.from - 1, leader);
  std::size_t bytes = 0;
  for (const EntryRef& entry : loaded.entries) {
    // Read beside a truncation it may be an entry that is no longer ours.
    const LogIndex expected = loaded.from + request.entries.size();
    if (entry == nullptr || entry->index != expected) break;
    if (entry->term != leader.log.TermAt(expected)) break;
    bytes += entry->size();
    request.entries.push_back(entry);
  }
  peer.load_failed = request.entries.empty();
  if (request.entries.empty()) return;
  Emit(peer, std::move(request), bytes, output);
}

void Replication::Acknowledged(Progress& peer, LogIndex match) {
  if (match > peer.match) {
    peer.inflight_limit = std::min(2 * peer.inflight_limit, max_inflight_bytes_);
  }
  peer.match = std::max(peer.match, match);
  if (peer.match >= peer.goal) peer.lag = now_ - peer.goal_at;
  peer.next = std::max(peer.next, peer.match + 1);
  if (!peer.replicating) {
    peer.replicating = true;
    peer.probe_sent = false;
    return;
  }
  while (!peer.inflight.empty() && peer.inflight.front().last <= peer.match) {
    peer.inflight_bytes -= peer.inflight.front().bytes;
    peer.inflight.pop_front();
  }
}

bool Replication::Refused(Progress& peer, const AppendResponse& response, const LogView& log) {
  const LogIndex refused = response.rejected_prev;
  if (refused <= peer.match || refused > log.last()) return false;
  if (!peer.replicating && refused != peer.next - 1) return false;
  LogIndex next = response.conflict_index;
  if (response.conflict_term != Term{0}) {
    // Past what this log has of the conflicting term nothing can match.
    const LogIndex ours = log.LastWithTermAtMost(refused - 1, response.conflict_term);
    const bool same_term = log.TermAt(ours) == response.conflict_term;
    next = same_term ? ours + 1 : std::min(ours + 1, response.conflict_index);
  }
  Probe(peer, std::max(std::min(next, refused), peer.match + 1));
  return true;
}

void Replication::Probe(Progress& peer, LogIndex next) {
  peer.replicating = false;
  peer.probe_sent = false;
  peer.next = next;
  peer.inflight.clear();
  peer.inflight_bytes = 0;
  peer.inflight_limit = std::min(max_append_bytes_, max_inflight_bytes_);
}

void Replication::Disconnected(Progress& peer) {
  peer.active = false;
  Probe(peer, peer.match + 1);
}

void Replication::ReportedRecovering(Progress& peer, std::uint64_t nonce, std::uint64_t round,
                                     LogIndex target, LogIndex last_index) {
  peer.recovering = true;
  peer.recovery_nonce = nonce;
  peer.recovery_target = target;
  peer.goal = target;
  peer.goal_at = now_;
  peer.lag = Progress::kLagUnknown;
  peer.round_min = round;
  peer.round = 0;
  peer.match = LogIndex{0};
  peer.commit_sent = LogIndex{0};
  Probe(peer, last_index + 1);
}

LogIndex Replication::MajorityMatch(const Membership& membership, LogIndex own_durable) const {
  std::vector<LogIndex> values;
  values.reserve(membership.voters.size());
  if (IsVoter(membership, self_)) values.push_back(own_durable);
  for (const Progress& peer : peers_) {
    if (peer.Counts()) values.push_back(peer.match);
  }
  const std::size_t majority = MajorityOf(membership);
  if (values.size() < majority) return LogIndex{0};
  std::sort(values.begin(), values.end(), std::greater<>());
  return values[majority - 1];
}

std::uint64_t Replication::MajorityRound(const Membership& membership,
                                         std::uint64_t own_round) const {
  std::vector<std::uint64_t> values;
  values.reserve(membership.voters.size());
  if (IsVoter(membership, self_)) values.push_back(own_round);
  for (const Progress& peer : peers_) {
    if (peer.Counts()) values.push_back(peer.round);
  }
  const std::size_t majority = MajorityOf(membership);
  if (values.size() < majority) return 0;
  std::sort(values.begin(), values.end(), std::greater<>());
  return values[majority - 1];
}

bool Replication::ConfirmedSinceReport(const Progress& peer, const Membership& membership) const {
  std::size_t count = IsVoter(membership, self_) ? 1 : 0;
  for (const Progress& other : peers_) {
    if (&other == &peer || other.learner || other.recovering) continue;
    if (other.round < peer.round_min) return false;
    if (other.Counts()) ++count;
  }
  return count >= MajorityOf(membership);
}

}  // namespace triad::dledger
