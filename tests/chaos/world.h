// World: what the nemeses act on: the processes, the links, the disks; and what was done to them.
//
// Writes every fault and its end into the history, counts those that took effect, and notices
// processes that end by themselves. Thread: the main thread.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bin/local_cluster.h"
#include "tests/chaos/disks.h"
#include "tests/chaos/history_writer.h"
#include "tests/chaos/layout.h"
#include "tests/sim/random.h"

namespace triad::chaos {

class World;

// A fault that was begun. Counted when it took effect; its end is written when this goes.
class Fault {
 public:
  Fault(World* world, std::string kind, std::int64_t id)
      : world_(*world), kind_(std::move(kind)), id_(id) {}
  ~Fault();
  Fault(const Fault&) = delete;
  Fault& operator=(const Fault&) = delete;

  // `count`: how many it was at once.
  void TookEffect(int count = 1);
  // What was seen of it, for its end's line.
  void Saw(const std::string& what) { seen_ += (seen_.empty() ? "" : ", ") + what; }

 private:
  World& world_;
  const std::string kind_;
  const std::int64_t id_;
  bool took_effect_ = false;
  std::string seen_;
};
using FaultPtr = std::shared_ptr<Fault>;

class World {
 public:
  // `layout` and `disks` may be null.
  World(LocalCluster* cluster, Layout* layout, Disks* disks, HistoryWriter* history,
        std::uint64_t seed)
      : cluster_(*cluster), layout_(layout), disks_(disks), history_(*history), random_(seed) {}

  LocalCluster& cluster() { return cluster_; }
  Layout* layout() { return layout_; }
  Disks* disks() { return disks_; }
  HistoryWriter& history() { return history_; }
  sim::Random& random() { return random_; }
  std::string HostOf(std::size_t peer) const { return "n" + std::to_string(peer); }
  std::size_t AnyPeer() { return random_.Below(3); }
  // As the NameServer says; nothing when it does not know.
  std::optional<std::size_t> Leader();
  // Often the leader, else any.
  std::size_t LeaderOrAny();

  // Where the wall clocks of the peers are moved (fault_shim.cc); empty: they are not.
  void UseClocks(std::vector<std::string> files) { clock_files_ = std::move(files); }
  const std::vector<std::string>& clock_files() const { return clock_files_; }

  // The operator's program; called after other peers have taken over the places of old ones.
  void UseAdmin(std::string program, std::function<void()> members_changed) {
    admin_ = std::move(program);
    members_changed_ = std::move(members_changed);
  }
  // Runs `mqadmin VERB ... ` until it succeeds. Its last refusal when that takes longer than
  // `limit`.
  Status Admin(std::vector<std::string> words, std::chrono::milliseconds limit);
  // `newcomer` is peer `old` from now on, which ended and is no member any more.
  void TakePlace(std::size_t newcomer, std::size_t old);
  // Another one at every call.
  int NextNumber() { return ++number_; }
  // How long the load's clients may need to find another leader.
  void UsePatience(std::chrono::milliseconds patience) { patience_ = patience; }
  std::chrono::milliseconds patience() const { return patience_; }

  // Nothing but one kind of fault is dealt: its costs are measured.
  void set_alone(bool alone) { alone_ = alone; }
  bool alone() const { return alone_; }

  // A fault begins: writes it into the history.
  FaultPtr Begin(const std::string& kind, const std::string& whom, bool leader = false);
  // Of faults that took effect.
  const std::map<std::string, int>& counts() const { return counts_; }
  int CountOf(const std::string& kind) const {
    const auto found = counts_.find(kind);
    return found == counts_.end() ? 0 : found->second;
  }
  // Something that must not be; the run fails.
  void Problem(const std::string& text);
  const std::vector<std::string>& problems() const { return problems_; }

  // Only sends the signal, so that a fault's time can be taken at once. False: it did not run.
  bool SendKill(std::size_t peer);
  // And waits for the end. `fault` lasts until the peer is started again.
  void Kill(std::size_t peer, FaultPtr fault = nullptr);
  // Stops the process (SIGSTOP) and waits until it stands. False: it does not.
  bool Freeze(pid_t pid);
  void Start(std::size_t peer);
  // The process may end by itself from now on (its disk fails).
  void MayEnd(std::size_t peer) { may_end_.insert(peer); }
  void MustStay(std::size_t peer) { may_end_.erase(peer); }
  bool stopped() const { return stopped_; }
  // Lets the load go on for so long, and looks after the processes. True: the run is to stop.
  bool Wait(std::chrono::milliseconds time);
  bool WaitBetween(std::int64_t from_ms, std::int64_t to_ms) {
    return Wait(std::chrono::milliseconds(random_.Between(from_ms, to_ms)));
  }
  // Until a send begun after `since_ns` is acknowledged, to every client. False: not within
  // `limit`.
  bool WaitForAcks(std::int64_t since_ns, std::chrono::milliseconds limit);
  // Starts what is not running and waits until the NameServer lists all. A problem when it takes
  // longer than `limit`.
  void AllUp(std::chrono::milliseconds limit);
  // Until `peer` holds what the leader held when this was called.
  void WaitCaughtUp(std::size_t peer, std::chrono::milliseconds limit);

 private:
  friend class Fault;
  void LookAfterProcesses();

  LocalCluster& cluster_;
  Layout* const layout_;
  Disks* const disks_;
  HistoryWriter& history_;
  sim::Random random_;
  std::map<std::string, int> counts_;
  std::vector<std::string> problems_;
  std::vector<std::string> clock_files_;
  std::string admin_;
  std::function<void()> members_changed_;
  std::chrono::milliseconds patience_{20'000};
  std::set<std::size_t> may_end_;
  std::set<std::size_t> killed_;
  std::map<std::size_t, FaultPtr> down_;  // what a peer is down for
  int number_ = 0;
  bool alone_ = false;
  bool stopped_ = false;
};

}  // namespace triad::chaos
