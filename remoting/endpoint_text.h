// Addresses as text: "ip:port" of an endpoint, and "host:port" taken apart.
//
// Pure. Shell: Asio's endpoint type; included by remoting's .cc files only. IPv4-mapped IPv6
// addresses are printed as IPv4, because stored messages must carry them so (wire.md §4.6).

#pragma once

#include <asio/ip/tcp.hpp>
#include <string>
#include <string_view>

#include "common/status.h"

namespace triad::remoting {

std::string EndpointText(const asio::ip::tcp::endpoint& endpoint);

// "host:port" or "[v6]:port". Errors: kInvalidArgument, with the address.
Status SplitAddress(std::string_view address, std::string* host, std::string* port);

}  // namespace triad::remoting
