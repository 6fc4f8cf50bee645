// Where a message stands inside an entry of the log.
//
// Pure. Keeps the entry's bytes alive with what it finds.

#pragma once

#include "broker/store/message_store.h"
#include "common/status.h"
#include "dledger/raft/entry.h"

namespace triad::broker {

// The record of `unit` inside its entry. Errors: kCorruption.
Result<LoadedMessage> LocateMessage(dledger::EntryRef entry, const QueueUnit& unit);

// The message that begins at `offset`, which the entry covers. Its CRC is checked.
// Errors: kNotFound (none begins there), kCorruption.
Result<LoadedMessage> FindMessage(dledger::EntryRef entry, PhysicalOffset offset);

}  // namespace triad::broker
