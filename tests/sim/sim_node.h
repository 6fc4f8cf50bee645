// SimNode: one simulated peer: the real Core on a simulated disk, with a state machine that is a
// hash. What a shell does around the core, without threads.
//
// Thread: the simulator's only one.

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "dledger/raft/core.h"
#include "tests/sim/sim_disk.h"

namespace triad::sim {

using dledger::Core;
using dledger::CoreConfig;
using dledger::Entry;
using dledger::Input;
using dledger::Membership;
using dledger::Output;
using dledger::Role;

PeerId IdOf(int node);         // 0 -> "n0"
int NodeOf(const PeerId& id);  // -1 for a name that is none

// Entries carry who they are: store_time_ms is a number unique in the run, position the number of
// the entry before it. So a chain of entries can be followed without looking at bytes.
EntryRef MakeEntry(Term term, LogIndex index, dledger::EntryType type, std::int64_t number,
                   std::int64_t previous_number, std::size_t payload_bytes);
inline std::int64_t NumberOf(const EntryRef& entry) {
  return entry->store_time_ms;
}

class SimNode {
 public:
  SimNode(int node, CoreConfig config) : node_(node), config_(std::move(config)) {}

  int node() const { return node_; }
  bool up() const { return core_ != nullptr; }
  Core& core() { return *core_; }
  const Core& core() const { return *core_; }
  SimDisk& disk() { return disk_; }
  const SimDisk& disk() const { return disk_; }
  std::uint64_t incarnation() const { return incarnation_; }

  // From what the disk holds.
  void Start(std::uint64_t seed);
  void Stop() { core_.reset(); }

  // Steps the core; its storage operations show in log() at once.
  void Step(const Input& input, Output* output);
  // Its log as the core believes it to be: durable or on its way. [0] is index 1.
  const std::vector<EntryRef>& log() const { return log_; }
  EntryRef NextEntry(dledger::EntryType type, std::int64_t number, std::size_t bytes) const;
  dledger::Loaded Load(const dledger::LoadRequest& request) const;

  // The state machine.
  LogIndex applied() const { return applied_; }
  std::uint64_t state_hash() const { return state_hash_; }
  void ApplyNext();
  void SyncState() { disk_.durable().applied = applied_; }

 private:
  const int node_;
  const CoreConfig config_;
  SimDisk disk_;
  std::unique_ptr<Core> core_;
  std::vector<EntryRef> log_;
  LogIndex applied_;
  std::uint64_t state_hash_ = 0;
  std::uint64_t incarnation_ = 0;
};

std::uint64_t HashOn(std::uint64_t state, const Entry& entry);

}  // namespace triad::sim
