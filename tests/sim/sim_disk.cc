#include "tests/sim/sim_disk.h"

#include <glog/logging.h>

#include <utility>

namespace triad::sim {

void SimDisk::ApplyLog(const StorageOp& op, std::size_t entries) {
  if (op.truncate_from.has_value()) durable_.log.TruncateFrom(*op.truncate_from);
  if (op.reset.has_value()) {
    const Snapshot& snapshot = staged_.at(op.token);
    durable_.log.Reset(*op.reset, snapshot.base_number);
    durable_.applied = snapshot.applied;
    durable_.state_hash = snapshot.state_hash;
    staged_.erase(op.token);
  }
  for (std::size_t i = 0; i < entries; ++i) durable_.log.Append(op.append[i]);
}

void SimDisk::ApplyState(const StorageOp& op) {
  if (op.hard_state.has_value()) durable_.hard_state = *op.hard_state;
  if (op.recovering.has_value()) durable_.recovering = *op.recovering;
}

Token SimDisk::Complete(std::size_t count) {
  CHECK_LE(count, pending_.size());
  CHECK_GT(count, 0u);
  Token last = 0;
  for (; count > 0; --count) {
    const StorageOp& op = pending_.front();
    ApplyLog(op, op.append.size());
    ApplyState(op);
    last = op.token;
    pending_.pop_front();
  }
  return last;
}

void SimDisk::CrashProcess() {
  if (!pending_.empty()) Complete(pending_.size());
  staged_.clear();
}

void SimDisk::LosePower(Random& dice) {
  const std::size_t states = dice.Below(pending_.size() + 1);
  const std::size_t logs = dice.Below(pending_.size() + 1);
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    const StorageOp& op = pending_[i];
    if (i < states) ApplyState(op);
    if (i < logs) ApplyLog(op, op.append.size());
    // The write that was under way: any number of its entries.
    if (i == logs && !op.append.empty()) ApplyLog(op, dice.Below(op.append.size() + 1));
  }
  pending_.clear();
  staged_.clear();
}

}  // namespace triad::sim
