// Workloads of the key index for the crash images.

#pragma once

#include <memory>
#include <vector>

#include "tests/sim/crash_workload.h"

namespace triad::sim {

std::vector<std::unique_ptr<CrashWorkload>> KeyWorkloads(std::uint64_t seed);

}  // namespace triad::sim
