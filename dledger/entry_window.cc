#include "dledger/entry_window.h"

#include <glog/logging.h>

#include <utility>

namespace triad::dledger {

void EntryWindow::Append(EntryRef entry) {
  CHECK(entry != nullptr);
  if (!entries_.empty() && entries_.back()->index + 1 != entry->index) {
    entries_.clear();
    committed_ = 0;
    uncommitted_bytes_ = 0;
  }
  uncommitted_bytes_ += entry->size();
  entries_.push_back(std::move(entry));
}

void EntryWindow::TruncateFrom(LogIndex from) {
  while (!entries_.empty() && entries_.back()->index >= from) {
    if (entries_.size() == committed_) {
      committed_ = 0;  // only a recovering peer drops what counted as committed
    } else {
      uncommitted_bytes_ -= entries_.back()->size();
    }
    entries_.pop_back();
  }
}

std::vector<EntryRef> EntryWindow::Commit(LogIndex upto) {
  std::vector<EntryRef> taken;
  while (uncommitted() > 0 && entries_[committed_]->index <= upto) {
    if (committed_ == 1) {
      entries_.pop_front();
    } else {
      committed_ = 1;
    }
    uncommitted_bytes_ -= entries_.front()->size();
    taken.push_back(entries_.front());
  }
  return taken;
}

}  // namespace triad::dledger
