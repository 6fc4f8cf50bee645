// LeaderAddressPort: a network interface that gets leaderIP and loses it, and what others on the
// network say about the address.
//
// Changes addresses through rtnetlink; announces and hears by ARP. The kernel itself removes what
// is not renewed, whatever became of this process. Only what a broker put there is ever removed:
// the address as a /32. Thread: one at a time; after a fork each process may use its copy, but only
// one may listen. Source: RFC 5227 (announcements, conflicts), rtnetlink(7).

#pragma once

#include <netinet/in.h>
#include <netpacket/packet.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "common/status.h"

namespace triad::broker {

// Does a broker of this machine move this address on this interface?
bool IsMoved(const std::string& ip, const std::string& interface);

class LeaderAddressPort {
 public:
  static constexpr std::chrono::seconds kKernelKeeps{5};

  LeaderAddressPort() = default;
  ~LeaderAddressPort();
  LeaderAddressPort(const LeaderAddressPort&) = delete;
  LeaderAddressPort& operator=(const LeaderAddressPort&) = delete;

  // Removes what a crash left over. Errors, ready to print with the key, what was found and what
  // was expected: no permission, no Ethernet, the address is another's on this machine.
  Status Open(const std::string& ip, const std::string& interface);
  // Adds it for kKernelKeeps, or for as long again; or removes it. 0 or an errno. An address that
  // is away already is no error.
  int Change(bool add);
  int Announce();
  // Which other machine has said, since the last call, that it has the address?
  std::optional<std::string> HeardClaim();
  int arp() const { return arp_; }
  // Where a successor asks this process to go.
  int name() const { return name_; }
  void ForgetSuccessor();

 private:
  Status Refused(const std::string& what, int error) const;
  Status Succeed();
  Status RefuseOther() const;
  int Send(std::uint16_t operation);

  std::string ip_, interface_;
  in_addr address_{};
  sockaddr_ll link_{};       // with the interface's own hardware address
  std::uint32_t asked_ = 0;  // the number of the last request to the kernel
  int routes_ = -1, arp_ = -1, name_ = -1;
};

}  // namespace triad::broker
