// with_cluster: starts a NameServer and three peers, runs a command against them, ends everything,
// exits as the command did.
//
//   with_cluster --root DIR --programs DIR [--set key=value]... -- COMMAND ARG...     {namesrv} in
//   an ARG becomes the address
//
// A line "KILL NOW" in the command's output kills the leader with SIGKILL.

#include <glog/logging.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "bin/local_cluster.h"

namespace triad {
namespace {

std::string Quoted(const std::string& word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

void KillLeader(LocalCluster* cluster) {
  Result<std::size_t> leader = cluster->WaitForLeader(std::chrono::seconds(10));
  CHECK(leader.ok()) << leader.status();
  Result<int> ended = cluster->Signal(*leader, SIGKILL);
  CHECK(ended.ok()) << ended.status();
  std::printf("killed the leader %s\n", cluster->brokers()[*leader].peer_id.c_str());
  std::fflush(stdout);
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
  std::string line;
  for (std::string word : command) {
    const std::size_t at = word.find("{namesrv}");
    if (at != std::string::npos) word.replace(at, 9, (*cluster)->namesrv_address());
    line += (line.empty() ? "" : " ") + Quoted(word);
  }
  FILE* child = ::popen(line.c_str(), "r");
  CHECK(child != nullptr);
  char text[4096];
  while (std::fgets(text, sizeof text, child) != nullptr) {
    std::fputs(text, stdout);
    std::fflush(stdout);
    if (std::string(text) == "KILL NOW\n") KillLeader(cluster->get());
  }
  const int status = ::pclose(child);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
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
