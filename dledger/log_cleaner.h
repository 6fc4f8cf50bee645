// LogCleaner: drops the log's oldest segments when retention says so (retention.h). Nothing is ever
// dropped behind what the application holds durably.
//
// No thread of its own; owner: the background thread, or a simulator.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "common/clock.h"
#include "dledger/log/log_store.h"
#include "dledger/node.h"
#include "dledger/retention.h"

namespace triad::dledger {

// The first entry that a peer at the other end of a connection lacks, as a leader knows it. One
// that needs a state too will get the log with it, all that is kept. Nothing: nobody catches up.
std::optional<LogIndex> WantedByPeers(const NodeStatus& status);

class LogCleaner {
 public:
  // What retention needs to know of the rest of the node.
  struct Facts {
    LogIndex durable;  // entries in front of it and itself may go; 0: none
    std::int64_t log_time_ms = 0;
    std::optional<LogIndex> wanted;  // from here on a peer that catches up still needs them
  };
  // `log` and `clock` outlive it. `on_dropped`: the log begins at another entry.
  LogCleaner(LogStore& log, const Clock& clock, RetentionOptions retention,
             std::function<void(LogIndex first)> on_dropped);

  const RetentionOptions& options() const { return retention_.options(); }
  void set_options(RetentionOptions options) { retention_.set_options(std::move(options)); }
  // One look; `is_asked`: it takes the hour for one of retention's. An error: the disk failed in
  // the middle of a drop, and the process must end.
  Status Clean(const Facts& facts, bool is_asked = false);

 private:
  // Drops the oldest segment if it may go. True: it went.
  Result<bool> CleanOne(const Facts& facts);

  LogStore& log_;
  const Clock& clock_;
  Retention retention_;
  const std::function<void(LogIndex first)> on_dropped_;
};

}  // namespace triad::dledger
