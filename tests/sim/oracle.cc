#include "tests/sim/oracle.h"

#include <algorithm>
#include <sstream>
#include <utility>

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

const EntryRef* FindIn(const std::vector<EntryRef>& log, LogIndex index) {
  if (index == LogIndex{0} || index.value() > log.size()) return nullptr;
  return &log[static_cast<std::size_t>(index.value() - 1)];
}

}  // namespace

Oracle::Oracle(const Options& options, const std::vector<SimNode>& nodes)
    : options_(options), nodes_(nodes), watched_(static_cast<std::size_t>(options.nodes())) {}

void Oracle::Fail(std::string invariant, std::string detail) {
  if (violation_.has_value()) return;
  violation_ = Violation{.invariant = std::move(invariant), .detail = std::move(detail)};
}

void Oracle::OnRestart(int node) {
  Watched& w = watched_[static_cast<std::size_t>(node)];
  w.commit = at(node).core().commit_index();
  if (w.commit > committed()) Fail("R6", Name(node) + " starts with a commit nobody knows");
}

void Oracle::OnWipe(int node, const std::vector<EntryRef>& before) {
  Watched& w = watched_[static_cast<std::size_t>(node)];
  if (before.size() > w.lost.size()) w.lost = before;
  w.durable = HardState{};
}

bool Oracle::HoldsDurably(int node, LogIndex index, const EntryRef& entry) const {
  const EntryRef* held = FindIn(at(node).disk().durable().log, index);
  return held != nullptr && NumberOf(*held) == NumberOf(entry);
}

// A peer that held it and was wiped since may have been counted by an answer still on its way.
bool Oracle::CountsForCommit(int node, LogIndex index, const EntryRef& entry) const {
  const Watched& w = watched_[static_cast<std::size_t>(node)];
  const EntryRef* lost = FindIn(w.lost, index);
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
  for (const EntryRef& entry : op.append) {
    const auto [known, is_new] =
        numbers_.emplace(std::make_pair(entry->term, entry->index), NumberOf(entry));
    if (!is_new && known->second != NumberOf(entry)) {
      Fail("R3", Name(node) + " holds another " + Name(entry));
    }
    if (entry->index == LogIndex{1}) continue;
    const EntryRef* previous = FindIn(at(node).log(), entry->index - 1);
    if (previous == nullptr || NumberOf(*previous) != entry->position.value()) {
      Fail("R3", Name(node) + ": the predecessor of " + Name(entry) + " is another");
    }
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
  if (!image.recovering) w.lost.clear();
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
  const EntryRef* held = FindIn(image.log, response.match_index);
  if (response.match_index != LogIndex{0} && held == nullptr) {
    Fail("R8", Name(node) + " acknowledges what is not durable");
    return;
  }
  if (!leads || held == nullptr) return;
  const EntryRef* theirs = FindIn(at(leader).log(), response.match_index);
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
  }
}

void Oracle::OnRole(int node, const dledger::SoftState& soft) {
  if (soft.role != Role::kLeader) return;
  const auto [leader, is_new] = leaders_.emplace(soft.term, node);
  if (!is_new) {
    Fail("R1", "two leaders in term " + std::to_string(soft.term.value()) + ": " +
                   Name(leader->second) + " and " + Name(node));
  }
  const std::vector<EntryRef>& log = at(node).log();
  for (const EntryRef& entry : committed_) {
    // What a later term has committed says nothing about this one: it may be elected belatedly.
    if (committed_in_[static_cast<std::size_t>(entry->index.value() - 1)] >= soft.term) return;
    const EntryRef* held = FindIn(log, entry->index);
    if (held != nullptr && NumberOf(*held) == NumberOf(entry)) continue;
    Fail("R4", Name(node) + " leads without committed " + Name(entry));
    return;
  }
}

void Oracle::OnStepped(int node) {
  const Core& core = at(node).core();
  Watched& w = watched_[static_cast<std::size_t>(node)];
  const std::vector<EntryRef>& log = at(node).log();
  if (core.last_index().value() != log.size()) Fail("R3", Name(node) + ": core and disk disagree");
  const LogIndex commit = core.commit_index();
  if (commit < w.commit) Fail("R6", Name(node) + ": commit index went back");
  for (LogIndex index = w.commit + 1; index <= commit; ++index) {
    const EntryRef* entry = FindIn(log, index);
    if (entry == nullptr) {
      Fail("R6", Name(node) + " commits beyond its log");
      return;
    }
    if (const EntryRef* known = FindIn(committed_, index); known != nullptr) {
      if (NumberOf(*known) != NumberOf(*entry)) {
        Fail("R5", Name(node) + " commits " + Name(*entry) + " where " + Name(*known) + " is");
      }
      continue;
    }
    std::size_t holders = 0;
    for (int other = 0; other < options_.voters; ++other) {
      if (CountsForCommit(other, index, *entry)) ++holders;
    }
    if (holders < majority()) {
      Fail("R6",
           Name(node) + " commits " + Name(*entry) + " on " + std::to_string(holders) + " disks");
    }
    if (index == commit && (*entry)->term != core.term()) {
      Fail("R6", Name(node) + " commits " + Name(*entry) + " in term " +
                     std::to_string(core.term().value()));
    }
    committed_.push_back(*entry);
    committed_in_.push_back(core.term());
    const std::uint64_t before = committed_hash_.empty() ? 0 : committed_hash_.back();
    committed_hash_.push_back(HashOn(before, **entry));
  }
  w.commit = commit;
}

void Oracle::OnApplied(int node) {
  const LogIndex applied = at(node).applied();
  if (applied > committed()) {
    Fail("R5", Name(node) + " applies what is not committed");
    return;
  }
  if (applied.value() > at(node).disk().durable().log.size()) {
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
  std::size_t lacking = 0;
  const EntryRef& entry = *FindIn(committed_, index);
  for (int node = 0; node < options_.voters; ++node) {
    if (at(node).disk().durable().recovering) continue;
    if (!HoldsDurably(node, index, entry)) ++lacking;
  }
  if (lacking >= majority()) Fail("R9", Name(entry) + " is missing on a majority of disks");
}

bool Oracle::MayWipe(int node) const {
  for (int other = 0; other < options_.voters; ++other) {
    if (at(other).disk().durable().recovering) return false;  // one at a time
  }
  if (committed_.empty()) return true;
  std::size_t lacking = 0;
  for (int other = 0; other < options_.voters; ++other) {
    if (other != node && !HoldsDurably(other, committed(), committed_.back())) ++lacking;
  }
  return lacking < majority();
}

void Oracle::FullScan() {
  for (LogIndex index{1}; index <= committed(); ++index) CheckMajoritiesHold(index);
  for (const SimNode& node : nodes_) {
    const std::vector<EntryRef>& log = node.disk().durable().log;
    for (std::size_t i = 0; i < log.size(); ++i) {
      const auto known = numbers_.find(std::make_pair(log[i]->term, log[i]->index));
      const bool chained = i == 0 || NumberOf(log[i - 1]) == log[i]->position.value();
      if (known != numbers_.end() && known->second == NumberOf(log[i]) && chained) continue;
      Fail("R3", Name(node.node()) + ": durable log is broken at " + Name(log[i]));
    }
  }
}

}  // namespace triad::sim
