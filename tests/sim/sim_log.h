// SimLog: the log of a simulated peer: entries, and what lies before the first of them.
//
// Entries carry who they are: store_time_ms is a number unique in the run, position the number of
// the entry before it. So a chain of entries can be followed without looking at bytes. Membership
// entries name their members in plain text. Thread: the simulator's only one.

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "dledger/raft/core.h"

namespace triad::sim {

using dledger::Entry;
using dledger::EntryRef;
using dledger::LogBase;
using dledger::Membership;

PeerId IdOf(int node);         // 0 -> "n0"
int NodeOf(const PeerId& id);  // -1 for a name that is none

EntryRef MakeEntry(Term term, LogIndex index, dledger::EntryType type, std::int64_t number,
                   std::int64_t previous_number, std::string bytes);
inline std::int64_t NumberOf(const EntryRef& entry) {
  return entry->store_time_ms;
}

std::string EncodeMembers(const Membership& membership);  // "n0 n1|n2": voters|learners
bool DecodeMembers(const Entry& entry, Membership* membership);

class SimLog {
 public:
  SimLog() = default;
  explicit SimLog(Membership membership) { base_.membership = std::move(membership); }

  LogIndex first() const { return base_.first_index; }
  LogIndex last() const { return base_.first_index - 1 + entries_.size(); }
  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }
  const std::vector<EntryRef>& entries() const { return entries_; }
  const LogBase& base() const { return base_; }
  std::int64_t base_number() const { return base_number_; }  // of entry first - 1; 0 = none
  // Null outside the log.
  const EntryRef* Find(LogIndex index) const;
  // Of an entry of the log or of the one before it; 0 for others.
  Term TermAt(LogIndex index) const;
  std::int64_t NumberAt(LogIndex index) const;  // as TermAt; -1 for others
  const Membership& membership() const {
    return memberships_.empty() ? base_.membership : memberships_.back().second;
  }
  const std::vector<std::pair<LogIndex, Membership>>& memberships() const { return memberships_; }

  void Append(EntryRef entry);
  void TruncateFrom(LogIndex from);
  void PurgeBefore(LogIndex first);
  void Reset(LogBase base, std::int64_t base_number);

 private:
  LogBase base_;
  std::int64_t base_number_ = 0;
  std::vector<EntryRef> entries_;
  std::vector<std::pair<LogIndex, Membership>> memberships_;
};

// The state of a state machine, and where the log goes on.
struct Snapshot {
  LogBase base;
  std::int64_t base_number = 0;
  LogIndex applied;
  std::uint64_t state_hash = 0;
};

}  // namespace triad::sim
