// LoadReport: what one load did, as a table for people or one line of JSON for programs.
//
// Value. One thread.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bin/bench/server_usage.h"
#include "common/histogram.h"

namespace triad::bench {

// What one peer holds of what was sent.
struct PeerCheck {
  std::string address;
  std::uint64_t stored = 0;    // messages of this run
  std::uint64_t missing = 0;   // acknowledged, and not there
  std::uint64_t repeated = 0;  // there more than once
  std::uint64_t damaged = 0;   // another checksum or body than was sent
  bool is_right() const { return missing == 0 && damaged == 0; }
};

struct LoadReport {
  std::string what;  // "producer", "consumer", ...
  std::uint64_t size = 0;
  std::uint64_t inflight = 0;
  std::uint64_t batch = 1;
  double rate = 0;    // asked for; 0 = closed loop
  Histogram latency;  // us
  std::string timed;  // what the latency is of
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::uint64_t errors = 0;
  std::uint64_t unanswered = 0;
  std::string first_error;
  double seconds = 0;
  UsageDelta usage;
  double flushes_before_per_s = 0;  // of the disk, in the pause before the load
  bool has_checks = false;
  std::vector<PeerCheck> checks;

  double per_second() const { return seconds > 0 ? static_cast<double>(messages) / seconds : 0; }
  double per_million(double cpu_s) const {
    return messages > 0 ? cpu_s * 1e6 / static_cast<double>(messages) : 0;
  }
};

void PrintTable(const LoadReport& report);
void PrintJson(const LoadReport& report);

}  // namespace triad::bench
