// ServerCpuSeconds: what the servers under load cost, read from /proc.
//
// For benchmarks. Thread: any.

#pragma once

#include <string>

namespace triad {

// User + system seconds of all processes whose command name (or a Java main class) contains `name`.
double ServerCpuSeconds(const std::string& name);

}  // namespace triad
