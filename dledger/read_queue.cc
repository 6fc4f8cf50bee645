#include "dledger/read_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace triad::dledger {

void ReadQueue::Add(PendingRead read) {
  if (size_ >= kReadsMax) {
    read.done(Status::Busy("too many reads wait for the leader's confirmation"));
    return;
  }
  ++size_;
  fresh_.push_back(std::move(read));
}

std::uint64_t ReadQueue::StartRound() {
  rounds_[++last_context_] = std::exchange(fresh_, {});
  return last_context_;
}

void ReadQueue::OnReady(std::uint64_t context, LogIndex index) {
  const auto found = rounds_.find(context);
  if (found == rounds_.end()) return;
  Reads& waiting = confirmed_[index];
  std::move(found->second.begin(), found->second.end(), std::back_inserter(waiting));
  rounds_.erase(found);
}

void ReadQueue::OnFailed(std::uint64_t context, const Status& why) {
  const auto found = rounds_.find(context);
  if (found == rounds_.end()) return;
  Reads reads = std::move(found->second);
  rounds_.erase(found);
  Answer(std::move(reads), why);
}

void ReadQueue::OnApplied(LogIndex applied) {
  while (!confirmed_.empty() && confirmed_.begin()->first <= applied) {
    Reads reads = std::move(confirmed_.begin()->second);
    confirmed_.erase(confirmed_.begin());
    Answer(std::move(reads), Status::Ok());
  }
}

void ReadQueue::Expire(TimePoint now) {
  if (size_ == 0) return;
  Reads expired;
  ExpireIn(&fresh_, now, &expired);
  for (auto& [context, reads] : rounds_) ExpireIn(&reads, now, &expired);
  for (auto& [index, reads] : confirmed_) ExpireIn(&reads, now, &expired);
  // A round without callers must not hold a place.
  std::erase_if(rounds_, [](const auto& round) { return round.second.empty(); });
  std::erase_if(confirmed_, [](const auto& waiting) { return waiting.second.empty(); });
  Answer(std::move(expired), Status::TimedOut("the leader's confirmation did not come in time"));
}

void ReadQueue::FailFresh(const Status& why) {
  Answer(std::exchange(fresh_, {}), why);
}

void ReadQueue::FailAll(const Status& why) {
  FailFresh(why);
  while (!rounds_.empty()) OnFailed(rounds_.begin()->first, why);
  while (!confirmed_.empty()) {
    Reads reads = std::move(confirmed_.begin()->second);
    confirmed_.erase(confirmed_.begin());
    Answer(std::move(reads), why);
  }
}

void ReadQueue::Answer(Reads reads, const Status& status) {
  size_ -= reads.size();
  for (PendingRead& read : reads) read.done(status);
}

void ReadQueue::ExpireIn(Reads* reads, TimePoint now, Reads* expired) {
  const auto late = std::stable_partition(
      reads->begin(), reads->end(), [now](const PendingRead& read) { return read.deadline > now; });
  std::move(late, reads->end(), std::back_inserter(*expired));
  reads->erase(late, reads->end());
}

}  // namespace triad::dledger
