// Jitter: the core's only randomness, so that elections do not collide. splitmix64.
//
// Pure: the same seed gives the same sequence on every machine and compiler.

#pragma once

#include <cstdint>

namespace triad::dledger {

class Jitter {
 public:
  explicit Jitter(std::uint64_t seed) : state_(seed) {}

  // In [begin, end); end > begin.
  int Between(int begin, int end) {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return begin + static_cast<int>(z % static_cast<std::uint64_t>(end - begin));
  }

 private:
  std::uint64_t state_;
};

}  // namespace triad::dledger
