// ServerUsage: what the servers under load cost, as the kernel counts it.
//
// The servers are the processes of this machine that listen on the given ports (others of the same
// name do not count). Disk flushes are completed flush requests of all whole disks
// (/proc/diskstats): an fsync that reached a device. The figure is the machine's, not one
// process's; the rate in a pause before the load shows what others do. Thread: any; reads /proc.

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace triad::bench {

struct ServerProcess {
  pid_t pid = 0;
  std::string name;
  double cpu_s = 0;
  double rss_anon_mib = 0;
  double rss_file_mib = 0;
};

struct UsageSample {
  std::vector<ServerProcess> servers;
  std::uint64_t disk_flushes = 0;
  double own_cpu_s = 0;
  double at_s = 0;  // of a monotonic clock
};

// The processes listening on the ports of `addresses` ("ip:port"); empty when they run elsewhere.
std::vector<pid_t> ListenersOn(const std::vector<std::string>& addresses);

UsageSample SampleUsage(const std::vector<pid_t>& servers);

struct UsageDelta {
  bool knows_servers = false;
  double seconds = 0;
  double server_cpu_s = 0;
  double own_cpu_s = 0;
  double flushes_per_s = 0;
  std::vector<ServerProcess> servers;  // cpu_s: used in between; memory: at the end
};
UsageDelta Difference(const UsageSample& before, const UsageSample& after);

}  // namespace triad::bench
