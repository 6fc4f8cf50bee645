#include "tests/sim/shrink.h"

#include <fcntl.h>
#include <glog/logging.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iostream>

namespace triad::sim {

bool FailsInAChild(const std::function<bool()>& runs_clean) {
  std::cout << std::flush;
  const pid_t child = fork();
  PCHECK(child >= 0);
  if (child == 0) {
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    _exit(runs_clean() ? 0 : 3);
  }
  int status = 0;
  PCHECK(waitpid(child, &status, 0) == child);
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

}  // namespace triad::sim
