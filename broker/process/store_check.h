// Is the store directory ours to use?
//
// A store of the Java broker is refused before anything is written into it (cases.md UPG-1).

#pragma once

#include <string>

#include "common/file_system.h"
#include "common/status.h"

namespace triad::broker {

// `root` may be absent or empty. Errors: kInvalidArgument naming what was found and the way out.
Status CheckStoreRoot(FileSystem& fs, const std::string& root, const std::string& peer_id);

}  // namespace triad::broker
