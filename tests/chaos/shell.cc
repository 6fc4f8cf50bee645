#include "tests/chaos/shell.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace triad::chaos {

Status RunProgram(const std::vector<std::string>& command, std::string* output_text) {
  std::string text;
  std::vector<char*> argv;
  std::vector<std::string> words = command;
  for (std::string& word : words) {
    argv.push_back(word.data());
    text += (text.empty() ? "" : " ") + word;
  }
  argv.push_back(nullptr);
  int output[2];
  if (::pipe2(output, O_CLOEXEC) != 0) return Status::IoError(std::strerror(errno));
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(output[1], STDOUT_FILENO);
    ::dup2(output[1], STDERR_FILENO);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(output[1]);
  if (pid < 0) {
    ::close(output[0]);
    return Status::IoError("cannot start " + text + ": " + std::strerror(errno));
  }
  std::string said;
  char buffer[4096];
  for (ssize_t got; (got = ::read(output[0], buffer, sizeof buffer)) != 0;) {
    if (got < 0 && errno != EINTR) break;
    if (got > 0 && said.size() < 65536) said.append(buffer, static_cast<std::size_t>(got));
  }
  ::close(output[0]);
  if (output_text != nullptr) *output_text = said;
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return Status::Ok();
  const std::string why = WIFEXITED(status) ? "status " + std::to_string(WEXITSTATUS(status))
                                            : "signal " + std::to_string(WTERMSIG(status));
  return Status::IoError(text + ": " + why + ": " + said);
}

std::int64_t NumberBehind(const std::string& said, const std::string& word) {
  const std::size_t at = said.find(word);
  return at == std::string::npos ? 0 : std::atoll(said.c_str() + at + word.size());
}

bool Pause(std::chrono::milliseconds time) {
  static bool stopped = false;
  if (stopped) return true;
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  ::sigaddset(&signals, SIGINT);
  const timespec limit{time.count() / 1000, (time.count() % 1000) * 1'000'000};
  stopped = ::sigtimedwait(&signals, nullptr, &limit) > 0;
  return stopped;
}

}  // namespace triad::chaos
