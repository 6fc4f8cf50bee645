// Block reader: the entries of one block of a segment, read and checked.
//
// Any thread; reads the file. Bounds: a block holds kBlockBytes, or one larger entry.

#pragma once

#include <vector>

#include "common/status.h"
#include "dledger/log/entry_index.h"

namespace triad::dledger {

// In log order, every checksum verified. Errors: kCorruption naming the entry and the file,
// kIoError.
Result<std::vector<EntryRef>> ReadBlock(const EntryIndex::Block& block);

// The one whose bytes cover `inside`, or null.
EntryRef FindAt(const std::vector<EntryRef>& entries, PhysicalOffset inside);

}  // namespace triad::dledger
