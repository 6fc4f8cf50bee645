// NameServers: asks one of the name servers; the next one when it does not answer.
//
// Thread: safe on every thread; callbacks on the remoting client's thread. Bounds: one attempt per
// address and call.

#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "remoting/client.h"

namespace triad::client {

// "host:port;host:port" as a list; blanks and empty parts are left out.
std::vector<std::string> SplitAddresses(const std::string& text);

class NameServers {
 public:
  using Done = std::function<void(Result<remoting::Command>)>;

  // `client` outlives this object; `addresses` is not empty.
  NameServers(remoting::Client* client, std::vector<std::string> addresses);

  // Errors: kUnavailable naming the addresses when none answers.
  void Call(remoting::Command request, std::chrono::milliseconds timeout, Done done);
  // All of them, one after the other: the first failure, or OK. Blocks.
  Status CallAll(const remoting::Command& request, std::chrono::milliseconds timeout);
  Result<remoting::Command> CallSync(remoting::Command request, std::chrono::milliseconds timeout);

 private:
  void Try(remoting::Command request, std::chrono::milliseconds timeout, std::size_t attempt,
           Done done);

  remoting::Client* const client_;
  const std::vector<std::string> addresses_;
  std::atomic<std::size_t> current_{0};  // the one that answered last
};

}  // namespace triad::client
