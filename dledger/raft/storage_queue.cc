#include "dledger/raft/storage_queue.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

namespace triad::dledger {

Token StorageQueue::SaveHardState(const HardState& state, Output* output) {
  StorageOp& op = output->storage.emplace_back();
  op.token = ++issued_;
  op.hard_state = state;
  hard_state_token_ = op.token;
  return op.token;
}

Token StorageQueue::WriteLog(std::optional<LogIndex> truncate_from, std::vector<EntryRef> append,
                             Output* output) {
  CHECK(truncate_from.has_value() || !append.empty());
  LogWrite write{.token = ++issued_, .end = LogIndex{0}, .bytes = 0};
  if (truncate_from.has_value()) {
    write.end = *truncate_from - 1;
    // Writes still in flight may no longer vouch for what this one removes.
    for (LogWrite& older : writes_) older.end = std::min(older.end, write.end);
    durable_index_ = std::min(durable_index_, write.end);
  }
  for (const EntryRef& entry : append) write.bytes += entry->size();
  if (!append.empty()) write.end = append.back()->index;
  pending_bytes_ += write.bytes;
  writes_.push_back(write);

  StorageOp& op = output->storage.emplace_back();
  op.token = write.token;
  op.truncate_from = truncate_from;
  op.append = std::move(append);
  return op.token;
}

Token StorageQueue::ResetLog(LogBase base, Output* output) {
  for (LogWrite& older : writes_) older.end = LogIndex{0};
  durable_index_ = LogIndex{0};
  StorageOp& op = output->storage.emplace_back();
  op.token = ++issued_;
  writes_.push_back(LogWrite{.token = op.token, .end = base.first_index - 1, .bytes = 0});
  op.reset = std::move(base);
  return op.token;
}

Token StorageQueue::EndRecovery(const HardState& state, Output* output) {
  const Token token = SaveHardState(state, output);
  output->storage.back().recovering = false;
  return token;
}

void StorageQueue::Done(Token token) {
  CHECK_LE(token, issued_);
  done_ = std::max(done_, token);
  while (!writes_.empty() && writes_.front().token <= done_) {
    durable_index_ = std::max(durable_index_, writes_.front().end);
    pending_bytes_ -= writes_.front().bytes;
    writes_.pop_front();
  }
}

}  // namespace triad::dledger
