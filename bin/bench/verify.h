// Verify: reads back from every peer what a run sent, and compares it with what was acknowledged.
//
// Waits (bounded) until a peer that lags has caught up. Blocking; main thread. Errors: a peer that
// cannot be read to the leader's end.

#pragma once

#include <cstdint>
#include <vector>

#include "bin/bench/lanes.h"
#include "bin/bench/report.h"

namespace triad::bench {

struct VerifyOptions {
  std::uint64_t run = 0;
  std::uint64_t batch = 1;
  std::size_t size = 1024;                // of a body; at least kStampBytes
  std::vector<std::int64_t> begins;       // per lane, before the run
  const std::vector<bool>* acknowledged;  // by request
};

Result<std::vector<PeerCheck>> VerifyPeers(Lanes* lanes, const VerifyOptions& options);

// What a message of this run must look like: counts it in `check`. For tests, too.
class RunChecker {
 public:
  explicit RunChecker(const VerifyOptions& options);
  void Take(std::string_view body, std::uint32_t body_crc);
  // What is still missing when everything was taken.
  PeerCheck Finish();

 private:
  const VerifyOptions& options_;
  std::string filler_;
  std::vector<std::uint8_t> seen_;  // per message, at most 2
  PeerCheck check_;
};

}  // namespace triad::bench
