// How the mutant builds of the simulators look for planted bugs (common/mutant.h).

#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>

namespace triad::sim {

struct MutantHunt {
  std::string program;  // as in "==== sim_raft: INVARIANT violated: ..."
  std::span<const std::pair<int, const char*>> mutants;  // number, what is wrong
  int only = 0;                                          // 0: all of them
  std::uint64_t base = 0;                                // seed of the first schedule
  std::uint64_t schedules = 0;                           // at most, for each mutant
  std::function<bool(std::uint64_t seed)> runs_clean;
};

// Each mutant in a process of its own: a CHECK that fires there has caught it too. Prints a row for
// each and appends the rows to *table. Returns how many were missed.
int HuntMutants(const MutantHunt& hunt, std::string* table);

}  // namespace triad::sim
