// Workloads of a whole broker's store for the crash images: its ordinary life, the rebuilding of
// what is derived from the log, and the installation of another peer's state.

#pragma once

#include <memory>
#include <vector>

#include "tests/sim/crash_workload.h"

namespace triad::sim {

std::vector<std::unique_ptr<CrashWorkload>> PeerWorkloads(std::uint64_t seed);

}  // namespace triad::sim
