// Runs of chosen seeds, alike for every simulator. Both print what they found and return an exit
// code.

#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace triad::sim {

// Runs one seed and tells the hash of its trace. False: it failed, and said why.
using RunSeed = std::function<bool(std::uint64_t seed, std::uint64_t* hash)>;

// Each seed twice: the traces must be alike. The printed hash of all is the same on every compiler
// and at every optimisation level.
int RunSeedsTwice(std::uint64_t base, std::uint64_t schedules, const RunSeed& run);

// A file of seeds that once failed: one a line, # begins a comment.
int RunSeedsFile(const std::string& path, const RunSeed& run);

}  // namespace triad::sim
