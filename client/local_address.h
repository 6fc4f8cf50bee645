// LocalAddress: this machine's first IPv4 address that is not a loopback one; 127.0.0.1 when there
// is none. Asked once per process.

#pragma once

#include <string>

namespace triad::client {

const std::string& LocalAddress();

}  // namespace triad::client
