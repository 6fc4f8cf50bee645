// Turns off one kind of fault after another while a schedule still fails: what is left is the bug's
// own.
//
// Each try runs in a child process, so that a CHECK that fires ends only the try.

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

// Runs `runs_clean` on ever smaller options. Returns the command line that repeats the failure, or
// nothing when `options` do not fail at all.
std::string Minimize(GroupOptions options, bool (*runs_clean)(const GroupOptions&));

}  // namespace triad::sim
