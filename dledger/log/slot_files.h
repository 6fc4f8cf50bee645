// VoteFile and SyncedFile: the two small files beside the segments that survive any crash.
//
// Made of SlotPairs, whole when the store is made. VoteFile: term, vote, the recovering mark, under
// which boot of the machine the log was written without sync, and whose the log is; durable when
// Save returns.
// SyncedFile: one pair for the recorded cut, always synced; one for the synced-through hint, never
// synced by itself, so that a crash may take it whole. Owner: disk thread. Source: testing.md rules
// G, H, I.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "common/file_system.h"
#include "common/ids.h"
#include "common/status.h"
#include "dledger/log/slot_pair.h"
#include "dledger/raft/types.h"

namespace triad::dledger {

struct VoteRecord {
  HardState hard_state;
  bool recovering = false;
  bool lost_unsynced = false;     // recovering for no other reason than a reboot (ASYNC_FLUSH)
  bool written_unsynced = false;  // entries are acknowledged before they are synced
  std::string boot_id;            // of the machine, at the last start
  std::uint64_t group_id = 0;     // of the log, as its start saw it; 0: not known yet

  bool operator==(const VoteRecord&) const = default;
};

// The zeroing of [from, to) that is not finished.
struct RecordedCut {
  PhysicalOffset from;
  PhysicalOffset to;
};

struct SyncedRecord {
  PhysicalOffset synced;  // everything before it was durable when this was written; 0 = unknown
  std::optional<RecordedCut> cut;
};

// Makes an empty slot file, synced; the caller syncs the directory.
Status CreateSlotFile(FileSystem& fs, const std::string& path);

class VoteFile {
 public:
  // record() is empty when both slots are bad or the file is gone.
  static Result<std::unique_ptr<VoteFile>> Open(FileSystem& fs, const std::string& path);

  const std::optional<VoteRecord>& record() const { return record_; }
  Status Save(const VoteRecord& record);  // durable on return

 private:
  explicit VoteFile(std::unique_ptr<File> file) : file_(std::move(file)), slots_(file_.get()) {}

  const std::unique_ptr<File> file_;
  SlotPair slots_;
  std::optional<VoteRecord> record_;
};

class SyncedFile {
 public:
  static Result<std::unique_ptr<SyncedFile>> Open(FileSystem& fs, const std::string& path);

  // Empty when nobody can say whether a cut is unfinished: both of its slots are bad.
  const std::optional<SyncedRecord>& record() const { return record_; }
  Status WriteHint(PhysicalOffset synced);                   // not synced
  Status RecordCut(PhysicalOffset synced, RecordedCut cut);  // durable on return
  Status ClearCut(PhysicalOffset synced);                    // durable on return, in both slots

 private:
  explicit SyncedFile(std::unique_ptr<File> file)
      : file_(std::move(file)), cut_slots_(file_.get()), hint_slots_(file_.get(), kSlotPairBytes) {}
  Status WriteCut(const SyncedRecord& record);  // durable on return

  const std::unique_ptr<File> file_;
  SlotPair cut_slots_;
  SlotPair hint_slots_;
  std::optional<SyncedRecord> record_;
};

}  // namespace triad::dledger
