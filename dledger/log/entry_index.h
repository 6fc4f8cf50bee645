// EntryIndex: where each entry stands: a sparse table in memory, one point per ~64 KiB of a
// segment.
//
// A *block* is what lies between two points of one segment: whole entries, at least one. Readers
// load blocks. Also keeps what Raft wants to know of the log: term runs, memberships, its tail.
// Thread: any; one leaf mutex. Size: 24 bytes per 64 KiB of log. Source: architecture.md §3.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/ids.h"
#include "dledger/log/entry_codec.h"
#include "dledger/log/segment_file.h"
#include "dledger/log/store_base.h"
#include "dledger/raft/core.h"
#include "dledger/raft/types.h"

namespace triad::dledger {

inline constexpr std::int64_t kBlockBytes = 64 << 10;

struct IndexPoint {
  LogIndex index;
  PhysicalOffset position;
  PhysicalOffset segment_base;
};

// The entries of one segment.
struct SegmentSpan {
  PhysicalOffset end;           // behind the last one
  std::uint32_t first_crc = 0;  // of the first one's header
};

// What a checkpoint holds and a scan adds to.
struct LogOutline {
  StoreBase base;  // where the log begins; its tail when it is empty
  LogTail tail;
  PhysicalOffset last_position;                 // of the entry before the tail
  std::vector<IndexPoint> points;               // the first entry of each segment is one
  std::map<PhysicalOffset, SegmentSpan> spans;  // by the segment's base
  std::vector<TermRun> term_runs;
  std::vector<std::pair<LogIndex, Membership>> memberships;

  // The next entry; `membership` when it is one.
  void Add(const EntryHeader& header);
  // Forgets what lies at or behind `tail`.
  void CutTo(const LogTail& new_tail, PhysicalOffset new_last_position);
  // Forgets what lies before the base, which becomes this outline's.
  void DropBefore(const StoreBase& new_base);
  // The membership in force before `index`; no voters when there was none.
  Membership MembershipBefore(LogIndex index) const;
};

// A segment that holds entries.
struct SegmentFacts {
  PhysicalOffset base;
  PhysicalOffset end;  // behind its last entry
  LogIndex first;
};

class EntryIndex {
 public:
  struct Block {
    std::shared_ptr<SegmentFile> file;
    PhysicalOffset begin;
    PhysicalOffset end;
    LogIndex first;
  };

  void Reset(LogOutline outline, const SegmentMap& segments);
  // Entries just written into `segment`.
  void Append(std::span<const EntryRef> entries, const std::shared_ptr<SegmentFile>& segment);
  void CutTo(const LogTail& tail, PhysicalOffset last_position);
  void DropBefore(const StoreBase& base);
  void MarkSynced();  // everything appended is durable

  // The block that covers a position or an index; nothing outside the log.
  std::optional<Block> BlockAt(PhysicalOffset inside) const;
  std::optional<Block> BlockOf(LogIndex index) const;
  // The entries' bytes of one segment from `from` on, or of the next one with any; `first` is not
  // set.
  std::optional<Block> StretchFrom(PhysicalOffset from) const;
  LogTail tail() const;
  PhysicalOffset last_position() const;
  StoreBase base() const;
  Membership MembershipBefore(LogIndex index) const;
  std::optional<Term> TermAt(LogIndex index) const;  // nothing outside the log
  std::vector<SegmentFacts> Segments() const;        // ascending
  // What became durable since `mark`, for a checkpoint; the whole when entries left since. Moves
  // the mark. Nothing when there is no news.
  struct CheckpointMark {
    std::uint64_t era = 0;  // 0: nothing was taken yet
    LogTail tail;
  };
  struct Synced {
    bool whole = false;
    LogOutline outline;
  };
  std::optional<Synced> SyncedSince(CheckpointMark* mark, bool whole) const;

 private:
  Block BlockLocked(std::size_t point) const;

  mutable std::mutex mutex_;
  LogOutline outline_;
  LogTail synced_tail_;
  PhysicalOffset synced_last_position_;
  std::uint64_t era_ = 1;  // grows when entries leave at either end
  std::map<PhysicalOffset, std::shared_ptr<SegmentFile>> files_;  // of segments with entries
};

}  // namespace triad::dledger
