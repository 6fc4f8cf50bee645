#include "tests/sim/group/journal.h"

#include <cstdio>
#include <iostream>

#include "tests/sim/random.h"

namespace triad::sim {

void Journal::Note(std::int64_t at, int who, const char* what, std::uint64_t a, std::uint64_t b) {
  std::uint64_t name = 0;
  for (const char c : std::string_view(what)) name = name * 131 + static_cast<unsigned char>(c);
  for (const std::uint64_t value :
       {static_cast<std::uint64_t>(at), static_cast<std::uint64_t>(who), name, a, b}) {
    std::uint64_t state = hash_ ^ value;
    hash_ = SplitMix(&state);
  }
  Line& line = last_[count_++ % kKept];
  line = Line{.at = at, .who = who, .what = what, .a = a, .b = b};
  if (print_) std::cout << ToString(line) << "\n";
}

std::string Journal::ToString(const Line& line) {
  char text[160];
  std::snprintf(text, sizeof text, "%10.3f ms  %2d  %-22s %llu %llu",
                static_cast<double>(line.at) / 1000.0, line.who, line.what,
                static_cast<unsigned long long>(line.a), static_cast<unsigned long long>(line.b));
  return text;
}

std::string Journal::LastNotes() const {
  std::string text;
  for (std::uint64_t i = count_ < kKept ? 0 : count_ - kKept; i < count_; ++i) {
    text += ToString(last_[i % kKept]) + "\n";
  }
  return text;
}

}  // namespace triad::sim
