// Which address a broker tells its clients when brokerIP1 is not set.
//
// ChooseAddress is pure; ListInterfaces asks the machine. Source: cases.md OPS-3.

#pragma once

#include <string>
#include <vector>

#include "common/status.h"

namespace triad::broker {

struct Interface {
  std::string name;     // "eth0"
  std::string address;  // IPv4 in dotted form
  bool up = false;
  bool loopback = false;
  bool moves = false;  // some group's leaderIP
};
std::vector<Interface> ListInterfaces();

struct ChosenAddress {
  std::string address;
  std::string how;         // in words
  std::string candidates;  // the others, "name address, ..."; empty: none
  bool fallback = false;   // nothing usable: loopback
};
// The first interface that is up and neither loopback nor a bridge of containers or machines; no
// address that moves.
ChosenAddress ChooseAddress(const std::vector<Interface>& interfaces);

// A host name as an address (IPv4 first); an address as it is. Blocks. Errors: kInvalidArgument.
Result<std::string> ResolveHost(const std::string& host);

}  // namespace triad::broker
