// StorageQueue: the writes that the core has asked for and which of them are durable.
//
// Operations complete in token order. An entry that was truncated and written anew is durable only
// when the NEW write is: a cut lowers what older writes still in flight may claim.
// Pure. Owner: the core. Bounds: operations in flight are as many as the shell has not yet
// completed; pending_bytes() lets the core refuse more.

#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "dledger/raft/types.h"

namespace triad::dledger {

class StorageQueue {
 public:
  explicit StorageQueue(LogIndex durable_index) : durable_index_(durable_index) {}

  Token SaveHardState(const HardState& state, Output* output);
  Token WriteLog(std::optional<LogIndex> truncate_from, std::vector<EntryRef> append,
                 Output* output);
  // Empties the log: it begins anew at `base` (a snapshot). Nothing of the old log counts any more.
  Token ResetLog(LogBase base, Output* output);
  // Term, vote and the end of recovery in one operation (rule H).
  Token EndRecovery(const HardState& state, Output* output);

  // Everything up to `token` is on disk. Never beyond what was asked for.
  void Done(Token token);

  LogIndex durable_index() const { return durable_index_; }
  bool IsDone(Token token) const { return token <= done_; }
  Token hard_state_token() const { return hard_state_token_; }
  bool hard_state_durable() const { return IsDone(hard_state_token_); }
  std::size_t pending_bytes() const { return pending_bytes_; }

 private:
  struct LogWrite {
    Token token;
    LogIndex end;  // last index on disk once this is done
    std::size_t bytes;
  };

  Token issued_ = 0;
  Token done_ = 0;
  Token hard_state_token_ = 0;
  LogIndex durable_index_;
  std::deque<LogWrite> writes_;
  std::size_t pending_bytes_ = 0;
};

}  // namespace triad::dledger
