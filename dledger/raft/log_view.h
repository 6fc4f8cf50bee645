// LogView: what the core remembers of its log: where terms begin, and the most recent entries.
//
// Pure. Owner: the core. Bounds: `max_window_bytes` of entries (the oldest are dropped; they are on
// disk), one TermRun per term in the log. The log is never empty of meaning: index 0 has term 0.

#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "dledger/raft/core.h"

namespace triad::dledger {

class LogView {
 public:
  // The log on disk: [first, last], last < first when empty. `runs` covers it.
  LogView(LogIndex first, LogIndex last, std::vector<TermRun> runs, std::size_t max_window_bytes);

  LogIndex first() const { return first_; }
  LogIndex last() const { return last_; }
  Term last_term() const { return runs_.empty() ? Term{0} : runs_.back().term; }

  // 0 outside [first, last].
  Term TermAt(LogIndex index) const;
  // The term to send as prev_term is known: `index` is 0 or inside the log.
  bool KnowsTermAt(LogIndex index) const {
    return index == LogIndex{0} || (index >= first_ && index <= last_);
  }
  // First index of the run of equal terms that holds `index` (inside the log).
  LogIndex RunStart(LogIndex index) const;
  // Greatest index <= limit whose term is at most `term`; first - 1 when there is none.
  LogIndex LastWithTermAtMost(LogIndex limit, Term term) const;

  // Null when the window no longer holds it.
  EntryRef Find(LogIndex index) const;
  LogIndex window_first() const { return last_ + 1 - window_.size(); }

  // entry.index must be last + 1 and its term at least last_term.
  void Append(EntryRef entry);
  // Drops entries >= from; `from` must be inside the log.
  void TruncateFrom(LogIndex from);

 private:
  LogIndex first_;
  LogIndex last_;
  std::vector<TermRun> runs_;  // ascending in both members
  const std::size_t max_window_bytes_;
  std::size_t window_bytes_ = 0;
  std::deque<EntryRef> window_;  // [last_ + 1 - size, last_]
};

}  // namespace triad::dledger
