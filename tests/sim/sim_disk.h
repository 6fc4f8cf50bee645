// SimDisk: the log and vote file of one simulated peer: what is durable, and what is on its way.
//
// Operations complete in order. A process crash keeps all of them (the page cache survives); a
// power loss keeps any prefix of the log writes and, independently, any prefix of the term and vote
// writes. Thread: the simulator's only one.

#pragma once

#include <deque>
#include <utility>
#include <vector>

#include "dledger/raft/types.h"
#include "tests/sim/random.h"

namespace triad::sim {

using dledger::EntryRef;
using dledger::HardState;
using dledger::StorageOp;
using dledger::Token;

struct DiskImage {
  HardState hard_state;
  bool recovering = false;
  std::vector<EntryRef> log;  // [0] is index 1
  LogIndex applied;           // of the state machine, synced
};

class SimDisk {
 public:
  SimDisk() = default;
  explicit SimDisk(DiskImage image) : durable_(std::move(image)) {}

  const DiskImage& durable() const { return durable_; }
  DiskImage& durable() { return durable_; }

  void Submit(StorageOp op) { pending_.push_back(std::move(op)); }
  std::size_t pending() const { return pending_.size(); }
  // Makes the oldest `count` operations durable. Returns the last one's token.
  Token Complete(std::size_t count);

  void CrashProcess();
  void LosePower(Random& dice);

 private:
  void ApplyLog(const StorageOp& op, std::size_t entries);
  void ApplyState(const StorageOp& op);

  DiskImage durable_;
  std::deque<StorageOp> pending_;
};

}  // namespace triad::sim
