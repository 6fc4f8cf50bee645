#include "broker/process/leader_address_port.h"

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/if_ether.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <utility>

#include "broker/process/advertised_address.h"
#include "common/clock.h"

namespace triad::broker {
namespace {

constexpr timeval kKernelAnswers{2, 0};
constexpr std::chrono::milliseconds kPredecessorGoes{2000};

// The name of what moves `ip` on `interface`, and its size. In the namespace of the network, of
// which there is one.
std::pair<sockaddr_un, socklen_t> NameOf(const std::string& ip, const std::string& interface) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const std::string text = "triad-leaderip-" + ip + "-" + interface;
  std::copy(text.begin(), text.end(), name.sun_path + 1);
  return {name, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size())};
}

}  // namespace

bool IsMoved(const std::string& ip, const std::string& interface) {
  const auto [name, size] = NameOf(ip, interface);
  const int probe = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return false;
  const bool found = ::connect(probe, reinterpret_cast<const sockaddr*>(&name), size) == 0;
  ::close(probe);
  return found;
}

LeaderAddressPort::~LeaderAddressPort() {
  if (routes_ >= 0) ::close(routes_);
  if (arp_ >= 0) ::close(arp_);
  if (name_ >= 0) ::close(name_);
}

Status LeaderAddressPort::Refused(const std::string& what, int error) const {
  const std::string found = what + " on " + interface_ + ": " + std::strerror(error);
  if (error != EPERM && error != EACCES) return Status::IoError("leaderIP=" + ip_ + ": " + found);
  return Status::PermissionDenied(
      "leaderIP=" + ip_ + ": " + found +
      "; expected the capabilities CAP_NET_ADMIN and CAP_NET_RAW (root, or AmbientCapabilities= of "
      "a systemd unit)");
}

Status LeaderAddressPort::Open(const std::string& ip, const std::string& interface) {
  ip_ = ip;
  interface_ = interface;
  if (::inet_pton(AF_INET, ip.c_str(), &address_) != 1) {
    return Status::InvalidArgument("leaderIP: \"" + ip + "\" is no IPv4 address");
  }
  link_.sll_family = AF_PACKET;
  link_.sll_protocol = htons(ETH_P_ARP);
  link_.sll_ifindex = static_cast<int>(::if_nametoindex(interface.c_str()));
  arp_ = ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_ARP));
  socklen_t size = sizeof link_;
  if (arp_ < 0 || ::bind(arp_, reinterpret_cast<const sockaddr*>(&link_), sizeof link_) != 0 ||
      ::getsockname(arp_, reinterpret_cast<sockaddr*>(&link_), &size) != 0) {
    return Refused("no ARP", errno);
  }
  if (link_.sll_hatype != ARPHRD_ETHER || link_.sll_halen != ETH_ALEN) {
    return Status::InvalidArgument("leaderIPInterface: " + interface +
                                   " is no Ethernet interface; expected one, as others learn by "
                                   "ARP where the address is");
  }
  routes_ = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (routes_ < 0 ||
      ::setsockopt(routes_, SOL_SOCKET, SO_RCVTIMEO, &kKernelAnswers, sizeof kKernelAnswers) != 0) {
    return Refused("no change of addresses", errno);
  }
  TRIAD_RETURN_IF_ERROR(Succeed());
  const int error = Change(false);  // what a crash left over
  return error == 0 ? RefuseOther() : Refused("no change of addresses", error);
}

// Somebody gave it to this machine for good: it would never go away with the leadership.
Status LeaderAddressPort::RefuseOther() const {
  for (const Interface& one : ListInterfaces()) {
    if (one.address != ip_) continue;
    return Status::InvalidArgument("leaderIP=" + ip_ + ": interface " + one.name +
                                   " of this machine has this address already, and no broker put "
                                   "it there; expected one that no machine has");
  }
  return Status::Ok();
}

// The process of a broker that was killed a moment ago may still be there, and would take the
// address from its successor.
Status LeaderAddressPort::Succeed() {
  const auto [name, size] = NameOf(ip_, interface_);
  const auto* where = reinterpret_cast<const sockaddr*>(&name);
  name_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const TimePoint deadline = MonoNow() + kPredecessorGoes;
  while (::bind(name_, where, size) != 0) {
    if (errno != EADDRINUSE) return Refused("no name for its process", errno);
    if (MonoNow() >= deadline) {
      return Status::AlreadyExists("leaderIP=" + ip_ +
                                   ": another broker on this machine moves it on " + interface_ +
                                   "; expected one broker of a group per machine");
    }
    if (::sendto(name_, "", 1, 0, where, size) < 0) ::sched_yield();  // it goes already
    ::poll(nullptr, 0, 10);
  }
  return Status::Ok();
}

void LeaderAddressPort::ForgetSuccessor() {
  char word;
  while (::recv(name_, &word, 1, MSG_DONTWAIT) > 0) {
  }
}

int LeaderAddressPort::Change(bool add) {
  struct {
    nlmsghdr head{};
    ifaddrmsg body{};
    struct {
      rtattr head;
      in_addr value;
    } attributes[2]{};
    struct {
      rtattr head;
      ifa_cacheinfo value;
    } life{};
  } request;
  request.head.nlmsg_len = sizeof request;
  request.head.nlmsg_type = add ? RTM_NEWADDR : RTM_DELADDR;
  request.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
  request.head.nlmsg_seq = ++asked_;
  if (add) request.head.nlmsg_flags |= NLM_F_CREATE | NLM_F_REPLACE;
  request.body.ifa_family = AF_INET;
  request.body.ifa_prefixlen = 32;  // no route through it, and no source address of our own calls
  request.body.ifa_index = static_cast<std::uint32_t>(link_.sll_ifindex);
  const unsigned short kinds[2] = {IFA_LOCAL, IFA_ADDRESS};
  for (std::size_t i = 0; i < 2; ++i) {
    request.attributes[i].head = {sizeof request.attributes[i], kinds[i]};
    request.attributes[i].value = address_;
  }
  request.life.head = {sizeof request.life, IFA_CACHEINFO};
  request.life.value.ifa_prefered = request.life.value.ifa_valid =
      static_cast<std::uint32_t>(kKernelKeeps.count());
  if (::send(routes_, &request, sizeof request, 0) < 0) return errno;
  struct {
    nlmsghdr head;
    nlmsgerr body;
    char rest[256];
  } answer{};
  do {  // an answer that came too late for its request may be there still
    if (::recv(routes_, &answer, sizeof answer, 0) < 0) return errno;
  } while (answer.head.nlmsg_seq != asked_);
  if (answer.head.nlmsg_type != NLMSG_ERROR) return EPROTO;
  const int error = -answer.body.error;
  return !add && error == EADDRNOTAVAIL ? 0 : error;
}

int LeaderAddressPort::Send(std::uint16_t operation) {
  struct {
    ether_header head{};
    ether_arp body{};
  } frame;
  static_assert(sizeof frame == sizeof(ether_header) + sizeof(ether_arp));
  std::memset(frame.head.ether_dhost, 0xff, ETH_ALEN);
  std::memcpy(frame.head.ether_shost, link_.sll_addr, ETH_ALEN);
  frame.head.ether_type = htons(ETH_P_ARP);
  frame.body.ea_hdr = {htons(ARPHRD_ETHER), htons(ETH_P_IP), ETH_ALEN, sizeof address_,
                       htons(operation)};
  std::memcpy(frame.body.arp_sha, link_.sll_addr, ETH_ALEN);
  std::memcpy(frame.body.arp_spa, &address_, sizeof address_);
  if (operation == ARPOP_REPLY) std::memcpy(frame.body.arp_tha, link_.sll_addr, ETH_ALEN);
  std::memcpy(frame.body.arp_tpa, &address_, sizeof address_);
  return ::send(arp_, &frame, sizeof frame, 0) < 0 ? errno : 0;
}

// Both forms: some listen to requests only, some to replies only.
int LeaderAddressPort::Announce() {
  const int error = Send(ARPOP_REQUEST);
  return error != 0 ? error : Send(ARPOP_REPLY);
}

std::optional<std::string> LeaderAddressPort::HeardClaim() {
  std::optional<std::string> claimed;
  for (;;) {
    char frame[256];
    sockaddr_ll from{};
    socklen_t size = sizeof from;
    const ssize_t got = ::recvfrom(arp_, frame, sizeof frame, MSG_DONTWAIT,
                                   reinterpret_cast<sockaddr*>(&from), &size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return claimed;
    ether_arp arp{};
    if (from.sll_pkttype == PACKET_OUTGOING ||
        static_cast<std::size_t>(got) < sizeof(ether_header) + sizeof arp) {
      continue;
    }
    std::memcpy(&arp, frame + sizeof(ether_header), sizeof arp);
    if (std::memcmp(arp.arp_spa, &address_, sizeof address_) != 0) continue;
    if (std::memcmp(arp.arp_sha, link_.sll_addr, ETH_ALEN) == 0) continue;
    char text[18];
    const auto& mac = arp.arp_sha;
    std::snprintf(text, sizeof text, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2],
                  mac[3], mac[4], mac[5]);
    claimed = text;
  }
}

}  // namespace triad::broker
