// Rounds: a verb that does the same again and again until somebody stops it.
//
// Of a verb with `until_stopped`: main holds SIGINT and SIGTERM back, here they are waited for.
// Options: --interval (seconds between two rounds) and --rounds (0: no end). Thread: main.

#pragma once

#include <vector>

#include "bin/admin/verbs.h"

namespace triad::admin {

// Adds --interval and --rounds.
std::vector<Option> WithRounds(std::vector<Option> options, const char* seconds);

class Rounds {
 public:
  explicit Rounds(const Given& given) : given_(given) {}

  // A signal came: whoever is in a long round ends it.
  bool Stopped();
  // After a round: waits for the time of the next. False: that was the last one, since it was
  // stopped, there are enough, or nobody reads what is printed.
  bool Next();

 private:
  const Given& given_;
  bool stopped_ = false;
  std::int64_t done_ = 0;
};

}  // namespace triad::admin
