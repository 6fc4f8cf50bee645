// SimNode: one simulated peer: the real Core on a simulated disk, with a state machine that is a
// hash. What a shell does around the core, without threads.
//
// Thread: the simulator's only one.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "dledger/raft/core.h"
#include "tests/sim/sim_disk.h"

namespace triad::sim {

using dledger::Core;
using dledger::CoreConfig;
using dledger::Input;
using dledger::Output;
using dledger::Role;

class SimNode {
 public:
  SimNode(int node, CoreConfig config);

  int node() const { return node_; }
  bool up() const { return core_ != nullptr; }
  Core& core() { return *core_; }
  const Core& core() const { return *core_; }
  SimDisk& disk() { return disk_; }
  const SimDisk& disk() const { return disk_; }
  std::uint64_t incarnation() const { return incarnation_; }  // 0: never started

  // From what the disk holds.
  void Start(std::uint64_t seed);
  void Stop() { core_.reset(); }

  // Steps the core; its storage operations show in log() at once.
  void Step(const Input& input, Output* output);
  // Its log as the core believes it to be: durable or on its way.
  const SimLog& log() const { return log_; }
  EntryRef NextEntry(dledger::EntryType type, std::int64_t number, std::string bytes) const;
  dledger::Loaded Load(const dledger::LoadRequest& request) const;

  // The state machine.
  LogIndex applied() const { return applied_; }
  std::uint64_t state_hash() const { return state_hash_; }
  void ApplyNext();
  void SyncState();

  Snapshot TakeSnapshot() const;
  // Before an InstallSnapshot of it is stepped: the operation that installs it takes it from here.
  void Stage(Snapshot snapshot) { staged_ = std::move(snapshot); }
  // The greatest index that Purge may be given, + 1; first() when there is nothing to purge.
  LogIndex MayPurgeBefore() const;
  // On the disk at once, as dropped segments are; then the core is told.
  void Purge(LogIndex first, Output* output);

 private:
  const int node_;
  const CoreConfig config_;
  SimDisk disk_;
  std::unique_ptr<Core> core_;
  SimLog log_;
  LogIndex applied_;
  std::uint64_t state_hash_ = 0;
  std::optional<Snapshot> staged_;
  std::uint64_t incarnation_ = 0;
};

std::uint64_t HashOn(std::uint64_t state, const Entry& entry);

}  // namespace triad::sim
