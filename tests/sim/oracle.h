// Oracle: knows everything and checks the invariants. It sees the simulated disks themselves; what
// a peer believes about its own disk is not used.
//
// R1 one leader per term · R2 a leader never truncates · R3 log matching · R4 leader completeness ·
// R5 same state at same index · R6 commit: monotone, on a majority of disks · R7 term and vote
// never go back · R8 durable before said · R9 committed is never lost · R10 one change of the
// membership at a time · R11 reads are not stale · R12 a recovering peer votes for nobody and
// counts nowhere · R13 leadership is offered only to a peer that holds everything, proposals rest
// no longer than an election timeout. tests/sim/README.md has them in full.
// Thread: the simulator's only one.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/sim/options.h"
#include "tests/sim/sim_node.h"

namespace triad::sim {

struct Violation {
  std::string invariant;  // "R1"
  std::string detail;
};

class Oracle {
 public:
  Oracle(const Options& options, const std::vector<SimNode>& nodes);

  const std::optional<Violation>& violation() const { return violation_; }
  void Fail(std::string invariant, std::string detail);

  void OnRestart(int node);
  // `before`: what the disk held durably when it was damaged.
  void OnWipe(int node, const SimLog& before);
  void OnStorage(int node, const StorageOp& op, Role role_before);
  void OnDurable(int node);
  void OnSend(int node, const dledger::Envelope& envelope);
  void OnRole(int node, const dledger::SoftState& soft);
  void OnTicked(int node);
  void OnTransferEnded(int node);
  void OnStepped(int node);
  void OnApplied(int node);
  void OnReadAsked(std::uint64_t context);
  void OnReadReady(int node, const dledger::ReadReady& ready);
  // Before an InstallSnapshot is stepped. Returns whether the peer can do without it.
  bool CanDoWithout(int node, const Snapshot& snapshot) const;
  void OnChangeProposed(std::uint64_t context, const EntryRef& entry);
  void OnChangeFate(int node, const dledger::ChangeFate& fate);
  void FullScan();

  // Entries known to be committed.
  LogIndex committed() const { return LogIndex{committed_.size()}; }
  // The last membership that is.
  const Membership& committed_membership() const { return memberships_.back().membership; }
  // True when losing this peer's disk leaves every majority with a copy of everything committed.
  bool MayWipe(int node) const;
  // True when every group that may come to power without this peer has a majority.
  bool MayStayDown(int node) const;

 private:
  bool HoldsDurably(int node, LogIndex index, const EntryRef& entry) const;
  bool CountsForCommit(int node, LogIndex index, const EntryRef& entry) const;
  const EntryRef* Committed(LogIndex index) const;
  const SimNode& at(int node) const { return nodes_[static_cast<std::size_t>(node)]; }
  std::vector<const Membership*> MembershipsInPlay() const;
  void CheckVoteSent(int node, Term term, const PeerId& candidate);
  void CheckAckSent(int node, const dledger::Envelope& envelope,
                    const dledger::AppendResponse& response);
  void CheckOffer(int node, const PeerId& to);
  void CheckMembershipAppended(int node, const EntryRef& entry);
  void CheckVotesOf(int node, Term term);
  void CheckMajoritiesHold(LogIndex index);
  void CheckBase(int node);
  void Commit(int node, const EntryRef& entry);

  struct Watched {
    LogIndex commit;    // of this incarnation
    HardState durable;  // greatest ever, reset by a wipe
    SimLog lost;        // durable before the wipe, until it counts again
    int transfer_ticks = 0;
  };
  struct CommittedMembership {
    LogIndex index;
    Term in;  // the term of the leader that committed it
    Membership membership;
  };

  const Options& options_;
  const std::vector<SimNode>& nodes_;
  std::vector<Watched> watched_;
  std::vector<EntryRef> committed_;
  std::vector<Term> committed_in_;
  std::vector<std::uint64_t> committed_hash_;
  std::vector<CommittedMembership> memberships_;  // [0] is the group's first
  std::map<Term, int> leaders_;
  std::map<std::pair<int, Term>, PeerId> votes_;
  std::map<std::pair<Term, LogIndex>, std::int64_t> numbers_;
  std::unordered_map<std::uint64_t, LogIndex> reads_;           // context -> committed when asked
  std::unordered_map<std::uint64_t, std::int64_t> changes_;     // context -> its entry's number
  std::set<std::int64_t> refused_changes_, committed_changes_;  // numbers
  std::optional<Violation> violation_;
};

}  // namespace triad::sim
