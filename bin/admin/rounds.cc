#include "bin/admin/rounds.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "common/process.h"

namespace triad::admin {

std::vector<Option> WithRounds(std::vector<Option> options, const char* seconds) {
  options.push_back({"-i,--interval", "seconds between two rounds", seconds, kCount});
  options.push_back({"--rounds", "at most so many; 0: until it is stopped", "0", kCount});
  return options;
}

bool Rounds::Stopped() {
  if (!stopped_) stopped_ = WaitForStopSignal(std::chrono::milliseconds(0)) != 0;
  return stopped_;
}

bool Rounds::Next() {
  const bool read = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (!read || stopped_) return false;
  if (++done_ == given_.Number("rounds")) return false;
  constexpr std::int64_t kYear = 366LL * 86400;
  const std::chrono::seconds pause(std::min(given_.Number("interval"), kYear));
  stopped_ = WaitForStopSignal(pause) != 0;
  return !stopped_;
}

}  // namespace triad::admin
