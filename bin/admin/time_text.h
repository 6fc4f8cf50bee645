// Points in time as mqadmin reads and prints them (local time, as the original).

#pragma once

#include <cstdint>
#include <string>

#include "common/status.h"

namespace triad::admin {

// yyyy-MM-dd HH:mm:ss,SSS; "N/A" for 0 and less.
std::string FormatTime(std::int64_t ms);

// "now", "currentTimeMillis", milliseconds, or yyyy-MM-dd#HH:mm:ss:SSS; -1 is the end of the queue.
Result<std::int64_t> ParseTime(const std::string& text);

}  // namespace triad::admin
