#include "bin/bench/server_usage.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <system_error>

#include "bin/bench/stream.h"

namespace triad::bench {
namespace {

namespace fs = std::filesystem;

constexpr char kListening[] = "0A";

std::string ReadAll(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Socket inodes that listen on one of `ports`, of /proc/net/tcp or tcp6.
void AddListeningInodes(const char* table, const std::set<unsigned long>& ports,
                        std::set<std::string>* inodes) {
  std::istringstream lines(ReadAll(table));
  std::string line;
  std::getline(lines, line);  // heading
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string slot, local, remote, state, queues, timer, retries, owner, timeout, inode;
    words >> slot >> local >> remote >> state >> queues >> timer >> retries >> owner >> timeout >>
        inode;
    const std::size_t colon = local.rfind(':');
    if (state != kListening || colon == std::string::npos) continue;
    if (ports.contains(std::strtoul(local.c_str() + colon + 1, nullptr, 16)))
      inodes->insert("socket:[" + inode + "]");
  }
}

bool HoldsAnyOf(const fs::path& process, const std::set<std::string>& sockets) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(process / "fd", error)) {
    if (sockets.contains(fs::read_symlink(entry.path(), error).string())) return true;
  }
  return false;
}

// The number after "key:" in /proc/PID/status, in KiB.
double StatusMib(const std::string& status, const std::string& key) {
  const std::size_t at = status.find("\n" + key + ":");
  if (at == std::string::npos) return 0;
  return std::strtod(status.c_str() + at + key.size() + 2, nullptr) / 1024;
}

ServerProcess SampleProcess(pid_t pid) {
  ServerProcess server;
  server.pid = pid;
  const fs::path directory = "/proc/" + std::to_string(pid);
  const std::string stat = ReadAll(directory / "stat");
  const std::size_t open = stat.find('(');
  const std::size_t close = stat.rfind(')');
  if (open == std::string::npos || close == std::string::npos) return server;
  server.name = stat.substr(open + 1, close - open - 1);
  std::istringstream fields(stat.substr(close + 2));
  std::string skip;
  for (int i = 0; i < 11; ++i) fields >> skip;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  server.cpu_s = (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  const std::string status = ReadAll(directory / "status");
  server.rss_anon_mib = StatusMib(status, "RssAnon");
  server.rss_file_mib = StatusMib(status, "RssFile");
  return server;
}

std::uint64_t DiskFlushes() {
  std::istringstream lines(ReadAll("/proc/diskstats"));
  std::uint64_t total = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string major, minor, name, skip;
    words >> major >> minor >> name;
    std::error_code error;
    if (!fs::exists("/sys/block/" + name, error)) continue;  // a partition: its disk counts
    for (int i = 0; i < 15; ++i) words >> skip;              // reads, writes, times, discards
    std::uint64_t flushes = 0;
    if (words >> flushes) total += flushes;
  }
  return total;
}

}  // namespace

std::vector<pid_t> ListenersOn(const std::vector<std::string>& addresses) {
  std::set<unsigned long> ports;
  for (const std::string& address : addresses) {
    const std::size_t colon = address.rfind(':');
    if (colon != std::string::npos)
      ports.insert(std::strtoul(address.c_str() + colon + 1, nullptr, 10));
  }
  std::set<std::string> inodes;
  AddListeningInodes("/proc/net/tcp", ports, &inodes);
  AddListeningInodes("/proc/net/tcp6", ports, &inodes);
  std::vector<pid_t> pids;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (HoldsAnyOf(entry.path(), inodes)) pids.push_back(std::atoi(name.c_str()));
  }
  return pids;
}

UsageSample SampleUsage(const std::vector<pid_t>& servers) {
  UsageSample sample;
  for (const pid_t pid : servers) sample.servers.push_back(SampleProcess(pid));
  sample.disk_flushes = DiskFlushes();
  rusage own{};
  ::getrusage(RUSAGE_SELF, &own);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  sample.own_cpu_s = seconds(own.ru_utime) + seconds(own.ru_stime);
  sample.at_s = static_cast<double>(Now()) / 1e9;
  return sample;
}

UsageDelta Difference(const UsageSample& before, const UsageSample& after) {
  UsageDelta delta;
  delta.seconds = after.at_s - before.at_s;
  delta.own_cpu_s = after.own_cpu_s - before.own_cpu_s;
  if (delta.seconds > 0) {
    delta.flushes_per_s =
        static_cast<double>(after.disk_flushes - before.disk_flushes) / delta.seconds;
  }
  delta.knows_servers = !after.servers.empty();
  for (ServerProcess server : after.servers) {
    const auto earlier =
        std::find_if(before.servers.begin(), before.servers.end(),
                     [&](const ServerProcess& other) { return other.pid == server.pid; });
    if (earlier != before.servers.end()) server.cpu_s -= earlier->cpu_s;
    delta.server_cpu_s += server.cpu_s;
    delta.servers.push_back(server);
  }
  return delta;
}

}  // namespace triad::bench
