// One request on its way through the broker, and how it is answered.
//
// Thread: handlers run on connection threads and never block; replies may come from any thread.

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/clock.h"
#include "remoting/command.h"
#include "remoting/server.h"

namespace triad::broker {

struct Request {
  remoting::Command command;
  remoting::ConnectionPtr
      connection;              // the client's; of a forwarded request: the forwarding peer's
  std::string client_address;  // "ip:port" of the client itself, also when forwarded
  TimePoint arrived;           // first arrival, also when forwarded (budgets count from here)
  bool forwarded = false;      // came through another peer: one hop only
};
using RequestPtr = std::shared_ptr<const Request>;

// Answers the request exactly once; safe on every thread. Oneway requests: the answer is dropped.
using Reply = std::function<void(remoting::Command)>;

// A family of requests. Registered per code in processor/dispatcher.h.
using Handler = std::function<void(RequestPtr, Reply)>;

}  // namespace triad::broker
