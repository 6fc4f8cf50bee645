// Programs beside a test's cluster: another name server, a broker that is no member.

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace triad {

// A port of the loopback that nobody has at the moment.
std::uint16_t FreePort();

// One process; it ends with this object.
class SideProcess {
 public:
  SideProcess() = default;
  ~SideProcess() { Kill(); }
  SideProcess(const SideProcess&) = delete;
  SideProcess& operator=(const SideProcess&) = delete;

  // `program` of ours with these words; what it says is appended to `log_file`.
  bool Start(const std::string& program, const std::vector<std::string>& words,
             const std::string& log_file);
  void Kill();
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

// A name server beside the cluster's own.
class NameServerProcess {
 public:
  NameServerProcess() : port_(std::to_string(FreePort())) {}
  std::string address() const { return "127.0.0.1:" + port_; }
  bool Start(const std::string& dir);
  void Kill() { process_.Kill(); }

 private:
  const std::string port_;
  SideProcess process_;
};

}  // namespace triad
