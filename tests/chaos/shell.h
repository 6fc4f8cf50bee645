// Shell: runs a program to its end, and waits that a stop signal cuts short.
//
// Thread: safe on every thread; Pause is for the main thread, where stop signals arrive
// (HoldStopSignals before the first thread).

#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "common/status.h"

namespace triad::chaos {

// Errors: kIoError with the command, its status and what it said. `said`: what it said; may be
// null.
Status RunProgram(const std::vector<std::string>& command, std::string* said = nullptr);

// The number behind the first `word` in what a program said; 0 when it did not say that.
std::int64_t NumberBehind(const std::string& said, const std::string& word);

// Waits; true when SIGTERM or SIGINT came instead of the end of `time`, now or earlier.
bool Pause(std::chrono::milliseconds time);

}  // namespace triad::chaos
