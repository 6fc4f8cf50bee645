// ZeroedFile: what some files can do besides: zeros that do not pass through the page cache.
//
// Zeros ahead of a log are read by nobody: in the cache they cost a copy and memory, and a sync of
// the same file waits for them. A File that can is also a ZeroedFile; ask with dynamic_cast.
// Thread: beside Write and Sync, on other bytes (whole blocks of kZeroAlign).

#pragma once

#include <cstdint>

#include "common/status.h"

namespace triad {

inline constexpr std::uint64_t kZeroAlign = 4096;

class ZeroedFile {
 public:
  virtual ~ZeroedFile() = default;
  // [offset, offset + size), multiples of kZeroAlign; not synced. Errors: as File::Write;
  // kUnsupported: not here; some of it may be written, use Write for all of it.
  virtual Status WriteZerosUncached(std::uint64_t offset, std::uint64_t size) = 0;
};

}  // namespace triad
