// Random: the simulator's dice. xoshiro256**, seeded by splitmix64, with distributions of our own:
// those of the standard library differ between versions.
//
// Pure. One instance per purpose, so that one more draw for the network does not reshuffle the
// disk.

#pragma once

#include <array>
#include <cstdint>

namespace triad::sim {

inline std::uint64_t SplitMix(std::uint64_t* state) {
  std::uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) {
    for (std::uint64_t& word : state_) word = SplitMix(&seed);
  }

  std::uint64_t Next() {
    const std::uint64_t result = RotateLeft(state_[1] * 5, 7) * 9;
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = RotateLeft(state_[3], 45);
    return result;
  }
  // In [0, end); end > 0.
  std::uint64_t Below(std::uint64_t end) { return Next() % end; }
  // In [begin, end].
  std::int64_t Between(std::int64_t begin, std::int64_t end) {
    return begin + static_cast<std::int64_t>(Below(static_cast<std::uint64_t>(end - begin) + 1));
  }
  // With probability `millionths` / 1,000,000.
  bool Chance(std::uint32_t millionths) { return millionths != 0 && Below(1'000'000) < millionths; }
  bool OneIn(std::uint64_t n) { return Below(n) == 0; }
  // A gap of the given mean, for events that come at random: the sum of two uniform draws.
  std::int64_t Gap(std::int64_t mean) { return Between(0, mean) + Between(0, mean) + 1; }

 private:
  static std::uint64_t RotateLeft(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

  std::array<std::uint64_t, 4> state_;
};

}  // namespace triad::sim
