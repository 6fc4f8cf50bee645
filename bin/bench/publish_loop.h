// PublishLoop: drives one load of requests and answers, closed or open loop, and times each.
//
// The same loop drives every system (what differs is a Protocol), so that a comparison compares the
// servers. One thread; a request costs a copy into the socket's buffer and a slot of a ring.
// Bounds: `window` unanswered requests, kRequestsMax per run.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bin/bench/schedule.h"
#include "bin/bench/stream.h"
#include "common/histogram.h"
#include "common/status.h"

namespace triad::bench {

inline constexpr std::uint64_t kRequestsMax = 1'000'000'000;

// Told what an answer said. `error` empty = acknowledged.
class AnswerSink {
 public:
  virtual ~AnswerSink() = default;
  virtual void Answered(std::uint64_t request, std::string_view error) = 0;
};

// How one system spells a publish and its acknowledgement.
class PublishProtocol {
 public:
  virtual ~PublishProtocol() = default;
  virtual std::size_t connections() const { return 1; }
  // Connects number `i` and does what a connection needs before the first request. Called again
  // after a failure: an open stream to the right server may stay as it is.
  virtual Status Open(std::size_t i, Stream* stream) = 0;
  virtual std::size_t ConnectionOf(std::uint64_t /*request*/) const { return 0; }
  virtual void Append(std::uint64_t request, Nanos now, std::string* out) = 0;
  // Reads whole answers of `stream`'s input; may answer on its output.
  virtual Status Read(Stream* stream, AnswerSink* sink) = 0;
  // Messages per request.
  virtual std::uint64_t batch() const { return 1; }
};

struct PublishOptions {
  std::uint64_t window = 64;
  double rate = 0;  // requests per second; 0 = closed loop
  double warmup_s = 1;
  double seconds = 10;
  bool keeps_acknowledged = false;
  // Called at the begin and the end of the measurement, from the loop's thread.
  std::function<void()> on_begin;
  std::function<void()> on_end;
};

struct PublishOutcome {
  Histogram latency;           // us, of what was answered while measuring
  std::uint64_t requests = 0;  // answered while measuring
  std::uint64_t errors = 0;    // of the whole run
  std::uint64_t unanswered = 0;
  std::string first_error;
  double seconds = 0;              // how long the measurement took
  std::vector<bool> acknowledged;  // by request; only when asked for
};

// kUnavailable: never connected. What fails later is counted in the outcome, and the connection
// made again.
Result<PublishOutcome> RunPublishLoop(PublishProtocol* protocol, const PublishOptions& options);

}  // namespace triad::bench
