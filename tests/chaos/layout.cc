#include "tests/chaos/layout.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tests/chaos/shell.h"

namespace triad::chaos {
namespace {

constexpr int kIds = 254;

std::vector<std::string> In(const std::string& name, std::vector<std::string> command) {
  std::vector<std::string> words{"ip", "netns", "exec", name};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

}  // namespace

Layout::Layout(int id) : id_(id) {}

Result<std::unique_ptr<Layout>> Layout::Build(int id) {
  for (int tried = 0; tried < kIds; ++tried) {
    std::unique_ptr<Layout> layout(new Layout(1 + (id - 1 + tried) % kIds));
    const Result<bool> claimed = layout->Claim();
    if (!claimed.ok()) return claimed.status();
    if (!*claimed) continue;
    TRIAD_RETURN_IF_ERROR(layout->Make());
    return layout;
  }
  return Status::IoError("all network namespaces triad1-sw to triad254-sw are there already");
}

// Only what this run has made.
Layout::~Layout() {
  for (const std::string& name : made_) {
    IgnoreError(RunProgram({"ip", "netns", "del", name}), "it may be gone");
  }
}

Result<bool> Layout::Claim() {
  const std::string sw = NamespaceOf("sw");
  const Status added = AddNamespace(sw);  // exclusive
  if (added.ok()) return true;
  if (::access(("/run/netns/" + sw).c_str(), F_OK) == 0) return false;
  return added;
}

Status Layout::AddNamespace(const std::string& name) {
  TRIAD_RETURN_IF_ERROR(RunProgram({"ip", "netns", "add", name}));
  made_.push_back(name);
  return Status::Ok();
}

std::string Layout::NamespaceOf(const std::string& host) const {
  return "triad" + std::to_string(id_) + "-" + host;
}

std::string Layout::AddressOf(const std::string& host) const {
  const auto at = std::find(hosts_.begin(), hosts_.end(), host) - hosts_.begin();
  return "10.99." + std::to_string(id_) + "." + std::to_string(at + 1);
}

std::string Layout::MacOf(const std::string& host) const {
  const auto at = std::find(hosts_.begin(), hosts_.end(), host) - hosts_.begin();
  char text[18];
  std::snprintf(text, sizeof text, "02:99:00:00:%02x:%02x", id_, static_cast<int>(at + 1));
  return text;
}

std::vector<std::string> Layout::WrapperOf(const std::string& host) const {
  return In(NamespaceOf(host), {});
}

Status Layout::Make() {
  const std::string sw = NamespaceOf("sw");
  TRIAD_RETURN_IF_ERROR(RunProgram(In(sw, {"ip", "link", "add", "br0", "type", "bridge"})));
  TRIAD_RETURN_IF_ERROR(RunProgram(In(sw, {"ip", "link", "set", "br0", "up"})));
  for (const std::string& host : hosts_) TRIAD_RETURN_IF_ERROR(AddHost(host));
  return Status::Ok();
}

Status Layout::AddHost(const std::string& host) {
  const std::string sw = NamespaceOf("sw");
  const std::string name = NamespaceOf(host);
  TRIAD_RETURN_IF_ERROR(AddNamespace(name));
  // Both ends are made inside: nothing appears in the namespace of the machine.
  TRIAD_RETURN_IF_ERROR(
      RunProgram(In(sw, {"ip", "link", "add", host, "type", "veth", "peer", "name", "eth0",
                         "address", MacOf(host), "netns", name})));
  TRIAD_RETURN_IF_ERROR(RunProgram(In(sw, {"ip", "link", "set", host, "master", "br0", "up"})));
  TRIAD_RETURN_IF_ERROR(
      RunProgram(In(name, {"ip", "addr", "add", AddressOf(host) + "/24", "dev", "eth0"})));
  TRIAD_RETURN_IF_ERROR(RunProgram(In(name, {"ip", "link", "set", "eth0", "up"})));
  TRIAD_RETURN_IF_ERROR(RunProgram(In(name, {"ip", "link", "set", "lo", "up"})));
  TRIAD_RETURN_IF_ERROR(RunProgram(In(name, {"nft", "add", "table", "netdev", "cut"})));
  // A counter of its own: it stays when the rules go.
  TRIAD_RETURN_IF_ERROR(
      RunProgram(In(name, {"nft", "add", "counter", "netdev", "cut", "dropped"})));
  return RunProgram(In(name, {"nft", "add", "chain", "netdev", "cut", "in",
                              "{ type filter hook ingress device \"eth0\" priority 0; }"}));
}

Status Layout::Enter(const std::string& host) const {
  const std::string path = "/run/netns/" + NamespaceOf(host);
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 || ::setns(fd, CLONE_NEWNET) != 0) {
    const Status failed = Status::IoError("cannot enter " + path + ": " + std::strerror(errno));
    if (fd >= 0) ::close(fd);
    return failed;
  }
  ::close(fd);
  return Status::Ok();
}

Status Layout::Rule(const std::string& from, const std::string& to,
                    const std::vector<std::string>& rest) {
  std::vector<std::string> command{"nft", "add",   "rule",  "netdev",   "cut",
                                   "in",  "ether", "saddr", MacOf(from)};
  command.insert(command.end(), rest.begin(), rest.end());
  return RunProgram(In(NamespaceOf(to), command));
}

Status Layout::Cut(const std::string& from, const std::string& to) {
  return Rule(from, to, {"counter", "name", "dropped", "drop"});
}

Status Layout::Lose(const std::string& from, const std::string& to, int percent) {
  return Rule(from, to,
              {"numgen", "random", "mod", "100", "<", std::to_string(percent), "counter", "name",
               "dropped", "drop"});
}

Status Layout::Slow(const std::string& host) {
  slow_.push_back(host);
  return RunProgram(In(NamespaceOf(host), {"tc", "qdisc", "add", "dev", "eth0", "root", "tbf",
                                           "rate", "2mbit", "burst", "16k", "latency", "500ms"}));
}

Result<std::int64_t> Layout::Dropped() const {
  std::int64_t sum = 0;
  for (const std::string& host : hosts_) {
    std::string said;
    TRIAD_RETURN_IF_ERROR(RunProgram(
        In(NamespaceOf(host), {"nft", "list", "counter", "netdev", "cut", "dropped"}), &said));
    sum += NumberBehind(said, "packets ");
  }
  return sum;
}

Result<std::int64_t> Layout::WaitedAt(const std::string& host) const {
  std::string said;
  TRIAD_RETURN_IF_ERROR(
      RunProgram(In(NamespaceOf(host), {"tc", "-s", "qdisc", "show", "dev", "eth0"}), &said));
  return NumberBehind(said, "overlimits ");
}

Status Layout::Heal() {
  Status result;
  for (const std::string& host : hosts_) {
    Status status =
        RunProgram(In(NamespaceOf(host), {"nft", "flush", "chain", "netdev", "cut", "in"}));
    if (!status.ok()) result = status;
  }
  for (const std::string& host : slow_) {
    Status status =
        RunProgram(In(NamespaceOf(host), {"tc", "qdisc", "del", "dev", "eth0", "root"}));
    if (!status.ok()) result = status;
  }
  slow_.clear();
  return result;
}

}  // namespace triad::chaos
