// Checkpoint: the outline of the log up to some synced entry, so that the next start scans only
// what lies behind it.
//
// Derived: a checkpoint that is missing, damaged, or does not fit the log costs a full scan and
// nothing else. It fits when its last entry stands in the log with the same header CRC: the chain
// vouches for everything before. Pure codec plus one whole-file write. Source: architecture.md §3.

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "dledger/log/entry_index.h"

namespace triad::dledger {

std::string EncodeCheckpoint(const LogOutline& outline);
// Nothing when the bytes are damaged.
std::optional<LogOutline> DecodeCheckpoint(std::string_view bytes);
// Whether the log on disk still holds what the checkpoint describes.
bool CheckpointFits(const LogOutline& outline, const SegmentMap& segments);

}  // namespace triad::dledger
