// ForeignLoad: a program of another language whose clients make the load.
//
// PROGRAM NAMESRV BROKER_NAME SEED BETWEEN_MS writes the history of its own operations to its
// stdout, one event a line, with its own times (CLOCK_MONOTONIC) and ids. "stop sending" on its
// stdin ends its producers; it says "sending stopped" when they have their last answers. "stop
// consuming", or the end of its stdin, ends it. What it writes to stderr goes to `log_file`.
// Owns the process and the thread that reads it. Thread: one at a time.

#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "tests/chaos/load.h"

namespace triad::chaos {

class ForeignLoad : public Traffic {
 public:
  ForeignLoad(std::vector<std::string> command, std::string log_file, HistoryWriter* history);
  ~ForeignLoad() override;
  ForeignLoad(const ForeignLoad&) = delete;
  ForeignLoad& operator=(const ForeignLoad&) = delete;

  // Returns when the first send is acknowledged.
  Status Start() override;
  Status StopSending() override;
  Status StopConsuming() override;

 private:
  Status Spawn();
  void Read();
  Status Say(const std::string& words);
  // Until `reached` or the program's end. Errors: kUnavailable, kTimedOut.
  template <typename Reached>
  Status WaitUntil(Reached reached, const std::string& what);

  const std::vector<std::string> command_;
  const std::string log_file_;
  HistoryWriter* const history_;
  pid_t pid_ = 0;
  int input_ = -1;               // its stdin
  std::FILE* output_ = nullptr;  // its stdout
  std::thread reader_;
  std::atomic<bool> sending_stopped_{false}, ended_{false};
  std::atomic<std::uint64_t> bad_lines_{0};
};

}  // namespace triad::chaos
