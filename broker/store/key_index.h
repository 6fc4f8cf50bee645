// KeyIndex: which messages carry a key: the 8-byte hash of (topic, key) -> position, in one
// append-only file per log segment.
//
// Derived from committed entries only; never synced on the hot path; what lies behind the last
// synced run is rebuilt from the log; a file goes with its segment. Records gather in memory and
// are written as a run (key_run.h) when there are kRunRecordsMax of them, when they cover
// kRunLogBytesMax of log, at the end of a segment and at an orderly stop. Only hashes are kept: the
// reader compares the message itself. Written by the apply thread; read by reader threads, without
// a lock but for a snapshot of the list of runs. Bounds: 1 MiB of records, and about 100 bytes per
// run. Files: <dir>/<20-digit base of the segment>. A write that fails ends the process, but for a
// full disk: the records in memory are forgotten, `last` goes back, and they come from the log
// again. So do those of a file that a reader found damaged, and all behind it.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "broker/store/key_run.h"
#include "common/file_system.h"
#include "common/ids.h"
#include "common/status.h"
#include "dledger/raft/entry.h"

namespace triad::broker {

inline constexpr std::size_t kRunRecordsMax = 64u << 10;
inline constexpr std::int64_t kRunLogBytesMax = 128 << 20;

class KeyIndex {
 public:
  // Keeps the runs up to number `synced` (the rest may be torn) and cuts what follows. Errors:
  // kCorruption: a kept run is damaged, or one is missing in the middle, or the first one begins
  // behind `log_begin`; Discard it, open it again, replay everything. `fs` outlives the index.
  static Result<std::unique_ptr<KeyIndex>> Open(FileSystem& fs, const std::string& dir,
                                                std::uint64_t synced, PhysicalOffset log_begin);
  static Status Discard(FileSystem& fs, const std::string& dir);
  virtual ~KeyIndex() = default;

  // ---- apply thread ----
  // The last entry whose keys are here; the caller goes on with the one behind it.
  virtual LogIndex last() const = 0;
  virtual PhysicalOffset end() const = 0;  // of that entry
  virtual bool damaged() const = 0;        // readers found a file so
  // Forgets the files that readers found damaged, and what is behind them: `last` goes back.
  virtual void DropDamaged() = 0;
  // The last write found no room.
  virtual bool waits_for_room() const = 0;
  // The next entry: its keys by Add, in order of position, between the two.
  virtual void BeginEntry(const dledger::Entry& entry) = 0;
  virtual void Add(std::uint64_t hash, PhysicalOffset position) = 0;
  virtual void EndEntry(const dledger::Entry& entry) = 0;
  // Nothing up to `last` is in the log any more: starts anew behind it.
  virtual void SkipTo(LogIndex last, PhysicalOffset end) = 0;
  // Writes what is in memory as a run. For an orderly stop.
  virtual void Seal() = 0;
  // The run up to which everything is durable when `sync` (any one thread) has returned OK.
  struct PendingSync {
    std::uint64_t synced = 0;
    std::function<Status()> sync;
  };
  virtual PendingSync PrepareSync() = 0;
  // Retention: files of segments that end in front of `begin` go; one that cannot be removed goes
  // at the next start.
  virtual Status SetLogBegin(PhysicalOffset begin) = 0;

  // ---- reader threads ----
  struct TimeRange {  // both included
    std::int64_t begin_ms = 0;
    std::int64_t end_ms = INT64_MAX;
  };
  // Calls `visit` for every position recorded under `hash`, newest first, until it returns false.
  // Runs without a message in `times` are passed over. Errors: kUnavailable (damaged; it is
  // rebuilt), kIoError.
  virtual Status Find(std::uint64_t hash, const TimeRange& times,
                      const std::function<bool(PhysicalOffset)>& visit) const = 0;
  struct Newest {
    std::int64_t time_ms = 0;
    PhysicalOffset position;
  };
  virtual Newest newest() const = 0;  // any thread: the last message recorded
  // Reads and checks the `nth` run, from 0. Nothing behind the last: kNotFound. Errors: as Find.
  virtual Status CheckNth(std::size_t nth) const = 0;
};

}  // namespace triad::broker
