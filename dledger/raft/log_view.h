// LogView: what the core remembers of its log: where terms begin, and the most recent entries.
//
// Pure. Owner: the core. Bounds: `max_window_bytes` of entries (the oldest are dropped; they are on
// disk), one TermRun per term in the log. The entry before the first has a known term (the base; 0
// for index 0).

#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "dledger/raft/core.h"

namespace triad::dledger {

class LogView {
 public:
  // The log on disk: [first, last], last < first when empty. `runs` covers it; `base_term` is of
  // first - 1.
  LogView(LogIndex first, Term base_term, LogIndex last, std::vector<TermRun> runs,
          std::size_t max_window_bytes);

  LogIndex first() const { return first_; }
  LogIndex last() const { return last_; }
  Term last_term() const { return runs_.empty() ? base_term_ : runs_.back().term; }

  // 0 outside [first - 1, last].
  Term TermAt(LogIndex index) const;
  // The term to send as prev_term is known.
  bool KnowsTermAt(LogIndex index) const { return index + 1 >= first_ && index <= last_; }
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
  // The log begins at `first`, at most last + 1. Earlier entries are forgotten.
  void PurgeBefore(LogIndex first);
  // Empty, and begins at `first`.
  void Reset(LogIndex first, Term base_term);

 private:
  LogIndex first_;
  Term base_term_;
  LogIndex last_;
  std::vector<TermRun> runs_;  // ascending in both members
  const std::size_t max_window_bytes_;
  std::size_t window_bytes_ = 0;
  std::deque<EntryRef> window_;  // [last_ + 1 - size, last_]
};

}  // namespace triad::dledger
