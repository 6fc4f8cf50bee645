// StoreBase: where the log on this disk begins, and what stood there: the `begin` file.
//
// Absent: the log begins at index 1. Written whole (a reserved file, rename, directory synced)
// BEFORE anything in front of it is removed, so that a start after a crash finishes the removal.
// `fresh`: a snapshot was installed; no segment that is there belongs to this log, a start removes
// them all. Source: architecture.md §3, "Retention and snapshots".

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/file_system.h"
#include "common/status.h"
#include "dledger/log/entry_codec.h"
#include "dledger/raft/types.h"

namespace triad::dledger {

struct StoreBase {
  // Where the first entry kept goes: its index, its segment's base, the chain and term before it.
  LogTail tail;
  Membership membership;  // in force before it; no voters: none was ever recorded

  bool dropped() const { return tail.next_index > LogIndex(1); }
  bool operator==(const StoreBase& other) const;
};

struct BeginRecord {
  StoreBase base;
  bool fresh = false;
};

std::string EncodeBegin(const BeginRecord& record);
// Nothing when the bytes are damaged.
std::optional<BeginRecord> DecodeBegin(std::string_view bytes);

// kNotFound: nothing was ever dropped. kCorruption: it is there and damaged.
Result<BeginRecord> ReadBegin(FileSystem& fs, const std::string& dir);
Status WriteBegin(FileSystem& fs, const std::string& dir, const BeginRecord& record);
// Room for the next WriteBegin, which then succeeds on a full disk, to make some. Says so when
// there is none.
void ReserveBegin(FileSystem& fs, const std::string& dir);

}  // namespace triad::dledger
