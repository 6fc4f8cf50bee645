#include "client/local_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <array>

namespace triad::client {

namespace {

std::string Find() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return "127.0.0.1";
  std::string found = "127.0.0.1";
  for (const ifaddrs* item = list; item != nullptr; item = item->ifa_next) {
    if (item->ifa_addr == nullptr || item->ifa_addr->sa_family != AF_INET) continue;
    if ((item->ifa_flags & IFF_LOOPBACK) != 0 || (item->ifa_flags & IFF_UP) == 0) continue;
    std::array<char, INET_ADDRSTRLEN> text{};
    const auto* address = reinterpret_cast<const sockaddr_in*>(item->ifa_addr);
    inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size());
    found = text.data();
    break;
  }
  freeifaddrs(list);
  return found;
}

}  // namespace

const std::string& LocalAddress() {
  static const std::string address = Find();
  return address;
}

}  // namespace triad::client
