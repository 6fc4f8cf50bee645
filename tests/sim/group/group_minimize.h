// What a schedule of sim_broker can do without, and the smallest schedule that still fails
// (shrink.h).

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/group/group_options.h"

namespace triad::sim {

// What `--off a,b` may name.
std::vector<std::string> GroupSwitchNames();
// Options without a kind of fault or work. False: no such name.
bool TurnOff(const std::string& name, GroupOptions* options);

// Runs `runs_clean` on ever smaller options. Returns the words of the command line that
// repeats the failure, or nothing when `options` do not fail at all.
std::string Minimize(GroupOptions options, bool (*runs_clean)(const GroupOptions&));

}  // namespace triad::sim
