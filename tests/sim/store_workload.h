// Workloads of the broker's own stores for the crash images: state batches, and consume queues with
// their checkpoint.

#pragma once

#include <memory>
#include <vector>

#include "tests/sim/crash_workload.h"

namespace triad::sim {

std::vector<std::unique_ptr<CrashWorkload>> StoreWorkloads(std::uint64_t seed);

}  // namespace triad::sim
