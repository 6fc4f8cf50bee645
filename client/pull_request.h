// Pull requests and what brokers answer to them.
//
// Pure. Source: wire.md §5.1-§5.4.

#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "common/status.h"
#include "remoting/command.h"
#include "triad/pull_consumer.h"

namespace triad::client {

struct PullQuestion {
  std::string group;
  MessageQueue queue;
  std::string expression = "*";
  std::int64_t sub_version = 0;
  std::int64_t offset = 0;
  std::int32_t max_messages = 32;
  std::chrono::milliseconds hold{0};  // > 0: the broker may wait so long for a message
  std::int64_t commit_offset = 0;     // > 0: committed on the way
};
remoting::Command EncodePull(const PullQuestion& question);

struct PullAnswer {
  PullResult result;
  std::int64_t suggested_broker_id = 0;
};
// Errors: by the response code (StatusOfCode); kCorruption when the records are bad: pull again,
// and never go on behind them.
Result<PullAnswer> DecodePull(const remoting::Command& answer, const MessageQueue& queue,
                              const std::string& address);

}  // namespace triad::client
