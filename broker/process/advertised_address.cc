#include "broker/process/advertised_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <array>
#include <string_view>

#include "broker/process/leader_address_port.h"

namespace triad::broker {
namespace {

// Interfaces that other hosts cannot reach.
constexpr std::array<std::string_view, 11> kBridges = {
    "docker", "br-", "veth", "virbr", "lxc", "lxd", "cni", "flannel", "cali", "vmnet", "podman"};

bool IsBridge(const std::string& name) {
  for (const std::string_view prefix : kBridges) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

}  // namespace

std::vector<Interface> ListInterfaces() {
  std::vector<Interface> found;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return found;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    char text[INET_ADDRSTRLEN] = {};
    const auto* address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
    if (::inet_ntop(AF_INET, &address->sin_addr, text, sizeof text) == nullptr) continue;
    Interface entry;
    entry.name = one->ifa_name;
    entry.address = text;
    entry.up = (one->ifa_flags & IFF_UP) != 0;
    entry.loopback = (one->ifa_flags & IFF_LOOPBACK) != 0;
    entry.moves = IsMoved(entry.address, entry.name);
    found.push_back(std::move(entry));
  }
  ::freeifaddrs(list);
  return found;
}

ChosenAddress ChooseAddress(const std::vector<Interface>& interfaces) {
  ChosenAddress chosen;
  for (const Interface& one : interfaces) {
    if (one.loopback) continue;
    const bool usable = one.up && !one.moves && !IsBridge(one.name);
    if (usable && chosen.address.empty()) {
      chosen.address = one.address;
      chosen.how = "the first interface that is up and no bridge (" + one.name + ")";
      continue;
    }
    chosen.candidates += (chosen.candidates.empty() ? "" : ", ") + one.name + " " + one.address;
    if (!one.up) chosen.candidates += " (down)";
    if (one.up && !usable) chosen.candidates += one.moves ? " (leaderIP)" : " (bridge)";
  }
  if (!chosen.address.empty()) return chosen;
  chosen.address = "127.0.0.1";
  chosen.how = "no usable network interface was found: only clients on this host can connect";
  chosen.fallback = true;
  return chosen;
}

Result<std::string> ResolveHost(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
  if (error != 0) {
    return Status::InvalidArgument("\"" + host + "\" cannot be resolved: " + ::gai_strerror(error));
  }
  std::string found;
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    char text[INET6_ADDRSTRLEN] = {};
    const bool v4 = one->ai_family == AF_INET;
    const void* raw =
        v4 ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(one->ai_addr)->sin_addr)
           : &reinterpret_cast<const sockaddr_in6*>(one->ai_addr)->sin6_addr;
    if (::inet_ntop(one->ai_family, raw, text, sizeof text) == nullptr) continue;
    if (v4 || found.empty()) found = text;
    if (v4) break;
  }
  ::freeaddrinfo(list);
  if (found.empty()) return Status::InvalidArgument("\"" + host + "\" has no IP address");
  return found;
}

}  // namespace triad::broker
