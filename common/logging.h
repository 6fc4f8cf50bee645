// Logging: how a program's glog lines reach RocketMQ's log file names.
//
// Call once, in main, after flags were parsed and before the first thread. With a directory: lines
// of INFO and above go to <directory>/<name>.log, which is renamed to <name>.1.log (then .2, ...)
// when it is full; WARNING and above also go to standard error. Without one: everything goes to
// standard error. Bounds: kLogFileBytes per file, kLogFiles old files.

#pragma once

#include <cstdint>
#include <string>

#include "common/status.h"

namespace triad {

inline constexpr std::uint64_t kLogFileBytes = 128u << 20;
inline constexpr int kLogFiles = 10;

struct LoggingOptions {
  std::string program;    // argv[0]
  std::string directory;  // created when absent; empty: standard error only
  std::string name;       // "broker", "namesrv"
};

// Errors: kIoError when the directory or file cannot be made (lines then go to standard error).
Status InitLogging(const LoggingOptions& options);

}  // namespace triad
