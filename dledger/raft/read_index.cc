#include "dledger/raft/read_index.h"

#include <glog/logging.h>

#include <utility>

namespace triad::dledger {

void ReadIndex::Reset() {
  CHECK(waiting_.empty());
  CHECK(running_.empty());
  round_ = 1;
  running_round_ = 0;
}

bool ReadIndex::Add(std::uint64_t context) {
  if (waiting_.size() >= kWaitingMax) return false;
  waiting_.push_back(context);
  return true;
}

bool ReadIndex::Start(LogIndex commit_index) {
  if (!running_.empty() || waiting_.empty()) return false;
  std::swap(running_, waiting_);
  running_round_ = NewRound();
  running_index_ = commit_index;
  return true;
}

void ReadIndex::Confirm(std::uint64_t round, Output* output) {
  if (running_.empty() || round < running_round_) return;
  for (std::uint64_t context : running_) {
    output->reads.push_back(ReadReady{.context = context, .index = running_index_});
  }
  running_.clear();
}

void ReadIndex::FailAll(Output* output) {
  output->reads_failed.insert(output->reads_failed.end(), running_.begin(), running_.end());
  output->reads_failed.insert(output->reads_failed.end(), waiting_.begin(), waiting_.end());
  running_.clear();
  waiting_.clear();
}

}  // namespace triad::dledger
