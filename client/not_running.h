// What a call says before Start or after Shutdown. Pure.

#pragma once

#include <string>

#include "common/status.h"

namespace triad::client {

inline Status NotRunning(const std::string& who) {
  return Status::Unavailable("the " + who + " is not running: call Start first");
}

}  // namespace triad::client
