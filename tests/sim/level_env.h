// LevelDB on a simulated disk: the state's real store, compactions included, in one thread.
//
// Its files are written as LevelDB's own Env writes them (buffered, a manifest's directory synced
// before the manifest is); what it would do on its background thread is done behind each call, on
// the caller's. So a life is the same whenever it is repeated. Sizes are small, or a life would
// never compact.

#pragma once

#include <memory>
#include <string>

#include "broker/state/state_store.h"
#include "common/file_system.h"

namespace triad::sim {

// `fs` outlives the store.
Result<std::unique_ptr<broker::StateStore>> OpenLevelDbOn(FileSystem& fs, const std::string& dir);

}  // namespace triad::sim
