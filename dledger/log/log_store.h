// LogStore: the replicated log on disk: prepare, append, sync, read, cut, recover; and the vote
// slots.
//
// Layout under `dir`: segments named by their 20-digit base position (a head of 8 KiB that is this
// peer's own, then the entries), `begin` (what the first of them follows, once old ones were
// dropped), `vote` and `synced` slot files, `checkpoint`, `stamp`, `lock`.
// Writer side (Append, Cut, Sync, hard state): one disk thread, in order. Reader side (Read*): any
// thread, beside it. The hot tail and whatever readers loaded live in a bounded
// cache of whole entries, CRC-checked once on load. Errors: a failed write or sync is returned and
// fatal to the caller (LOG(FATAL) there); kNoSpace comes only from Prepare. Source: architecture.md
// §3; rules F..K of docs/dledger.md.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/file_system.h"
#include "common/ids.h"
#include "common/status.h"
#include "dledger/log/entry_codec.h"
#include "dledger/log/entry_index.h"
#include "dledger/log/raw_log.h"
#include "dledger/log/store_base.h"
#include "dledger/raft/core.h"
#include "dledger/raft/entry.h"

namespace triad::dledger {

struct LogStoreOptions {
  std::string dir;
  std::uint64_t segment_bytes = 1u << 30;         // for entries this peer makes as leader
  std::uint64_t prepare_bytes = 64u << 20;        // really written (zeros) ahead of the tail
  std::uint64_t first_prepare_bytes = 16u << 20;  // enough to start serving
  std::size_t cache_bytes = 64u << 20;            // entries kept for readers
  // false: ASYNC_FLUSH: the owner counts an entry when Append returned and calls Sync at least
  // every 10 ms. Sync, vote slots and cuts reach the disk all the same; a start after a reboot of
  // the machine begins recovering.
  bool sync = true;
  // A snapshot that a crash stopped half-way: the log begins there, unless it does already.
  std::optional<StoreBase> restart_at;
};

// What the store belongs to. Written once into an empty store, checked at every open.
struct StoreStamp {
  std::string group;    // dLegerGroup
  std::string peer_id;  // dLegerSelfId
  std::uint32_t format = 1;
};

class LogStore {
 public:
  // Opens or creates, finishes a recorded cut, scans from the last checkpoint, cuts a torn tail.
  // Corruption below the synced hint: opens with recovered().recovering = true and the file
  // untouched. Errors: kPermissionDenied (locked by another process: its pid in the message),
  // kInvalidArgument (foreign store: whose), kCorruption, kIoError.
  static Result<std::unique_ptr<LogStore>> Open(FileSystem& fs, LogStoreOptions options,
                                                const StoreStamp& stamp);
  virtual ~LogStore() = default;

  // What Open found; `applied` and `memberships` are filled in from the log (memberships) and by
  // the caller (applied).
  virtual const Recovered& recovered() const = 0;
  // recovered().recovering only because the machine was restarted under ASYNC_FLUSH: the log is
  // whole, but acknowledged entries behind its end may be missing. Kept until the mark is cleared.
  virtual bool lost_unsynced() const = 0;
  virtual LogTail tail() const = 0;  // as recovered; the live tail is the owner's

  // ---- disk thread ----
  virtual Status SaveHardState(const HardState& state) = 0;  // durable on return
  virtual Status SaveRecovering(bool recovering) = 0;        // durable on return
  virtual Status Cut(LogIndex from) = 0;                     // recorded, zeroed, synced on return
  virtual Status Append(std::span<const EntryRef> entries) = 0;  // written; not yet durable
  virtual Status Sync() = 0;  // durable on return (all appended before)
  // A snapshot was installed: forgets the whole log; it is empty and begins at `base`. On the apply
  // thread, while the disk thread waits.
  virtual Status Restart(const StoreBase& base) = 0;

  // ---- background thread (Open prepares the first first_prepare_bytes itself) ----
  // Prepares up to prepare_bytes ahead of the tail. kNoSpace is not fatal: writes are to be
  // refused.
  virtual Status Prepare() = 0;
  virtual std::uint64_t prepared_bytes() const = 0;  // ahead of the tail, any thread
  virtual Status WriteCheckpoint() = 0;              // bounds the next recovery's scan
  // Retention: forgets the whole segments that hold nothing at or behind `keep_from`, durably, and
  // gives their space back. Entries before `keep_from` are committed, and nobody needs them. The
  // segment with the log's end always stays. Returns how many went.
  virtual Result<std::size_t> DropBefore(LogIndex keep_from) = 0;
  virtual Result<Space> GetSpace() const = 0;  // of the disk it stands on

  // ---- any thread, memory only ----
  virtual EntryRef CachedAt(
      PhysicalOffset inside) const = 0;  // the entry whose bytes cover it; null = not cached
  virtual EntryRef CachedIndex(LogIndex index) const = 0;
  virtual PhysicalOffset begin_position() const = 0;       // of the first entry kept
  virtual StoreBase base() const = 0;                      // what the first entry kept follows
  virtual std::vector<SegmentFacts> segments() const = 0;  // that hold entries, ascending
  // What entry `first` of a segment follows, as a base that a log may begin at. Reads files.
  // Errors: as ReadRange.
  virtual Result<StoreBase> BaseAt(const SegmentFacts& segment) = 0;
  virtual PhysicalOffset end_position() const = 0;  // behind the last entry appended

  // ---- reader threads: may read files; results are checked and enter the cache ----
  // Errors: kNotFound (not in the log), kCorruption (named by position), kIoError.
  virtual Result<EntryRef> ReadAt(PhysicalOffset inside) = 0;
  // Entries [from, to), in order, at least one, no more than max_bytes after the first.
  virtual Result<std::vector<EntryRef>> ReadRange(LogIndex from, LogIndex to,
                                                  std::size_t max_bytes) = 0;

  // The bytes as they stand in the files: reader threads; Replace on the disk thread.
  virtual RawLog& raw() = 0;

  // Flushes; nothing may be written after it. The lock goes with the object.
  virtual Status Close() = 0;
};

}  // namespace triad::dledger
