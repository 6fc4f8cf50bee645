// A made-up log for the tests of the key index: entry n stands at n - 1 times kEntryBytes, forty to
// a segment, with log time n.

#pragma once

#include <cstdint>

#include "dledger/raft/entry.h"

namespace triad::broker {

inline constexpr std::int64_t kEntryBytes = 1000;
inline constexpr std::int64_t kSegmentEntries = 40;

inline dledger::Entry EntryAt(std::uint64_t index) {
  dledger::Entry entry;
  entry.index = LogIndex{index};
  const std::int64_t ordinal = static_cast<std::int64_t>(index) - 1;
  entry.position = PhysicalOffset{ordinal * kEntryBytes};
  entry.segment_base = PhysicalOffset{ordinal / kSegmentEntries * kSegmentEntries * kEntryBytes};
  entry.store_time_ms = static_cast<std::int64_t>(index);
  entry.bytes.assign(kEntryBytes, 'x');
  return entry;
}

}  // namespace triad::broker
