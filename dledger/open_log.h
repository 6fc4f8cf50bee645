// OpenLog: a peer's log, opened and judged together with the application's state.
//
// What every node does before it has threads. Blocks as long as recovery takes.

#pragma once

#include <memory>

#include "common/file_system.h"
#include "common/status.h"
#include "dledger/log/log_store.h"
#include "dledger/node.h"

namespace triad::dledger {

struct OpenedLog {
  std::unique_ptr<LogStore> store;
  Recovered recovered;  // with `applied`
};
// Begins with the log of a published snapshot, which the application holds already, and forgets it.
// Errors: as LogStore::Open; kInvalidArgument: options; kCorruption: log and state do not belong
// together.
Result<OpenedLog> OpenLog(FileSystem& fs, const NodeOptions& options);

}  // namespace triad::dledger
