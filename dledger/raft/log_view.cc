#include "dledger/raft/log_view.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

namespace triad::dledger {
namespace {

// The last run that starts at or before `index`.
std::vector<TermRun>::const_iterator RunOf(const std::vector<TermRun>& runs, LogIndex index) {
  auto after = std::upper_bound(runs.begin(), runs.end(), index,
                                [](LogIndex i, const TermRun& run) { return i < run.first; });
  CHECK(after != runs.begin());
  return after - 1;
}

}  // namespace

LogView::LogView(LogIndex first, Term base_term, LogIndex last, std::vector<TermRun> runs,
                 std::size_t max_window_bytes)
    : first_(first),
      base_term_(base_term),
      last_(last),
      runs_(std::move(runs)),
      max_window_bytes_(max_window_bytes) {
  CHECK(first_ > LogIndex{0});
  CHECK((first_ == LogIndex{1}) == (base_term_ == Term{0}));
  if (last_ < first_) {
    CHECK(runs_.empty());
    last_ = first_ - 1;
    return;
  }
  CHECK(!runs_.empty());
  CHECK(runs_.front().first <= first_);
  CHECK(runs_.front().term >= base_term_);
  CHECK(runs_.back().first <= last_);
  for (std::size_t i = 1; i < runs_.size(); ++i) {
    CHECK(runs_[i - 1].first < runs_[i].first);
    CHECK(runs_[i - 1].term < runs_[i].term);
  }
}

Term LogView::TermAt(LogIndex index) const {
  if (index < first_ || index > last_) return index + 1 == first_ ? base_term_ : Term{0};
  if (index >= runs_.back().first) return runs_.back().term;  // nearly every question
  return RunOf(runs_, index)->term;
}

LogIndex LogView::RunStart(LogIndex index) const {
  CHECK(index >= first_);
  CHECK(index <= last_);
  return std::max(first_, RunOf(runs_, index)->first);
}

LogIndex LogView::LastWithTermAtMost(LogIndex limit, Term term) const {
  LogIndex index = std::min(limit, last_);
  while (index >= first_ && TermAt(index) > term) index = RunStart(index) - 1;
  return std::max(index, first_ - 1);
}

EntryRef LogView::Find(LogIndex index) const {
  const LogIndex begin = window_first();
  if (index < begin || index > last_) return nullptr;
  return window_[static_cast<std::size_t>(index - begin)];
}

void LogView::Append(EntryRef entry) {
  CHECK(entry->index == last_ + 1);
  CHECK(entry->term >= last_term());
  if (runs_.empty() || runs_.back().term < entry->term) {
    runs_.push_back(TermRun{entry->index, entry->term});
  }
  ++last_;
  window_bytes_ += entry->size();
  window_.push_back(std::move(entry));
  while (window_bytes_ > max_window_bytes_ && window_.size() > 1) {
    window_bytes_ -= window_.front()->size();
    window_.pop_front();
  }
}

void LogView::TruncateFrom(LogIndex from) {
  CHECK(from >= first_);
  CHECK(from <= last_);
  while (last_ >= from) {
    if (!window_.empty()) {
      window_bytes_ -= window_.back()->size();
      window_.pop_back();
    }
    last_ = window_.empty() ? from - 1 : last_ - 1;
  }
  while (!runs_.empty() && runs_.back().first > last_) runs_.pop_back();
  if (last_ < first_) runs_.clear();
}

void LogView::PurgeBefore(LogIndex first) {
  CHECK(first <= last_ + 1);
  if (first <= first_) return;
  base_term_ = TermAt(first - 1);
  first_ = first;
  while (runs_.size() > 1 && runs_[1].first <= first_) runs_.erase(runs_.begin());
  if (last_ < first_) runs_.clear();
  while (!window_.empty() && window_first() < first_) {
    window_bytes_ -= window_.front()->size();
    window_.pop_front();
  }
}

void LogView::Reset(LogIndex first, Term base_term) {
  CHECK(first > LogIndex{1});
  CHECK(base_term > Term{0});
  first_ = first;
  base_term_ = base_term;
  last_ = first - 1;
  runs_.clear();
  window_.clear();
  window_bytes_ = 0;
}

}  // namespace triad::dledger
