// Buggify: places where the product may behave unusually but rightly, in simulators' builds only.
//
//   if (TRIAD_BUGGIFY(2)) continue;  // say nothing to this peer now; the next heartbeat will
//
// In a normal build TRIAD_BUGGIFY(n) is the constant false and costs nothing. Built with
// -DTRIAD_MUTANTS, each run wakes every point with chance 1/4, and an awake one hits with chance
// 1/20, decided by the run's seed alone. One thread. Points are unique in the whole tree, below 64.
// Source: testing.md §2.1.

#pragma once

#include <cstdint>

namespace triad {

#ifdef TRIAD_MUTANTS

struct BuggifyDice {
  std::uint64_t state = 0;
  std::uint64_t awake = 0;  // a bit for each point

  // splitmix64
  std::uint64_t Next() {
    std::uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
};
inline BuggifyDice buggify_dice;

// A run begins.
inline void BeginBuggify(std::uint64_t seed) {
  buggify_dice.state = seed;
  buggify_dice.awake = buggify_dice.Next() & buggify_dice.Next();
}
inline bool Buggifies(unsigned point) {
  return (buggify_dice.awake >> point & 1) != 0 && buggify_dice.Next() % 20 == 0;
}
#define TRIAD_BUGGIFY(n) (::triad::Buggifies(n))

#else

inline void BeginBuggify(std::uint64_t) {}
#define TRIAD_BUGGIFY(n) false

#endif

}  // namespace triad
