#include "tests/sim/git_commit.h"

#include <array>
#include <cstdio>

namespace triad::sim {

std::string GitCommit() {
  FILE* const git =
      popen("git -C '" TRIAD_SOURCE_DIR "' describe --always --abbrev=12 --dirty 2>/dev/null", "r");
  if (git == nullptr) return "unknown";
  std::array<char, 128> line{};
  const bool has_line = fgets(line.data(), static_cast<int>(line.size()), git) != nullptr;
  pclose(git);
  std::string commit(has_line ? line.data() : "unknown");
  while (!commit.empty() && commit.back() == '\n') commit.pop_back();
  return commit;
}

}  // namespace triad::sim
