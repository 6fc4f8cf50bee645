#include "tests/e2e/run_admin.h"

#include <sys/wait.h>

#include <cstdio>

namespace triad {

AdminRun RunAdmin(const std::string& namesrv, const std::vector<std::string>& words) {
  std::string line = "'" + std::string(TRIAD_PROGRAMS) + "/triad-admin'";
  for (const std::string& word : words) line += " '" + word + "'";
  line += " -n '" + namesrv + "' 2>&1";
  AdminRun run;
  std::FILE* pipe = ::popen(line.c_str(), "r");
  if (pipe == nullptr) return run;
  char buffer[4096];
  for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
    run.out.append(buffer, n);
  }
  const int status = ::pclose(pipe);
  if (WIFEXITED(status)) run.exit_code = WEXITSTATUS(status);
  return run;
}

}  // namespace triad
