#include "dledger/raft/preferred_leader.h"

#include <algorithm>

namespace triad::dledger {

bool PreferredLeader::Tick(bool is_fit) {
  ++since_try_;
  if (since_try_ >= 2 * kWaitsMax * wait_) pause_ = 0;  // long ago: forgiven
  fit_ticks_ = is_fit ? fit_ticks_ + 1 : 0;
  if (fit_ticks_ < wait_ || since_try_ < pause_) return false;
  fit_ticks_ = 0;
  since_try_ = 0;
  pause_ = std::clamp(2 * pause_, wait_, kWaitsMax * wait_);
  return true;
}

}  // namespace triad::dledger
