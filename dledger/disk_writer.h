// DiskWriter: carries out storage operations on a log store, in order.
//
// No thread of its own; owner: whoever owns the store's writer side (the disk thread, or a
// simulator). After an error nothing more may be called: what is on the disk is unknown (rule F).

#pragma once

#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "common/status.h"
#include "dledger/log/log_store.h"
#include "dledger/raft/types.h"

namespace triad::dledger {

class DiskWriter {
 public:
  // `log` outlives it. `on_reset` installs the snapshot that waits.
  DiskWriter(LogStore& log, std::function<Status()> on_reset)
      : log_(log), on_reset_(std::move(on_reset)) {}

  // Votes, cuts, marks and resets are durable on return; appends are written.
  Status Write(std::span<const StorageOp> ops);
  // What was written is durable on return; OK at once when nothing is open.
  Status Sync();
  bool is_dirty() const { return is_dirty_; }  // appended and not synced

 private:
  Status WriteOne(const StorageOp& op);
  Status WriteCollected();

  LogStore& log_;
  const std::function<Status()> on_reset_;
  std::vector<EntryRef> collected_;  // appends of neighbouring operations, one gather-write
  bool is_dirty_ = false;
};

}  // namespace triad::dledger
