// Runs mqadmin as its users do: the program, its words, what it prints and how it ends.

#pragma once

#include <string>
#include <vector>

namespace triad {

struct AdminRun {
  int exit_code = -1;
  std::string out;  // stdout and stderr
};

// `mqadmin verb words... -n namesrv`. Words must not hold a quote.
AdminRun RunAdmin(const std::string& namesrv, const std::vector<std::string>& words);

}  // namespace triad
