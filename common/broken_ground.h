// BrokenGround: the end of a process whose disk failed it: what it could not write or read is
// unknown from now on, and nothing more may be acknowledged.
//
// Thread: any. A simulator, which holds several peers in one process, sets a handler that ends the
// peer at hand instead (by an exception of its own). Production sets none: LOG(FATAL).

#pragma once

#include <string>

namespace triad {

// Never returns. `what` names file, offset and the way out.
[[noreturn]] void DieOfBrokenGround(const std::string& what);

// Must not return; null: LOG(FATAL) again.
using BrokenGroundHandler = void (*)(const std::string& what);
void SetBrokenGroundHandler(BrokenGroundHandler handler);

}  // namespace triad
