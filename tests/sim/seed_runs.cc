#include "tests/sim/seed_runs.h"

#include <cstdlib>
#include <fstream>
#include <iostream>

#include "tests/sim/random.h"

namespace triad::sim {

int RunSeedsTwice(std::uint64_t base, std::uint64_t schedules, const RunSeed& run) {
  std::uint64_t all = 0;
  for (std::uint64_t seed = base; seed < base + schedules; ++seed) {
    std::uint64_t first = 0, second = 0;
    if (!run(seed, &first) || !run(seed, &second)) return 1;
    all = SplitMix(&all) ^ first;
    if (first == second) continue;
    std::cout << "seed " << seed << " gave traces " << first << " and " << second << "\n";
    return 1;
  }
  std::cout << schedules << " seeds ran twice alike, trace " << all << "\n";
  return 0;
}

int RunSeedsFile(const std::string& path, const RunSeed& run) {
  std::ifstream in(path);
  if (!in) {
    std::cerr << "cannot read " << path << "\n";
    return 2;
  }
  std::uint64_t ran = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::uint64_t hash = 0;
    if (!run(std::strtoull(line.c_str(), nullptr, 10), &hash)) return 1;
    ++ran;
  }
  std::cout << ran << " regression seeds are clean\n";
  return ran > 0 ? 0 : 1;
}

}  // namespace triad::sim
