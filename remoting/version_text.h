// Versions of clients and brokers: numbers on the wire, names for people.
//
// Pure. Source: the original counts its releases since 4.0.0 in twos, a snapshot in front of each.

#pragma once

#include <cstdint>
#include <string>

namespace triad::remoting {

// "V5_3_3" for 479; the number itself where no release has it.
inline std::string VersionName(std::int32_t version) {
  constexpr std::int32_t kFirst = 212;  // V4_0_0_SNAPSHOT
  constexpr std::int32_t kEnd = 612;    // V6_0_0_SNAPSHOT would be it
  if (version < kFirst || version >= kEnd) return std::to_string(version);
  const std::int32_t release = (version - kFirst) / 2;
  std::string name = "V" + std::to_string(4 + release / 100) + "_" +
                     std::to_string(release / 10 % 10) + "_" + std::to_string(release % 10);
  if (version % 2 == 0) name += "_SNAPSHOT";
  return name;
}

}  // namespace triad::remoting
