// GroupWorld: one schedule of sim_broker: whole brokers, clients, a nemesis, an oracle, one
// event loop, one seed. First a time of faults, then everything heals and the group must serve
// again, with everything acknowledged on every peer.
//
// Thread: the simulator's only one. Bounds: simulated time ends the run.

#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/sim/group/event_loop.h"
#include "tests/sim/group/group_clients.h"
#include "tests/sim/group/group_net.h"
#include "tests/sim/group/group_options.h"
#include "tests/sim/group/group_oracle.h"
#include "tests/sim/group/journal.h"
#include "tests/sim/group/sim_peer.h"
#include "tests/sim/random.h"

namespace triad::sim {

struct GroupCounts {
  std::uint64_t steps = 0;
  std::uint64_t entries = 0;
  std::uint64_t acked = 0;
  std::uint64_t starts = 0;
  std::uint64_t kills = 0;
  std::uint64_t power_losses = 0;
  std::uint64_t disk_deaths = 0;
  std::uint64_t stops = 0;
  std::uint64_t cuts = 0;
  std::uint64_t breaks = 0;
  std::uint64_t halves = 0;  // frames cut in half by a break
  std::uint64_t pauses = 0;
  std::uint64_t transfers = 0;
  std::uint64_t disk_errors = 0;  // met, as all faults of disks here
  std::uint64_t full_disks = 0;
  std::uint64_t short_writes = 0;
  std::uint64_t bad_sectors = 0;
  std::uint64_t misdirected = 0;
  std::uint64_t lies = 0;
  std::uint64_t hangs = 0;  // of 30 seconds
  std::uint64_t rot = 0;
  std::uint64_t replaced = 0;  // disks with a rotten state, as the refusal to start asks for
  std::uint64_t wipes = 0;
  std::uint64_t beyond = 0;  // damage beyond the fault budget
  std::uint64_t drops = 0;
  std::uint64_t holds = 0;  // a segment stayed for a peer that catches up
  std::uint64_t snapshots = 0;
  std::uint64_t members_added = 0;  // committed, as all changes of the membership here
  std::uint64_t promotions = 0;
  std::uint64_t members_removed = 0;
  std::uint64_t leaders_removed = 0;
  std::uint64_t dead_removed = 0;
  std::uint64_t renewed = 0;  // machines that came back with an empty disk under a new id
  std::uint64_t changes_refused = 0;
  std::uint64_t changes_unknown = 0;
  std::uint64_t repairs = 0;  // restarts of a peer whose log was found damaged
  void Add(const GroupCounts& other);
};
std::string ToString(const GroupCounts& counts);
// Each counter, and how many of it 2,000 schedules must bring about, of the usual class and of the
// one beyond the fault budget: a fault that never fires tests nothing.
struct GroupCountName {
  const char* name;
  std::uint64_t GroupCounts::*count;
  std::uint64_t floor;
  std::uint64_t floor_beyond;
};
std::span<const GroupCountName> GroupCountNames();
// What is too few, in words; empty: nothing.
std::string TooFew(const GroupCounts& counts, std::uint64_t schedules, bool beyond);

class GroupWorld {
 public:
  // The run ends at step `until`, whatever comes.
  GroupWorld(const GroupOptions& options, bool print, std::uint64_t until = UINT64_MAX);
  ~GroupWorld();

  // True when nothing was violated.
  bool Run();
  const GroupCounts& counts() const { return counts_; }
  std::uint64_t trace_hash() const { return journal_.hash(); }
  std::string Report() const;
  const std::optional<GroupViolation>& violation() const { return oracle_.violation(); }

 private:
  // ---- group_world.cc ----
  void StartPeer(int index);
  void StartNewPeer(int machine);
  std::vector<PeerId> PeersInFiles() const;
  void RestartLater(int index);
  void OnRefused(int index, const Status& why);
  void OnDied(int index, const std::string& why);
  void Heal();
  bool IsOver();
  void CheckEnd();
  void SendLast(std::size_t producer);
  void Drain();
  bool IsWell();
  void RestartDamaged(int index);

  // ---- group_nemesis.cc ----
  void ScheduleNemesis();
  void Every(Micros gap, std::function<void()> task);
  int Any();
  int Another(int peer);
  int Victim();
  bool MayHurt(int victim);
  bool PickFile(int victim, std::string* path, std::uint64_t* size);
  void Damage(int victim, const std::string& path, std::uint64_t size);
  void CutSome();
  void CutRing(Micros until);
  void Crash();
  void StopOne();
  void PauseOne();
  void FailDisk();
  void FillDisk();
  void RotOne();
  void BreakSector();
  void MisdirectOne();
  void WipeOne();
  void HangOne();
  void GoBeyond();
  void RotMany();
  void LieOnce();
  void WatchLiar(int liar, LogIndex told);
  void Transfer();

  SimPeer& peer(int index) { return *peers_[static_cast<std::size_t>(index)]; }

  const GroupOptions options_;
  Journal journal_;
  EventLoop loop_;
  Random disk_dice_;
  Random dice_;
  Random client_dice_;
  Random nemesis_dice_;
  GroupOracle oracle_;
  GroupNet net_;
  std::vector<std::unique_ptr<SimPeer>> peers_;
  std::vector<std::unique_ptr<Producer>> producers_;
  std::vector<std::unique_ptr<GroupClient>> others_;
  std::unique_ptr<MemberKeeper> member_keeper_;
  std::vector<std::unique_ptr<Drainer>> drainers_;
  const std::uint64_t until_;
  bool healed_ = false;
  bool has_dedup_topic_ = false;
  std::array<bool, kPeersMax> has_rotten_state_{};
  std::size_t last_sends_ = 0;  // acknowledged after healing
  std::string last_refusal_;    // of a start
  std::string last_death_;
  GroupCounts counts_;
};

}  // namespace triad::sim
