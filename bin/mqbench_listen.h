// mqbench listener: how fast the C++ client's push consumer works a backlog off, with a listener
// that does nothing; concurrently, or in order with queue locks.
//
// One member of a new group, from the first offset to the end that the topic had at the start.
// Blocking; main thread. Exit codes as in bench/mqbench_runs.h.

#pragma once

#include "bin/bench/mqbench_runs.h"

namespace triad {

int BenchListener(const bench::MqbenchOptions& options, bool is_orderly);

}  // namespace triad
