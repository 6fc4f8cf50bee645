// CrashWorkload: something that writes to a disk, what it was promised at each moment, and how to
// look at what a crash left of it.
//
// Its life is recorded once; marks in the trace say which promise was in force. Thread: one.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/sim_file_system.h"

namespace triad::sim {

class CrashWorkload {
 public:
  virtual ~CrashWorkload() = default;
  virtual const std::string& name() const = 0;
  virtual FileDisk begin() const { return {}; }  // the disk on which the trace begins
  virtual std::vector<DiskOp> trace() const = 0;
  // Opens what `fs` holds, as a start does. Returns what is wrong with it by the promise `mark`;
  // empty: nothing. `found`: what is there, so that two recoveries can be compared.
  virtual std::string Recover(SimFileSystem& fs, std::uint64_t mark, std::string* found) const = 0;
};

}  // namespace triad::sim
