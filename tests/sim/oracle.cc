#include "tests/sim/oracle.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "dledger/raft/membership.h"

namespace triad::sim {
namespace {

std::string Name(int node) {
  return "n" + std::to_string(node);
}

std::string Name(const EntryRef& entry) {
  std::ostringstream out;
  out << "entry " << entry->index << "@" << entry->term << "#" << NumberOf(entry);
  return out.str();
}

bool IsIn(const std::vector<PeerId>& peers, int node) {
  return std::find(peers.begin(), peers.end(), IdOf(node)) != peers.end();
}

}  // namespace

Oracle::Oracle(const Options& options, const std::vector<SimNode>& nodes)
    : options_(options), nodes_(nodes), watched_(nodes.size()) {
  memberships_.push_back({.index = LogIndex{0}, .in = Term{0}, .membership = options.Founders()});
}

void Oracle::Fail(std::string invariant, std::string detail) {
  if (violation_.has_value()) return;
  violation_ = Violation{.invariant = std::move(invariant), .detail = std::move(detail)};
}

void Oracle::OnRestart(int node) {
  Watched& w = watched_[static_cast<std::size_t>(node)];
  w.commit = at(node).core().commit_index();
  w.transfer_ticks = 0;
  if (w.commit > committed()) Fail("R6", Name(node) + " starts with a commit nobody knows");
}

void Oracle::OnWipe(int node, const SimLog& before) {
  Watched& w = watched_[static_cast<std::size_t>(node)];
  if (before.last() > w.lost.last()) w.lost = before;
  w.durable = HardState{};
  // It may vote again where it stood itself: that candidacy died with the disk, and no vote for it
  // is counted any more. Every other vote it must not contradict.
  std::erase_if(votes_, [this, node](const auto& vote) {
    return vote.first.first == node && vote.second == IdOf(node);
  });
}

const EntryRef* Oracle::Committed(LogIndex index) const {
  if (index == LogIndex{0} || index > committed()) return nullptr;
  return &committed_[static_cast<std::size_t>(index.value() - 1)];
}

// In its log, or in its state when its log begins later.
bool Oracle::HoldsDurably(int node, LogIndex index, const EntryRef& entry) const {
  const DiskImage& image = at(node).disk().durable();
  if (index < image.log.first()) return index <= image.applied;
  const EntryRef* held = image.log.Find(index);
  return held != nullptr && NumberOf(*held) == NumberOf(entry);
}

// A peer that held it and was wiped since may have been counted by an answer still on its way.
bool Oracle::CountsForCommit(int node, LogIndex index, const EntryRef& entry) const {
  const Watched& w = watched_[static_cast<std::size_t>(node)];
  const EntryRef* lost = w.lost.Find(index);
  if (lost != nullptr && NumberOf(*lost) == NumberOf(entry)) return true;
  return !at(node).disk().durable().recovering && HoldsDurably(node, index, entry);
}

void Oracle::OnStorage(int node, const StorageOp& op, Role role_before) {
  if (op.truncate_from.has_value()) {
    const bool leads = at(node).core().role() == Role::kLeader;
    if (leads && role_before == Role::kLeader) Fail("R2", Name(node) + " truncates while it leads");
    if (*op.truncate_from <= watched_[static_cast<std::size_t>(node)].commit) {
      Fail("R6", Name(node) + " truncates what it knows as committed");
    }
  }
  if (op.reset.has_value() &&
      op.reset->first_index - 1 < watched_[static_cast<std::size_t>(node)].commit) {
    Fail("R6", Name(node) + " takes a snapshot older than what it knows as committed");
  }
  for (const EntryRef& entry : op.append) {
    const auto [known, is_new] =
        numbers_.emplace(std::make_pair(entry->term, entry->index), NumberOf(entry));
    if (!is_new && known->second != NumberOf(entry)) {
      Fail("R3", Name(node) + " holds another " + Name(entry));
    }
    if (at(node).log().NumberAt(entry->index - 1) != entry->position.value()) {
      Fail("R3", Name(node) + ": the predecessor of " + Name(entry) + " is another");
    }
    if (entry->type == dledger::EntryType::kMembership) CheckMembershipAppended(node, entry);
  }
}

// A leader changes the membership only when nothing else is in flight and its own term has begun.
void Oracle::CheckMembershipAppended(int node, const EntryRef& entry) {
  const Core& core = at(node).core();
  if (core.role() != Role::kLeader || entry->term != core.term()) return;
  const SimLog& log = at(node).log();
  for (const auto& [index, membership] : log.memberships()) {
    if (index < entry->index && index > core.commit_index()) {
      Fail("R10", Name(node) + " begins a change while another is in flight");
    }
  }
  if (log.TermAt(core.commit_index()) != core.term()) {
    Fail("R10", Name(node) + " changes the membership before it has committed in its term");
  }
}

void Oracle::CheckBase(int node) {
  const DiskImage& image = at(node).disk().durable();
  const LogIndex before = image.log.first() - 1;
  if (before == LogIndex{0}) return;
  const EntryRef* entry = Committed(before);
  if (entry == nullptr || NumberOf(*entry) != image.log.base_number() ||
      (*entry)->term != image.log.base().term) {
    Fail("R5", Name(node) + ": its log begins behind an entry that is not committed");
    return;
  }
  if (image.applied < before) Fail("R9", Name(node) + ": a gap between its state and its log");
  const Membership* in_force = nullptr;
  for (const CommittedMembership& m : memberships_) {
    if (m.index <= before) in_force = &m.membership;
  }
  if (!(*in_force == image.log.base().membership)) {
    Fail("R10", Name(node) + ": its log begins with another membership");
  }
  if (image.applied <= committed() &&
      image.state_hash != committed_hash_[static_cast<std::size_t>(image.applied.value() - 1)]) {
    Fail("R5", Name(node) + ": another state on its disk");
  }
}

void Oracle::OnDurable(int node) {
  Watched& w = watched_[static_cast<std::size_t>(node)];
  const DiskImage& image = at(node).disk().durable();
  const HardState& now = image.hard_state;
  if (now.term < w.durable.term) Fail("R7", Name(node) + ": durable term went back");
  const bool vote_changed = now.term == w.durable.term && !w.durable.voted_for.empty() &&
                            now.voted_for != w.durable.voted_for;
  if (vote_changed) Fail("R7", Name(node) + ": durable vote changed within a term");
  w.durable = now;
  if (!image.recovering) w.lost = SimLog();
  CheckBase(node);
}

void Oracle::CheckVoteSent(int node, Term term, const PeerId& candidate) {
  const DiskImage& image = at(node).disk().durable();
  if (image.hard_state.term != term || image.hard_state.voted_for != candidate) {
    Fail("R8", Name(node) + " votes before its vote is durable");
  }
  const auto [vote, is_new] = votes_.emplace(std::make_pair(node, term), candidate);
  if (!is_new && vote->second != candidate) Fail("R7", Name(node) + " votes twice in one term");
  if (image.recovering) Fail("R12", Name(node) + " votes while recovering");
}

void Oracle::CheckAckSent(int node, const dledger::Envelope& envelope,
                          const dledger::AppendResponse& response) {
  const DiskImage& image = at(node).disk().durable();
  if (image.hard_state.term < response.term) {
    Fail("R8", Name(node) + " answers in a term that is not durable");
  }
  if (!response.ok) return;
  if (response.recovering != image.recovering && !response.recovering) {
    Fail("R12", Name(node) + " acknowledges as if it counted");
  }
  const int leader = NodeOf(envelope.to);
  const bool leads = at(leader).up() && at(leader).core().role() == Role::kLeader &&
                     at(leader).core().term() == response.term;
  const EntryRef* held = image.log.Find(response.match_index);
  if (response.match_index > image.log.last()) {
    Fail("R8", Name(node) + " acknowledges what is not durable");
    return;
  }
  if (!leads || held == nullptr) return;
  if (response.match_index < at(leader).log().first()) return;  // purged there since
  const EntryRef* theirs = at(leader).log().Find(response.match_index);
  if (theirs == nullptr || NumberOf(*theirs) != NumberOf(*held)) {
    Fail("R8", Name(node) + " acknowledges another entry than its leader's");
  }
}

void Oracle::OnSend(int node, const dledger::Envelope& envelope) {
  const bool recovering = at(node).disk().durable().recovering;
  if (const auto* vote = std::get_if<dledger::VoteResponse>(&envelope.message.body)) {
    if (vote->granted && recovering) Fail("R12", Name(node) + " votes while recovering");
    if (vote->granted && !vote->pre_vote) CheckVoteSent(node, vote->term, envelope.to);
  } else if (const auto* ask = std::get_if<dledger::VoteRequest>(&envelope.message.body)) {
    if (recovering) Fail("R12", Name(node) + " campaigns while recovering");
    if (!ask->pre_vote) CheckVoteSent(node, ask->term, IdOf(node));
  } else if (const auto* ack = std::get_if<dledger::AppendResponse>(&envelope.message.body)) {
    CheckAckSent(node, envelope, *ack);
  } else if (std::holds_alternative<dledger::TimeoutNow>(envelope.message.body)) {
    CheckOffer(node, envelope.to);
  }
}

void Oracle::CheckOffer(int node, const PeerId& to) {
  const DiskImage& image = at(NodeOf(to)).disk().durable();
  // It lost its disk, or follows another by now: this leader cannot know yet.
  if (image.recovering || image.hard_state.term > at(node).core().term()) return;
  const SimLog& mine = at(node).log();
  const SimLog& theirs = image.log;
  if (theirs.last() < mine.last() || theirs.TermAt(mine.last()) != mine.TermAt(mine.last())) {
    Fail("R13", Name(node) + " hands over to " + to.value() + ", which lacks entries");
  }
}

void Oracle::OnTransferEnded(int node) {
  watched_[static_cast<std::size_t>(node)].transfer_ticks = 0;
}

void Oracle::OnTicked(int node) {
  int& ticks = watched_[static_cast<std::size_t>(node)].transfer_ticks;
  ticks = at(node).core().transferring() ? ticks + 1 : 0;
  if (ticks > options_.election_ticks_max) {
    Fail("R13", Name(node) + " rests for a transfer longer than an election timeout");
  }
}

void Oracle::OnRole(int node, const dledger::SoftState& soft) {
  if (soft.role != Role::kLeader) return;
  const auto [leader, is_new] = leaders_.emplace(soft.term, node);
  if (!is_new) {
    Fail("R1", "two leaders in term " + std::to_string(soft.term.value()) + ": " +
                   Name(leader->second) + " and " + Name(node));
  }
  const SimLog& log = at(node).log();
  for (const EntryRef& entry : committed_) {
    // What a later term has committed says nothing about this one: it may be elected belatedly.
    if (committed_in_[static_cast<std::size_t>(entry->index.value() - 1)] >= soft.term) break;
    if (log.NumberAt(entry->index) == NumberOf(entry)) continue;
    if (entry->index < log.first() && at(node).applied() >= entry->index) continue;
    Fail("R4", Name(node) + " leads without committed " + Name(entry));
    return;
  }
  CheckVotesOf(node, soft.term);
}

// No majority of the membership that was committed before may be without a hand in this election.
void Oracle::CheckVotesOf(int node, Term term) {
  const Membership* in_force = nullptr;
  for (const CommittedMembership& m : memberships_) {
    if (m.in < term) in_force = &m.membership;
  }
  std::size_t without = 0;
  for (const PeerId& voter : in_force->voters) {
    const auto vote = votes_.find(std::make_pair(NodeOf(voter), term));
    const bool voted = vote != votes_.end() && vote->second == IdOf(node);
    if (!voted && voter != IdOf(node)) ++without;
  }
  if (without >= dledger::MajorityOf(*in_force)) {
    Fail("R10", Name(node) + " leads without a majority of the committed membership");
  }
}

void Oracle::OnStepped(int node) {
  const Core& core = at(node).core();
  Watched& w = watched_[static_cast<std::size_t>(node)];
  const SimLog& log = at(node).log();
  if (core.last_index() != log.last() || core.first_index() != log.first()) {
    Fail("R3", Name(node) + ": core and disk disagree");
  }
  if (!(core.membership() == log.membership())) {
    Fail("R10", Name(node) + ": the membership in force is not the last of its log");
  }
  const LogIndex commit = core.commit_index();
  if (commit < w.commit) Fail("R6", Name(node) + ": commit index went back");
  if (commit > log.last()) Fail("R6", Name(node) + " commits beyond its log");
  for (LogIndex index = w.commit + 1; index <= commit && !violation_.has_value(); ++index) {
    const EntryRef* known = Committed(index);
    if (index < log.first() && known != nullptr) continue;  // came with a snapshot
    const EntryRef* entry = log.Find(index);
    if (entry == nullptr) {
      Fail("R6", Name(node) + " commits what it does not have");
      return;
    }
    if (known != nullptr) {
      if (NumberOf(*known) != NumberOf(*entry)) {
        Fail("R5", Name(node) + " commits " + Name(*entry) + " where " + Name(*known) + " is");
      }
      continue;
    }
    if (index == commit && (*entry)->term != core.term()) {
      Fail("R6", Name(node) + " commits " + Name(*entry) + " in term " +
                     std::to_string(core.term().value()));
    }
    Commit(node, *entry);
  }
  w.commit = commit;
}

// `node` is the first that says so.
void Oracle::Commit(int node, const EntryRef& entry) {
  const Membership& membership = at(node).log().membership();
  std::size_t holders = 0;
  for (const PeerId& voter : membership.voters) {
    if (CountsForCommit(NodeOf(voter), entry->index, entry)) ++holders;
  }
  if (holders < dledger::MajorityOf(membership)) {
    Fail("R6",
         Name(node) + " commits " + Name(entry) + " on " + std::to_string(holders) + " disks");
  }
  const Term in = at(node).core().term();
  committed_.push_back(entry);
  committed_in_.push_back(in);
  const std::uint64_t before = committed_hash_.empty() ? 0 : committed_hash_.back();
  committed_hash_.push_back(HashOn(before, *entry));
  if (entry->type != dledger::EntryType::kMembership) return;
  CommittedMembership committed{.index = entry->index, .in = in, .membership = {}};
  DecodeMembers(*entry, &committed.membership);
  memberships_.push_back(std::move(committed));
  committed_changes_.insert(NumberOf(entry));
  if (refused_changes_.contains(NumberOf(entry))) {
    Fail("R10", "a change that was refused is committed");
  }
}

void Oracle::OnChangeProposed(std::uint64_t context, const EntryRef& entry) {
  changes_[context] = NumberOf(entry);
}

void Oracle::OnChangeFate(int node, const dledger::ChangeFate& fate) {
  const auto proposed = changes_.find(fate.context);
  const std::int64_t number = proposed == changes_.end() ? -1 : proposed->second;
  using Outcome = dledger::ChangeFate::Outcome;
  if (fate.outcome == Outcome::kCommitted && !committed_changes_.contains(number)) {
    Fail("R10", Name(node) + " says that a change is committed");
  }
  if (fate.outcome != Outcome::kRefused || number < 0) return;
  refused_changes_.insert(number);
  if (committed_changes_.contains(number)) Fail("R10", Name(node) + " refuses a committed change");
}

bool Oracle::CanDoWithout(int node, const Snapshot& snapshot) const {
  const LogIndex before = snapshot.base.first_index - 1;
  return at(node).core().commit_index() >= before ||
         at(node).log().NumberAt(before) == snapshot.base_number;
}

void Oracle::OnApplied(int node) {
  const LogIndex applied = at(node).applied();
  if (applied > committed()) {
    Fail("R5", Name(node) + " applies what is not committed");
    return;
  }
  if (applied > at(node).disk().durable().log.last()) {
    Fail("R8", Name(node) + " applies what is not durable");
  }
  if (applied == LogIndex{0}) return;
  if (committed_hash_[static_cast<std::size_t>(applied.value() - 1)] != at(node).state_hash()) {
    Fail("R5", Name(node) + ": another state at " + std::to_string(applied.value()));
  }
}

void Oracle::OnReadAsked(std::uint64_t context) {
  reads_[context] = committed();
}

void Oracle::OnReadReady(int node, const dledger::ReadReady& ready) {
  const auto asked = reads_.find(ready.context);
  if (asked == reads_.end()) {
    Fail("R11", Name(node) + " answers a read nobody asked, or twice");
    return;
  }
  if (ready.index < asked->second) Fail("R11", Name(node) + " serves a stale read");
  reads_.erase(asked);
}

void Oracle::CheckMajoritiesHold(LogIndex index) {
  const Membership& membership = committed_membership();
  std::size_t lacking = 0;
  const EntryRef& entry = *Committed(index);
  for (const PeerId& voter : membership.voters) {
    const int node = NodeOf(voter);
    if (at(node).disk().durable().recovering) continue;
    if (!HoldsDurably(node, index, entry)) ++lacking;
  }
  if (lacking >= dledger::MajorityOf(membership)) {
    Fail("R9", Name(entry) + " is missing on a majority of disks");
  }
}

// Every membership that somebody may act upon.
std::vector<const Membership*> Oracle::MembershipsInPlay() const {
  std::vector<const Membership*> all = {&committed_membership()};
  for (const SimNode& node : nodes_) {
    if (node.incarnation() == 0) continue;
    all.push_back(&node.disk().durable().log.membership());
    if (node.up()) all.push_back(&node.log().membership());
  }
  return all;
}

bool Oracle::MayWipe(int node) const {
  if (at(node).incarnation() == 0) return false;
  for (const SimNode& other : nodes_) {
    if (other.disk().durable().recovering) return false;  // one at a time
  }
  for (const Membership* membership : MembershipsInPlay()) {
    // A learner may become the second of two voters before its leader hears of the loss.
    if (IsIn(membership->learners, node) && membership->voters.size() < 2) return false;
    if (!IsIn(membership->voters, node)) continue;
    if (membership->voters.size() < 3) return false;
    if (committed_.empty()) continue;
    std::size_t lacking = 0;
    for (const PeerId& voter : membership->voters) {
      const int other = NodeOf(voter);
      if (other != node && !HoldsDurably(other, committed(), committed_.back())) ++lacking;
    }
    if (lacking >= dledger::MajorityOf(*membership)) return false;
  }
  return true;
}

bool Oracle::MayStayDown(int node) const {
  for (const Membership* membership : MembershipsInPlay()) {
    if (IsIn(membership->voters, node) && membership->voters.size() < 3) return false;
  }
  return std::none_of(nodes_.begin(), nodes_.end(), [](const SimNode& other) {
    return other.incarnation() > 0 && other.disk().durable().recovering;
  });
}

void Oracle::FullScan() {
  for (LogIndex index{1}; index <= committed(); ++index) CheckMajoritiesHold(index);
  for (const SimNode& node : nodes_) {
    const SimLog& log = node.disk().durable().log;
    for (const EntryRef& entry : log.entries()) {
      const auto known = numbers_.find(std::make_pair(entry->term, entry->index));
      const bool chained = log.NumberAt(entry->index - 1) == entry->position.value();
      if (known != numbers_.end() && known->second == NumberOf(entry) && chained) continue;
      Fail("R3", Name(node.node()) + ": durable log is broken at " + Name(entry));
    }
    CheckBase(node.node());
  }
}

}  // namespace triad::sim
