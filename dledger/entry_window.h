// EntryWindow: the end of the log in memory: what is not committed yet, and the last committed one.
//
// Pure. Owner: the log thread. Fed with every append and cut in log order. Size: what is not
// committed, which the leader bounds (log_driver.h), plus one entry.

#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "common/ids.h"
#include "dledger/raft/entry.h"

namespace triad::dledger {

class EntryWindow {
 public:
  // The next entry of the log. One that does not follow the last starts the window anew.
  void Append(EntryRef entry);
  void TruncateFrom(LogIndex from);
  // Takes out what is committed now, ascending. Entries from before the start are not among it.
  std::vector<EntryRef> Commit(LogIndex upto);

  EntryRef last() const { return entries_.empty() ? nullptr : entries_.back(); }
  std::size_t uncommitted() const { return entries_.size() - committed_; }
  std::size_t uncommitted_bytes() const { return uncommitted_bytes_; }

 private:
  std::deque<EntryRef> entries_;
  std::size_t committed_ = 0;  // of the front: 0 or 1
  std::size_t uncommitted_bytes_ = 0;
};

}  // namespace triad::dledger
