// How long a test waits for what must happen, on a loaded machine.

#pragma once

#include <chrono>

namespace triad::broker {

inline constexpr std::chrono::seconds kPatience{20};

}  // namespace triad::broker
