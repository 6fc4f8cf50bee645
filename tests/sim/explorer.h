// Explorer: instead of a random order of events, every order of a few: breadth first over
// deliveries, syncs, elections, proposals, one crash and one cut of three peers, each state once.
//
// A state is known by what can be seen of it (terms, votes, logs, disks, commits, what flies); two
// states that look alike are taken for one. The oracle checks every step. Thread: one.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

namespace triad::sim {

struct Exploration {
  std::uint64_t states = 0;  // distinct
  std::uint64_t steps = 0;
  int depth = 0;          // all orders of this many events were tried...
  bool is_whole = false;  // ...and there are no more
  std::string violation;  // empty: none
};

// From three empty peers, or from a group with a leader and one committed entry.
Exploration Explore(bool from_leader, std::uint64_t states_max);

}  // namespace triad::sim
