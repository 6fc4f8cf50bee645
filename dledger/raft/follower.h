// Follower: how much of the current leader's log is here, and what is still owed to it.
//
// An acknowledgement says "durable here up to": the smaller of what matches the leader's log and
// what is on disk. Heartbeats are answered at once with what is durable already, so a slow disk
// does not look like a dead peer.
// Pure. Owner: the core. Bounds: none needed, four numbers.

#pragma once

#include <algorithm>
#include <cstdint>

#include "dledger/raft/types.h"

namespace triad::dledger {

class Follower {
 public:
  // A new leader or term: nothing is known to match.
  void Reset() { *this = Follower(); }

  void Matched(LogIndex index, std::uint64_t read_round) {
    match_ = std::max(match_, index);
    round_ = std::max(round_, read_round);
    owes_ = true;
  }
  LogIndex match() const { return match_; }
  std::uint64_t read_round() const { return round_; }
  // Something to say that was not said yet.
  bool Owes(LogIndex held) const { return owes_ || held > said_; }
  void Said(LogIndex held) {
    owes_ = false;
    said_ = std::max(said_, held);
  }
  // The answer waits for the disk; nothing is owed before that.
  void WaitForDisk() { owes_ = false; }

 private:
  LogIndex match_;  // the leader's log up to here is in this peer's log, on disk or not
  LogIndex said_;
  std::uint64_t round_ = 0;
  bool owes_ = false;
};

}  // namespace triad::dledger
