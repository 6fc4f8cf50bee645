// Election: when to campaign, whether a leader is alive, and the count of votes.
//
// Pure. Owner: the core. Bounds: one vote per voter.
// Source: Ongaro's dissertation 3.4, 4.2.3 (a live leader is not disturbed), 9.6 (pre-vote).

#pragma once

#include <cstdint>
#include <vector>

#include "dledger/raft/jitter.h"
#include "dledger/raft/types.h"

namespace triad::dledger {

class Election {
 public:
  // A timeout is drawn from [ticks_min, ticks_max); ticks_max > ticks_min > 0.
  Election(int ticks_min, int ticks_max, std::uint64_t seed);

  // ---- the timer ----
  void Restart();      // a fresh random timeout
  void RestartSoon();  // 0..5 ticks: the leader's connection closed
  // A pre-vote was asked for. Soon after the leader's connection closed the next one comes early, a
  // few times: the others may not have noticed yet when the first one reached them.
  void RestartForPreVote();
  bool Tick();  // true when the timeout has passed
  int ticks_min() const { return ticks_min_; }
  int ticks_max() const { return ticks_max_; }

  // ---- the leader's signs of life ----
  void HeardLeader();  // the timer starts again
  void ForgetLeader() { heard_ = false; }
  // Heard within the minimum timeout: nobody else gets a vote.
  bool LeaderIsAlive() const { return heard_ && ticks_since_heard_ < ticks_min_; }

  // ---- the count, of a pre-vote or a vote ----
  void StartCount() { granted_by_.clear(); }
  void CountGrant(const PeerId& voter);  // once each
  bool Won(const Membership& membership) const;

 private:
  const int ticks_min_;
  const int ticks_max_;
  Jitter jitter_;
  int elapsed_ = 0;
  int timeout_ = 0;
  int early_left_ = 0;
  bool heard_ = false;
  int ticks_since_heard_ = 0;
  std::vector<PeerId> granted_by_;
};

}  // namespace triad::dledger
