// SimDisk: the log, vote file and synced state of one simulated peer: what is durable, and what is
// on its way.
//
// Operations complete in order. A process crash keeps all of them (the page cache survives); a
// power loss keeps any prefix of the log writes and, independently, any prefix of the term and vote
// writes. A snapshot replaces log and state at once or not at all. Thread: the simulator's only
// one.

#pragma once

#include <deque>
#include <map>
#include <utility>

#include "dledger/raft/types.h"
#include "tests/sim/random.h"
#include "tests/sim/sim_log.h"

namespace triad::sim {

using dledger::HardState;
using dledger::StorageOp;
using dledger::Token;

struct DiskImage {
  HardState hard_state;
  bool recovering = false;
  SimLog log;
  LogIndex applied;  // of the state machine, synced
  std::uint64_t state_hash = 0;
};

class SimDisk {
 public:
  SimDisk() = default;
  explicit SimDisk(DiskImage image) : durable_(std::move(image)) {}

  const DiskImage& durable() const { return durable_; }
  DiskImage& durable() { return durable_; }

  void Submit(StorageOp op) { pending_.push_back(std::move(op)); }
  // What the operation with this token installs.
  void Stage(Token token, Snapshot snapshot) { staged_.emplace(token, std::move(snapshot)); }
  bool reset_pending() const { return !staged_.empty(); }
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
  std::map<Token, Snapshot> staged_;
};

}  // namespace triad::sim
