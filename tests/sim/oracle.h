// Oracle: knows everything and checks the invariants. It sees the simulated disks themselves; what
// a peer believes about its own disk is not used.
//
// R1 one leader per term          R2 a leader never truncates      R3 log matching
// R4 leader completeness          R5 same state at same index      R6 commit: monotone, on a
// majority of disks R7 term and vote never go back  R8 durable before said           R9 committed
// is never lost R11 reads are not stale         R12 a recovering peer votes for nobody and counts
// nowhere (tests/sim/README.md has them in full.) Thread: the simulator's only one.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
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
  void OnWipe(int node, const std::vector<EntryRef>& before);
  void OnStorage(int node, const StorageOp& op, Role role_before);
  void OnDurable(int node);
  void OnSend(int node, const dledger::Envelope& envelope);
  void OnRole(int node, const dledger::SoftState& soft);
  void OnStepped(int node);
  void OnApplied(int node);
  void OnReadAsked(std::uint64_t context);
  void OnReadReady(int node, const dledger::ReadReady& ready);
  void FullScan();

  // Entries known to be committed.
  LogIndex committed() const { return LogIndex{committed_.size()}; }
  // True when losing this peer's disk leaves every majority with a copy of everything committed.
  bool MayWipe(int node) const;

 private:
  bool HoldsDurably(int node, LogIndex index, const EntryRef& entry) const;
  bool CountsForCommit(int node, LogIndex index, const EntryRef& entry) const;
  std::size_t majority() const { return static_cast<std::size_t>(options_.voters) / 2 + 1; }
  const SimNode& at(int node) const { return nodes_[static_cast<std::size_t>(node)]; }
  bool IsVoter(int node) const { return node < options_.voters; }
  void CheckVoteSent(int node, Term term, const PeerId& candidate);
  void CheckAckSent(int node, const dledger::Envelope& envelope,
                    const dledger::AppendResponse& response);
  void CheckMajoritiesHold(LogIndex index);

  struct Watched {
    LogIndex commit;             // of this incarnation
    HardState durable;           // greatest ever, reset by a wipe
    std::vector<EntryRef> lost;  // durable before the wipe, until it counts again
  };

  const Options& options_;
  const std::vector<SimNode>& nodes_;
  std::vector<Watched> watched_;
  std::vector<EntryRef> committed_;
  std::vector<Term> committed_in_;  // the term of the leader that committed it
  std::vector<std::uint64_t> committed_hash_;
  std::map<Term, int> leaders_;
  std::map<std::pair<int, Term>, PeerId> votes_;
  std::map<std::pair<Term, LogIndex>, std::int64_t> numbers_;
  std::unordered_map<std::uint64_t, LogIndex> reads_;  // context -> committed when asked
  std::optional<Violation> violation_;
};

}  // namespace triad::sim
