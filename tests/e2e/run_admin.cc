#include "tests/e2e/run_admin.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "tests/e2e/cluster_fixture.h"

namespace triad {

AdminRun RunAdmin(const std::string& namesrv, const std::vector<std::string>& words) {
  std::string line = "'" + std::string(TRIAD_PROGRAMS) + "/triad-admin'";
  for (const std::string& word : words) line += " '" + word + "'";
  return RunLine(line + " -n '" + namesrv + "'");
}

AdminRun RunLine(const std::string& line) {
  AdminRun run;
  std::FILE* pipe = ::popen((line + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return run;
  char buffer[4096];
  for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
    run.out.append(buffer, n);
  }
  const int status = ::pclose(pipe);
  if (WIFEXITED(status)) run.exit_code = WEXITSTATUS(status);
  return run;
}

AdminProcess::AdminProcess(const std::string& namesrv, const std::vector<std::string>& words) {
  std::vector<std::string> line = {std::string(TRIAD_PROGRAMS) + "/triad-admin"};
  line.insert(line.end(), words.begin(), words.end());
  line.insert(line.end(), {"-n", namesrv});
  std::vector<char*> arguments;
  for (std::string& word : line) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  out_ = ends[0];
}

AdminProcess::~AdminProcess() {
  CloseOutput();
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

std::string AdminProcess::ReadLine() {
  while (rest_.find('\n') == std::string::npos) {
    pollfd wanted{out_, POLLIN, 0};
    char buffer[4096];
    if (::poll(&wanted, 1, 30000) <= 0) return "";
    const ssize_t n = ::read(out_, buffer, sizeof buffer);
    if (n <= 0) return "";
    rest_.append(buffer, static_cast<std::size_t>(n));
  }
  const std::size_t end = rest_.find('\n');
  const std::string line = rest_.substr(0, end);
  rest_.erase(0, end + 1);
  return line;
}

void AdminProcess::CloseOutput() {
  if (out_ >= 0) ::close(out_);
  out_ = -1;
}

void AdminProcess::Signal(int number) const {
  ::kill(pid_, number);
}

int AdminProcess::Wait() {
  int status = 0;
  const bool ended = Eventually([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; },
                                std::chrono::seconds(30));
  if (!ended) return -1;
  pid_ = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace triad
