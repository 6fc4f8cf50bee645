// MemoryStateStore: a StateStore in memory over one journal file, for the one-thread simulator.
//
// No thread of its own. Each batch is one journal record [size u32][CRC32C u32][puts and deletes],
// synced; a torn last record was never acknowledged and is cut at open. The journal is rewritten
// when it is much larger than what it says. Owner and errors: as StateStore.

#pragma once

#include <memory>
#include <string>

#include "broker/state/state_store.h"
#include "common/file_system.h"

namespace triad::broker {

// `dir` is created when absent. `fs` outlives the store.
Result<std::unique_ptr<StateStore>> OpenMemoryStateStore(FileSystem& fs, const std::string& dir);

}  // namespace triad::broker
