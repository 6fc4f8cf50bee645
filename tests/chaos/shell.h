// Shell: runs a program to its end, and waits that a stop signal cuts short.
//
// Thread: safe on every thread; Pause is for the main thread, where stop signals arrive
// (HoldStopSignals before the first thread).

#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "common/status.h"

namespace triad::chaos {

// Errors: kIoError with the command, its status and what it said.
Status RunProgram(const std::vector<std::string>& command);

// Waits; true when SIGTERM or SIGINT came instead of the end of `time`, now or earlier.
bool Pause(std::chrono::milliseconds time);

}  // namespace triad::chaos
