#include "dledger/raft/election.h"

#include <glog/logging.h>

#include <algorithm>

#include "common/buggify.h"
#include "common/mutant.h"
#include "dledger/raft/membership.h"

namespace triad::dledger {
namespace {

constexpr int kSoonTicks = 5;  // 50 ms
constexpr int kEarlyPreVotes = 3;
constexpr int kEarlyTicksMin = 3;
constexpr int kEarlyTicksMax = 10;

}  // namespace

Election::Election(int ticks_min, int ticks_max, std::uint64_t seed)
    : ticks_min_(ticks_min), ticks_max_(ticks_max), jitter_(seed) {
  CHECK_GT(ticks_min_, 0);
  CHECK_GT(ticks_max_, ticks_min_);
  Restart();
}

void Election::Restart() {
  elapsed_ = 0;
  timeout_ = TRIAD_MUTANT(27) ? ticks_min_ : jitter_.Between(ticks_min_, ticks_max_);
}

void Election::RestartSoon() {
  elapsed_ = 0;
  timeout_ = jitter_.Between(0, kSoonTicks + 1);
  early_left_ = kEarlyPreVotes;
}

void Election::RestartForPreVote() {
  if (early_left_ == 0) {
    Restart();
    return;
  }
  --early_left_;
  elapsed_ = 0;
  timeout_ = jitter_.Between(kEarlyTicksMin, kEarlyTicksMax);
}

bool Election::Tick() {
  if (heard_ && ticks_since_heard_ < ticks_min_) ++ticks_since_heard_;
  return ++elapsed_ >= timeout_;
}

void Election::HeardLeader() {
  heard_ = true;
  ticks_since_heard_ = 0;
  elapsed_ = 0;
  early_left_ = 0;
  // A timeout shortened by a disconnection is over: the leader is back.
  if (timeout_ < ticks_min_) timeout_ = jitter_.Between(ticks_min_, ticks_max_);
  if (TRIAD_BUGGIFY(3)) elapsed_ = timeout_;  // a campaign right behind what the leader said
}

void Election::CountGrant(const PeerId& voter) {
  if (std::find(granted_by_.begin(), granted_by_.end(), voter) == granted_by_.end()) {
    granted_by_.push_back(voter);
  }
}

bool Election::Won(const Membership& membership) const {
  const auto count = std::count_if(granted_by_.begin(), granted_by_.end(),
                                   [&](const PeerId& peer) { return IsVoter(membership, peer); });
  return static_cast<std::size_t>(count) >= MajorityOf(membership);
}

}  // namespace triad::dledger
