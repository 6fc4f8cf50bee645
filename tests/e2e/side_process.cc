#include "tests/e2e/side_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <glog/logging.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

extern char** environ;

namespace triad {

std::uint16_t FreePort() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof any;
  CHECK(::bind(fd, reinterpret_cast<sockaddr*>(&any), length) == 0);
  CHECK(::getsockname(fd, reinterpret_cast<sockaddr*>(&any), &length) == 0);
  ::close(fd);
  return ::ntohs(any.sin_port);
}

bool SideProcess::Start(const std::string& program, const std::vector<std::string>& words,
                        const std::string& log_file) {
  std::string path = std::string(TRIAD_PROGRAMS) + "/" + program;
  std::vector<std::string> kept = words;
  std::vector<char*> argv = {path.data()};
  for (std::string& word : kept) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log_file.c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, 0644);
  ::posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  const int error = ::posix_spawn(&pid_, path.c_str(), &files, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  return error == 0;
}

void SideProcess::Kill() {
  if (pid_ == 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

bool NameServerProcess::Start(const std::string& dir) {
  const std::string file = dir + "/second.conf";
  std::ofstream(file) << "listenPort=" << port_ << "\nbindAddress=127.0.0.1\nkvConfigPath=" << dir
                      << "/second/kvConfig.json\n";
  return process_.Start("triad-namesrv", {"-c", file}, dir + "/second.log");
}

}  // namespace triad
