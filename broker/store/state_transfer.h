// The replicated state as pieces of a dledger snapshot, and back.
//
// Bounds: what is read back stands in memory whole, as the state does.

#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "broker/state/state_store.h"
#include "common/status.h"
#include "dledger/node.h"

namespace triad::broker {

std::unique_ptr<dledger::StatePieces> PiecesOf(std::unique_ptr<StateRecords> records);

// Errors: kCorruption, and those of the pieces.
Result<std::vector<std::pair<std::string, std::string>>> RecordsOf(dledger::StatePieces* pieces);

}  // namespace triad::broker
