// DrainLoop: reads a peer's backlog until `messages` came, nothing more comes, or time is over.
//
// One thread.

#pragma once

#include <cstdint>

#include "bin/bench/stream.h"

namespace triad::bench {

class DrainProtocol {
 public:
  virtual ~DrainProtocol() = default;
  // Connects and asks for messages.
  virtual Status Open(Stream* stream) = 0;
  // Reads what came, asks for more; how many messages there were.
  virtual Result<std::uint64_t> Read(Stream* stream) = 0;
};

struct DrainOptions {
  std::uint64_t messages = 100000;
  double seconds = 20;
};

struct DrainOutcome {
  std::uint64_t messages = 0;
  double seconds = 0;  // until the last message
};

// kUnavailable: the connection could not be made or broke.
Result<DrainOutcome> RunDrainLoop(DrainProtocol* protocol, const DrainOptions& options);

}  // namespace triad::bench
