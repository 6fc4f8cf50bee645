#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "common/mutant.h"
#include "dledger/raft/parts.h"

namespace triad::dledger {
namespace {

// What a correct leader can send. Everything else is dropped without a word.
bool IsWellFormed(const AppendRequest& request) {
  if ((request.prev_index == LogIndex{0}) != (request.prev_term == Term{0})) return false;
  if (request.prev_term > request.term) return false;
  LogIndex index = request.prev_index;
  Term term = request.prev_term;
  for (const EntryRef& entry : request.entries) {
    if (entry == nullptr || entry->index != index + 1 || entry->index <= index) return false;
    if (entry->term < term || entry->term > request.term || entry->term == Term{0}) return false;
    index = entry->index;
    term = entry->term;
  }
  return true;
}

}  // namespace

void Core::Parts::OnAppendRequest(const PeerId& from, const AppendRequest& request) {
  if (!IsWellFormed(request) || !FollowSender(from, request)) return;
  if (!PrevMatches(from, request) || !TakeEntries(request)) return;
  const LogIndex match = request.prev_index + request.entries.size();
  follower.Matched(match, request.read_round);
  // Only what this append vouches for: the rest of this log may be another leader's.
  const LogIndex bound = TRIAD_MUTANT(6) ? log.last() : match;
  AdvanceCommit(std::min(request.commit_index, bound));
  recovery.OfferTarget(request.term, request.recovery_nonce, request.recovery_target);
  MaybeEndRecovery();
  // What has just been written is acknowledged by StorageDone; all else at once.
  if (!request.entries.empty() && HeldOfLeader() < match) {
    follower.WaitForDisk();
    return;
  }
  AnswerLeader();
}

// Adopts the sender as leader of its term. False: the message is not from a leader to follow.
bool Core::Parts::FollowSender(const PeerId& from, const AppendRequest& request) {
  if (request.term < hard.term) {
    Refuse(from, request, log.last() + 1, Term{0});  // its only use: the newer term
    return false;
  }
  if (request.term == hard.term) {
    // Two leaders in one term cannot be; whoever says so is not believed.
    if (role == Role::kLeader) return false;
    if (!leader.empty() && leader != from) return false;
  }
  BecomeFollower(request.term, from);
  election.HeardLeader();
  return true;
}

bool Core::Parts::PrevMatches(const PeerId& from, const AppendRequest& request) {
  if (request.prev_index > log.last()) {
    Refuse(from, request, log.last() + 1, Term{0});
    return false;
  }
  if (!log.KnowsTermAt(request.prev_index)) return request.prev_index <= commit;
  const Term ours = log.TermAt(request.prev_index);
  if (ours == request.prev_term) return true;
  // A leader whose log differs below the commit index is none.
  if (request.prev_index <= commit) return false;
  Refuse(from, request, std::max(log.RunStart(request.prev_index), commit + 1), ours);
  return false;
}

// Appends what is new. False: dropped, nothing changed.
bool Core::Parts::TakeEntries(const AppendRequest& request) {
  std::size_t present = 0;
  for (; present < request.entries.size(); ++present) {
    const Entry& entry = *request.entries[present];
    if (entry.index < log.first()) {
      // Where this log begins, another one's history ends in another entry: not a leader of ours.
      if (entry.index + 1 == log.first() && entry.term != log.TermAt(entry.index)) return false;
      continue;
    }
    if (entry.index > log.last() || log.TermAt(entry.index) != entry.term) break;
  }
  if (TRIAD_MUTANT(7) && commit >= request.prev_index) {
    present = static_cast<std::size_t>(
        std::min<std::uint64_t>(request.entries.size(), commit - request.prev_index));
  }
  if (TRIAD_MUTANT(8) && log.last() > request.prev_index + request.entries.size() &&
      !request.entries.empty()) {
    const LogIndex from = request.prev_index + request.entries.size() + 1;
    storage.WriteLog(from, {}, out);
    log.TruncateFrom(from);
    commit = std::min(commit, log.last());
  }
  if (present == request.entries.size()) return true;
  const LogIndex begin = request.entries[present]->index;
  if (begin <= commit) return false;  // as above: no leader contradicts what is committed
  const std::size_t pending_max = 2 * config.max_inflight_bytes + config.max_append_bytes;
  if (storage.pending_bytes() > pending_max) return false;  // it will be sent again

  std::optional<LogIndex> truncate_from;
  if (begin <= log.last()) {
    CHECK(begin > commit);
    truncate_from = begin;
    log.TruncateFrom(begin);
    members.TruncateFrom(begin);
  }
  std::vector<EntryRef> append;
  for (std::size_t i = present; i < request.entries.size(); ++i) {
    const EntryRef& entry = request.entries[i];
    if (!TakeMembership(*entry)) break;  // unreadable: nothing from here on is taken
    log.Append(entry);
    append.push_back(entry);
  }
  const bool all = append.size() == request.entries.size() - present;
  if (truncate_from.has_value() || !append.empty()) {
    storage.WriteLog(truncate_from, std::move(append), out);
  }
  return all;
}

void Core::Parts::Refuse(const PeerId& to, const AppendRequest& request, LogIndex conflict_index,
                         Term conflict_term) {
  AppendResponse response;
  response.term = hard.term;
  response.ok = false;
  response.conflict_index = conflict_index;
  response.conflict_term = conflict_term;
  response.rejected_prev = request.prev_index;
  response.read_round = request.term == hard.term ? request.read_round : 0;
  response.recovering = recovery.active();
  response.recovery_nonce = recovery.nonce();
  SendWhenTermDurable(to, Message{response});
}

LogIndex Core::Parts::HeldOfLeader() const {
  if (TRIAD_MUTANT(1)) return follower.match();
  return std::min(follower.match(), storage.durable_index());
}

void Core::Parts::AnswerLeader() {
  if (role != Role::kFollower || leader.empty() || !storage.hard_state_durable()) return;
  const LogIndex held = HeldOfLeader();
  if (!follower.Owes(held)) return;
  AppendResponse response;
  response.term = hard.term;
  response.ok = true;
  response.match_index = held;
  response.read_round = follower.read_round();
  response.recovering = recovery.active();
  response.recovery_nonce = recovery.nonce();
  follower.Said(held);
  Send(leader, Message{response});
}

void Core::Parts::MaybeEndRecovery() {
  if (role != Role::kFollower || leader.empty()) return;
  if (!recovery.MayEnd(hard.term, HeldOfLeader())) return;
  // This term's vote is spent: it may have been given before this peer forgot.
  if (hard.voted_for.empty()) hard.voted_for = leader;
  recovery.End(storage.EndRecovery(hard, out));
}

}  // namespace triad::dledger
