// World: one schedule: peers, network, clients and a nemesis on one event queue, one thread, one
// seed. First a time of faults, then everything heals and the group must serve again.
//
// Thread: the simulator's only one. Bounds: simulated time ends the run.

#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <vector>

#include "tests/sim/network.h"
#include "tests/sim/options.h"
#include "tests/sim/oracle.h"
#include "tests/sim/sim_node.h"
#include "tests/sim/trace.h"

namespace triad::sim {

struct Counts {
  std::uint64_t steps = 0;
  std::uint64_t proposals = 0;
  std::uint64_t committed = 0;
  std::uint64_t reads = 0;
  std::uint64_t elections = 0;
  std::uint64_t crashes = 0;
  std::uint64_t power_losses = 0;
  std::uint64_t wipes = 0;
  std::uint64_t recoveries = 0;
  std::uint64_t transfers = 0;
  std::uint64_t transfers_failed = 0;
  std::uint64_t cuts = 0;
  std::uint64_t pauses = 0;
  std::uint64_t rings = 0;  // of the cuts
  std::uint64_t disconnects = 0;
  std::uint64_t leftovers = 0;  // came of a connection that was broken already
  std::uint64_t drops = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t replays = 0;
  std::uint64_t disk_hangs = 0;
  std::uint64_t failed_loads = 0;
  std::uint64_t changes = 0;  // asked for
  std::uint64_t learners_added = 0;
  std::uint64_t promotions = 0;
  std::uint64_t removals = 0;
  std::uint64_t leaders_removed = 0;
  std::uint64_t dead_removed = 0;
  std::uint64_t changes_refused = 0;
  std::uint64_t changes_unknown = 0;
  std::uint64_t memberships_truncated = 0;
  std::uint64_t purges = 0;
  std::uint64_t snapshots_installed = 0;
  std::uint64_t snapshots_refused = 0;
  std::uint64_t snapshots_failed = 0;

  void Add(const Counts& other);
};
// Each counter, and how many of it 20,000 schedules must bring about: a fault that never fires
// tests nothing.
struct CountName {
  const char* name;
  std::uint64_t Counts::*count;
  std::uint64_t floor;
};
std::span<const CountName> CountNames();

class World {
 public:
  // The run ends at step `until`, whatever comes.
  World(const Options& options, bool print, std::uint64_t until = UINT64_MAX);

  // True when no invariant was violated.
  bool Run();
  const Counts& counts() const { return counts_; }
  std::uint64_t trace_hash() const { return trace_.hash(); }
  // Everything needed to understand a failure.
  std::string Report() const;

 private:
  struct Event {
    Micros at;
    std::uint64_t sequence;
    EventKind kind;
    int node;
    std::uint64_t detail;  // what it means depends on the kind
    std::uint32_t slot;
    bool operator<(const Event& other) const {  // for a heap with the earliest on top
      return at != other.at ? at > other.at : sequence > other.sequence;
    }
  };
  struct Peer {
    Micros paused_until = 0;
    Micros tick_every = 0;
    bool disk_busy = false;
    std::size_t disk_batch = 0;
  };

  // ---- world.cc: time and steps ----
  void Push(Micros at, EventKind kind, int node, std::uint64_t detail = 0, std::uint32_t slot = 0);
  void Dispatch(const Event& event);
  bool IsStale(const Event& event) const;
  void StepNode(int node, const Input& input);
  void Handle(int node, Role role_before);
  void Submit(int node, StorageOp op);
  void StartDisk(int node);
  void Emit(int node, const dledger::Envelope& envelope);
  void Apply(int node, LogIndex upto);
  void Deliver(const Event& event);
  void Replay(Flight old, Micros within);
  void ReplayTo(int node);
  void ReplayAckTo(int node);
  void OnDiskDone(const Event& event);
  void OnRestart(int node);
  std::uint32_t Store(Flight flight);
  Flight Take(std::uint32_t slot);

  // ---- world_work.cc: clients, liveness ----
  void ScheduleWork();
  void Propose();
  void ProposeOn(int node, dledger::EntryType type, std::size_t bytes);
  void Noop(const Event& event);
  void Read();
  void Transfer();
  int PickLeader(bool ready);
  void Heal();
  bool IsWell();

  // ---- world_members.cc: memberships, snapshots, retention ----
  void ScheduleMembers();
  void ChangeMembers();
  dledger::ChangeMembership PickChange(const Membership& membership);
  void Change(int node, const dledger::ChangeMembership& change);
  void ProposeMembers(int node, const Membership& membership);
  void OnFate(int node, const dledger::ChangeFate& fate);
  void Purge();
  void SendSnapshot(int node, const dledger::SnapshotNeeded& needed);
  void OnSnapshot(const Event& event);
  void OnSnapshotSent(const Event& event);

  // ---- nemesis.cc ----
  void ScheduleNemesis();
  void Nemesis(std::uint64_t which);
  int PickVictim();
  void CutSomething();
  void CutRing(int first, Micros time);
  void CutPair(int a, int b, bool both, Micros time);
  void Crash(int node);
  void CrashSome();
  void Wipe();
  void PauseOne();
  void BreakOne();
  void FlapOne();
  void NoticeBreak(int a, int b);
  void ScheduleRestart(int node);

  SimNode& node(int n) { return nodes_[static_cast<std::size_t>(n)]; }
  const SimNode& node(int n) const { return nodes_[static_cast<std::size_t>(n)]; }
  Peer& peer(int n) { return peers_[static_cast<std::size_t>(n)]; }

  struct SnapshotFlight {
    int from = 0;
    int to = 0;
    std::uint64_t from_incarnation = 0;
    Term term;
    bool ok = false;
    bool again = false;  // an old one: nobody waits for its answer
    Snapshot snapshot;
  };

  const Options options_;
  const std::uint64_t until_;
  Trace trace_;
  Micros now_ = 0;
  std::uint64_t sequence_ = 0;
  bool healed_ = false;
  Micros well_until_ = 0;  // once healed: by then all must be well
  std::priority_queue<Event> events_;
  std::vector<SimNode> nodes_;
  std::vector<Peer> peers_;
  Oracle oracle_;
  Network network_;
  Random disk_dice_;
  Random client_dice_;
  Random nemesis_dice_;
  std::vector<Flight> flights_;
  std::vector<std::uint32_t> free_flights_;
  std::vector<dledger::Loaded> loads_;
  std::deque<SnapshotFlight> snapshots_;  // references stay good
  Output output_;
  std::optional<int> crash_now_;  // after the current step
  std::int64_t next_number_ = 1;
  std::uint64_t next_read_ = 1;
  std::uint64_t next_change_ = 1;
  std::map<std::uint64_t, dledger::ChangeMembership> changes_;
  std::optional<Membership> propose_members_;  // after the current step
  std::uint64_t change_now_ = 0;               // the change that asks for it
  int left_down_ = -1;
  LogIndex goal_;  // after healing: commit this everywhere
  Micros goal_at_ = 0;
  Counts counts_;
};

}  // namespace triad::sim
