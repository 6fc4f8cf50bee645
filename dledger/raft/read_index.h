// ReadIndex: confirms that this peer still leads, for many reads in one round.
//
// A round is a number that every append carries and every answer echoes. What arrives while a
// round runs waits for the next one, so that each read is confirmed by answers sent AFTER it came.
// Pure. Owner: the core. Bounds: kWaitingMax reads; more are refused.
// Source: Ongaro's dissertation 6.4.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dledger/raft/types.h"

namespace triad::dledger {

class ReadIndex {
 public:
  static constexpr std::size_t kWaitingMax = 65536;

  // A new leadership. Nothing may wait.
  void Reset();
  // To be carried by every append sent from now on.
  std::uint64_t round() const { return round_; }
  // A number that no answer sent so far can carry.
  std::uint64_t NewRound() { return ++round_; }

  // False when too many wait.
  bool Add(std::uint64_t context);
  // Starts a round for those that wait, unless one runs. True: tell every peer now.
  bool Start(LogIndex commit_index);
  // A majority has echoed `round` or a later one.
  void Confirm(std::uint64_t round, Output* output);
  void FailAll(Output* output);

 private:
  std::uint64_t round_ = 0;
  std::vector<std::uint64_t> waiting_;
  std::vector<std::uint64_t> running_;
  std::uint64_t running_round_ = 0;
  LogIndex running_index_;
};

}  // namespace triad::dledger
