// The replicated state as pieces of a dledger snapshot, and back.
//
// Bounds: a piece and a record in memory, both ways.

#pragma once

#include <memory>

#include "broker/state/state_store.h"
#include "dledger/node.h"

namespace triad::broker {

std::unique_ptr<dledger::StatePieces> PiecesOf(std::unique_ptr<StateRecords> records);

// `pieces` outlives what is opened; one at a time. Errors: kCorruption, and those of the pieces.
OpenRecords RecordsOf(dledger::StoredPieces* pieces);

}  // namespace triad::broker
