// with_cluster: starts a NameServer and three peers, runs a command against them, ends everything,
// exits as the command did. SIGTERM and SIGINT (a test that ran out of time) end the command, and
// so everything else.
//
//   with_cluster --root DIR --programs DIR [--set key=value]... -- COMMAND ARG...
//
// {namesrv} in an ARG becomes the address. The command gives orders as whole lines of its output;
// each is carried out at once and answered by a line on the command's input: DONE, or FAILED and
// why.
//
//   KILL NOW          ends the leader with SIGKILL
//   RESTART LEADER    ends the leader with SIGTERM, waits for its end, starts it again
//   RESTART I         the same with peer I (0..2)

#include <fcntl.h>
#include <glog/logging.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bin/local_cluster.h"

namespace triad {
namespace {

constexpr std::chrono::seconds kPatience{30};
constexpr std::string_view kRestart = "RESTART ";

// The command's process group; 0: none runs.
volatile pid_t command_group = 0;

extern "C" void EndCommand(int) {
  if (command_group > 0) ::kill(-command_group, SIGKILL);
}

// The command, its output to read and its input to write.
struct Child {
  pid_t pid = 0;
  FILE* output = nullptr;
  int input = -1;
};

Child Spawn(const std::vector<std::string>& command) {
  int out[2];
  int in[2];
  CHECK_EQ(::pipe2(out, O_CLOEXEC), 0);
  CHECK_EQ(::pipe2(in, O_CLOEXEC), 0);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  Child child;
  child.pid = ::fork();
  CHECK_GE(child.pid, 0);
  if (child.pid == 0) {
    ::setpgid(0, 0);
    ::dup2(in[0], STDIN_FILENO);
    ::dup2(out[1], STDOUT_FILENO);
    ::execvp(words[0], words.data());
    std::perror(words[0]);
    ::_exit(127);
  }
  ::close(in[0]);
  ::close(out[1]);
  ::setpgid(child.pid, child.pid);  // whoever is first
  command_group = child.pid;
  child.output = ::fdopen(out[0], "r");
  child.input = in[1];
  return child;
}

Status KillLeader(LocalCluster* cluster) {
  const Result<std::size_t> leader = cluster->WaitForLeader(kPatience);
  if (!leader.ok()) return leader.status();
  std::printf("killing the leader %s\n", cluster->brokers()[*leader].peer_id.c_str());
  return cluster->Signal(*leader, SIGKILL).status();
}

Status Restart(LocalCluster* cluster, const std::string& which) {
  const Result<std::size_t> leader = cluster->WaitForLeader(kPatience);
  if (!leader.ok()) return leader.status();
  const std::size_t peer = which == "LEADER" ? *leader : std::stoul(which);
  std::printf("restarting %s%s\n", cluster->brokers()[peer].peer_id.c_str(),
              peer == *leader ? ", which leads" : "");
  std::fflush(stdout);
  const Result<int> ended = cluster->Signal(peer, SIGTERM);
  if (!ended.ok()) return ended.status();
  if (*ended != 0) return Status::Internal("it exited with " + std::to_string(*ended));
  TRIAD_RETURN_IF_ERROR(cluster->StartBroker(peer));
  return cluster->WaitForMembers(cluster->brokers().size(), kPatience);
}

// nullopt: the line is no order.
std::optional<Status> CarryOut(LocalCluster* cluster, const std::string& line) {
  if (line == "KILL NOW") return KillLeader(cluster);
  if (line.starts_with(kRestart)) return Restart(cluster, line.substr(kRestart.size()));
  return std::nullopt;
}

void Answer(int input, const Status& status) {
  const std::string line = status.ok() ? "DONE\n" : "FAILED " + status.ToString() + "\n";
  std::fputs(line.c_str(), stdout);
  if (::write(input, line.data(), line.size()) < 0) std::perror("the command does not listen");
}

int RunCommand(LocalCluster* cluster, const std::vector<std::string>& command) {
  Child child = Spawn(command);
  char text[4096];
  while (std::fgets(text, sizeof text, child.output) != nullptr) {
    std::fputs(text, stdout);
    std::fflush(stdout);
    const std::string line = std::string(text).substr(0, std::string_view(text).find('\n'));
    if (const std::optional<Status> status = CarryOut(cluster, line)) Answer(child.input, *status);
    std::fflush(stdout);
  }
  std::fclose(child.output);
  ::close(child.input);
  int status = 0;
  ::waitpid(child.pid, &status, 0);
  command_group = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

std::vector<std::string> WithAddress(std::vector<std::string> command, const std::string& address) {
  constexpr std::string_view kMark = "{namesrv}";
  for (std::string& word : command) {
    const std::size_t at = word.find(kMark);
    if (at != std::string::npos) word.replace(at, kMark.size(), address);
  }
  return command;
}

int Main(int argc, char** argv) {
  LocalClusterOptions options;
  std::string root;
  std::vector<std::string> settings;
  std::vector<std::string> command;
  CLI::App app("Runs a command against a fresh local cluster.", "with_cluster");
  app.add_option("--root", root)->required();
  app.add_option("--programs", options.program_dir)->required();
  app.add_option("--set", settings, "key=value for every broker.conf")->expected(1)->take_all();
  int own = 1;  // arguments in front of "--"
  while (own < argc && std::string(argv[own]) != "--") ++own;
  for (int i = own + 1; i < argc; ++i) command.push_back(argv[i]);
  CLI11_PARSE(app, own, argv);
  if (command.empty()) {
    std::fprintf(stderr, "with_cluster: no command behind --\n");
    return 1;
  }

  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGTERM, EndCommand);
  ::signal(SIGINT, EndCommand);
  char name[] = "/tmp/triad-interop-XXXXXX";
  CHECK(::mkdtemp(name) != nullptr);
  options.work_dir = name;
  options.conf_dir = root + "/conf";
  options.overrides = {{"mappedFileSizeCommitLog", "16777216"}};
  for (const std::string& setting : settings) {
    const std::size_t at = setting.find('=');
    CHECK(at != std::string::npos) << setting;
    options.overrides[setting.substr(0, at)] = setting.substr(at + 1);
  }
  Result<std::unique_ptr<LocalCluster>> cluster = LocalCluster::Start(options);
  if (!cluster.ok()) {
    std::fprintf(stderr, "%s\n", cluster.status().ToString().c_str());
    return 1;
  }
  const int code =
      RunCommand(cluster->get(), WithAddress(std::move(command), (*cluster)->namesrv_address()));
  if (code != 0) {
    for (const LocalBroker& broker : (*cluster)->brokers()) {
      std::printf("---- %s\n%s", broker.peer_id.c_str(),
                  LocalCluster::Tail(broker.log_file, 20).c_str());
    }
  }
  (*cluster)->StopAll();
  if (code == 0) std::filesystem::remove_all(options.work_dir);
  return code;
}

}  // namespace
}  // namespace triad

int main(int argc, char** argv) {
  FLAGS_logtostderr = true;  // no log files beside the story
  FLAGS_minloglevel = google::GLOG_ERROR;
  google::InitGoogleLogging(argv[0]);
  return triad::Main(argc, argv);
}
