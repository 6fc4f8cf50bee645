// Log scan: what recovery reads of the segments, and how it judges their end.
//
// Reads only. Walks entries from a known tail while magic, CRCs, position, index, term and chain
// hold, then looks at everything behind the last good entry: all zeros (a clean end), a torn tail
// (cut it) or corruption (touch nothing). Source: testing.md rule G.

#pragma once

#include <optional>

#include "common/status.h"
#include "dledger/log/entry_index.h"
#include "dledger/log/segment_file.h"

namespace triad::dledger {

// Adds every good entry behind `outline`'s tail to it. Returns why it stopped there: OK = zeros or
// the end of the file; kCorruption = a bad entry; kIoError = bytes that cannot be read.
Status ScanEntries(const SegmentMap& segments, LogOutline* outline);

// What stands behind the last good entry.
struct Remains {
  PhysicalOffset
      end;  // behind the last byte that is not zero; the tail's position if there is none
  bool later_window = false;  // a whole valid entry at or behind `window_end`
  bool unreadable = false;
};
Remains LookBehind(const SegmentMap& segments, const LogTail& tail, PhysicalOffset window_end);

enum class TailState { kClean, kTorn, kCorrupt };
// `hint`: everything before it is known to be durable. `window`: the last sync window on disk.
TailState JudgeTail(const LogTail& tail, const Remains& remains, PhysicalOffset hint,
                    const std::optional<SyncWindow>& window);

// The last window any segment knows of.
std::optional<SyncWindow> LastWindow(const SegmentMap& segments);

}  // namespace triad::dledger
