// The loads of mqbench: each finds its topic, runs, prints its report.
//
// Blocking; main thread (mixed adds one). Exit codes: 0 all well; 1 something failed, was never
// answered or is not stored; 2 could not begin (said on stderr).

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "bin/bench/lanes.h"

namespace triad::bench {

struct MqbenchOptions {
  LaneOptions lanes{.namesrv = "127.0.0.1:9876", .topic = "TriadBench"};
  std::size_t connections = 1;
  std::string header = "json";
  std::string output = "table";
  double seconds = 10;
  // Sending.
  double warmup = 1;
  std::size_t size = 1024;
  std::uint64_t inflight = 0;  // 0 = by the kind of loop
  double rate = 0;             // messages per second
  std::uint64_t keys = 0;
  std::uint64_t batch = 1;
  bool verify = false;
  // Reading.
  int groups = 1;
  int pull_batch = 1024;
  bool follows = false;
};

int RunProducer(const MqbenchOptions& options);
int RunConsumer(const MqbenchOptions& options);
int RunMixed(const MqbenchOptions& options);

}  // namespace triad::bench
