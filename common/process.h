// Process: what every main does around its program: options spelled the Java way, open-file limit,
// orderly stop on a signal.
//
// Owner: main, on the main thread.

#pragma once

#include <chrono>
#include <cstdint>

namespace triad {

// RocketMQ's long options (--configFile, --namesrvAddr, --printConfigItem, --printImportantConfig,
// --help, with "=VALUE" or a following VALUE) become -c, -n, -p, -m and -h, in place (they are
// shorter), so that gflags reads both.
void TranslateLongOptions(int argc, char** argv);

// Raises the soft limit of open files to the hard one. Returns the limit in force.
std::uint64_t RaiseOpenFileLimit();

// Before the first thread is made: SIGTERM and SIGINT wait for WaitForStopSignal in all threads;
// SIGPIPE is ignored. SIGHUP is left alone: it ends the process unless nohup said otherwise.
void HoldStopSignals();

// Blocks until one of them comes and returns its number. From then on a second one ends the process
// at once.
int WaitForStopSignal();
// The same, but 0 when none comes within `limit`.
int WaitForStopSignal(std::chrono::milliseconds limit);

}  // namespace triad
