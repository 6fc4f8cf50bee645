// RawLog: the bytes of the log as they stand in this peer's files, unchecked and past the cache,
// for comparing peers and for mending what rotted.
//
// The bytes of committed entries are the same on every peer; the rest of a segment behind its last
// entry is nobody's and is skipped. Positions and sizes are multiples of 8. Thread: reading on any
// thread that may read files; Replace on the disk thread. Source: architecture.md §1, "Every
// replica's committed log is byte-identical".

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.h"
#include "common/status.h"
#include "dledger/log/entry_cache.h"
#include "dledger/log/entry_index.h"
#include "dledger/raft/entry.h"

namespace triad::dledger {

inline constexpr std::size_t kRawRecordsMax = 100000;  // of one call of Records

// One entry as it stands on the disk, or bytes where one should stand.
struct RawRecord {
  PhysicalOffset position;
  std::uint64_t bytes = 0;
  LogIndex index;  // 0 = its header cannot be read
  Term term;       // likewise
  std::uint64_t hash = 0;
  std::string damage;  // empty = its CRCs are right and it stands where it should
};

class RawLog {
 public:
  // Both outlive it.
  RawLog(const EntryIndex& index, EntryCache& cache) : index_(index), cache_(cache) {}

  // A hash of the entries' bytes in [from, to). Errors: kInvalidArgument, kNotFound (outside the
  // log), kIoError.
  Result<std::uint64_t> Digest(PhysicalOffset from, PhysicalOffset to) const;
  // What stands in [from, to): records that overlap it, whole. Where a header cannot be read, one
  // record without an index reaches to the next place where an entry is known to begin. Errors: as
  // Digest; kBusy when there are more than kRawRecordsMax.
  Result<std::vector<RawRecord>> Records(PhysicalOffset from, PhysicalOffset to) const;
  // The bytes [from, from + bytes) of one segment. Errors: as Digest.
  Result<std::string> Bytes(PhysicalOffset from, std::size_t bytes) const;
  // Behind the entry `index`, or (its surroundings cannot be read) less.
  Result<PhysicalOffset> EndOf(LogIndex index) const;

  // Where the entry before a segment ends, as the segment's first header and the outline have it.
  // Errors: kNotFound.
  Result<LogTail> TailBefore(const SegmentFacts& segment) const;

  // One whole and checked entry, and nothing behind it. Errors: kCorruption.
  static Result<EntryRef> Parse(std::string_view bytes);
  // Disk thread: writes `entry` over what stands at its position, synced and read back. All
  // that this peer still knows must fit it: its term, its header, the neighbours' chain. Only for
  // committed entries; the caller sees to that. Errors: kInvalidArgument (it does not belong
  // there), kIoError.
  Status Replace(const EntryRef& entry);

 private:
  using Take = std::function<void(PhysicalOffset at, std::string_view bytes)>;
  Status ForEachPiece(PhysicalOffset from, PhysicalOffset to, const Take& take) const;
  // Nothing when headers cannot be read up to there.
  std::optional<EntryHeader> HeaderOf(LogIndex index) const;
  Status CheckKnown(const Entry& entry, std::uint32_t previous_crc) const;
  Status CheckNeighbours(const EntryIndex::Block& block, const Entry& entry) const;

  const EntryIndex& index_;
  EntryCache& cache_;
};

}  // namespace triad::dledger
