// What a broker asks about the machine it runs on.

#pragma once

#include <unistd.h>

#include <cstdint>

namespace triad::broker {

inline std::int64_t MachineMemoryBytes() {
  return static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGE_SIZE);
}

}  // namespace triad::broker
