// ClientOptions: what producers, consumers and admin calls have in common.

#pragma once

#include <chrono>
#include <string>

#include "common/status.h"

namespace triad::client {

// Errors are values: triad::Status. Its code says what to do next (common/status.h): kUnavailable
// and kBusy repeat later, kTimedOut the outcome is unknown, kInvalidArgument / kPermissionDenied do
// not repeat unchanged; the message says what, where and what was expected.
using ::triad::Result;
using ::triad::Status;
using ::triad::StatusCode;

struct ClientOptions {
  std::string namesrv_address;  // "host:port;host:port"
  std::string instance_name;  // clients of one process with the same name share connections; empty
                              // = "DEFAULT"
  std::chrono::milliseconds route_poll_interval{30000};
  std::chrono::milliseconds heartbeat_interval{30000};
};

}  // namespace triad::client
