// PullLoop: reads queues as fast as they come, one pull per (group, queue) in flight.
//
// Every stored message that arrives is walked over, as a client would. One thread. Bounds: one
// unanswered pull per reader; an answer is at most one frame. Source: wire.md §5.
//
// Two ways: to the end that each queue had when it was first pulled (a backlog), or following what
// is written meanwhile.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bin/bench/frame_template.h"
#include "bin/bench/lanes.h"
#include "bin/bench/stream.h"
#include "common/histogram.h"

namespace triad::bench {

// One message of a pull answer.
struct StoredMessage {
  std::string_view body;
  std::uint32_t body_crc = 0;
  std::int64_t queue_offset = 0;
};
// Calls visit(StoredMessage) for each; how many there were. kCorruption: lengths that do not fit.
Result<std::uint64_t> WalkMessages(std::string_view body,
                                   const std::function<void(const StoredMessage&)>& visit);

struct PullOptions {
  int groups = 1;
  std::size_t connections = 1;
  int max_messages = 1024;           // of one answer
  bool follows = false;              // else each reader stops at the end that its first answer told
  double seconds = 10;               // at most
  double warmup_s = 0;               // only when following
  std::string peer;                  // read from this address instead of the leaders
  std::vector<std::int64_t> begins;  // per lane; empty = from 0
  remoting::SerializeType serialize = remoting::SerializeType::kJson;
  bool shows_progress = false;
  std::function<void()> on_begin;
  std::function<void()> on_end;
  // May be null: then messages are only counted.
  std::function<void(std::size_t lane, const StoredMessage&)> on_message;
};

struct PullOutcome {
  Histogram latency;           // us from a pull to its answer with messages
  std::uint64_t messages = 0;  // while measuring
  std::uint64_t bytes = 0;     // of their records
  std::uint64_t pulls = 0;     // answers
  std::uint64_t errors = 0;
  std::string first_error;
  double seconds = 0;      // until the last message, when it reads a backlog
  bool is_at_end = false;  // every reader came to its end
};

// kUnavailable: cannot connect.
Result<PullOutcome> RunPullLoop(Lanes* lanes, const PullOptions& options);

}  // namespace triad::bench
