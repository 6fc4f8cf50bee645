// AskAll: one request to several processes at once, and what has come of it.

#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "remoting/client.h"

namespace triad::broker {

struct Answered {
  std::string address;
  Result<remoting::Command> answer;
};

// `done` gets one per address, in the order in which they came, once each has answered or failed;
// at most `budget` later. It runs on the client's thread, or on the caller's when there is nobody
// to ask. Thread: safe on every thread.
void AskAll(remoting::Client& client, const std::vector<std::string>& addresses,
            const remoting::Command& request, std::chrono::milliseconds budget,
            std::function<void(std::vector<Answered>)> done);

}  // namespace triad::broker
