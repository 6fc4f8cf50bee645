// Client: calls remoting servers by address; one connection per address, opened on first use and
// again after a loss.
//
// Owns one thread. Requests to one address leave in call order (FIFO). Bounds: max_inflight per
// address (kBusy), frame limit. Names are resolved at every connect. Thread: every method is safe
// on every thread; callbacks run on the client's thread and must not block.

#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "common/status.h"
#include "remoting/command.h"
#include "remoting/server.h"

namespace triad::remoting {

struct ClientOptions {
  std::chrono::milliseconds connect_timeout{3000};
  std::chrono::milliseconds idle_timeout{120000};
  std::size_t max_inflight = 65535;
  SerializeType serialize_type = SerializeType::kJson;
  std::string language = "CPP";
};

struct ClientHandler {
  // Requests that a server makes on our connection (notifications, client-directed calls). May be
  // null.
  std::function<void(const ConnectionPtr&, Command)> on_request;
  // The connection to `address` ended or could not be made. May be null.
  std::function<void(const std::string& address)> on_disconnect;
};

class Client {
 public:
  virtual ~Client() = default;

  // `done` is called exactly once: the response, or kUnavailable (cannot connect, connection lost
  // before an answer; the message says which), kTimedOut, kBusy, kCancelled (client stopped).
  virtual void Call(const std::string& address, Command request, std::chrono::milliseconds timeout,
                    std::function<void(Result<Command>)> done) = 0;
  // Blocks the calling thread; never on the client's own thread.
  virtual Result<Command> CallSync(const std::string& address, Command request,
                                   std::chrono::milliseconds timeout) = 0;
  // No answer is expected. `done` (may be null) gets OK when the bytes were handed to the kernel.
  virtual void Oneway(const std::string& address, Command request,
                      std::function<void(Status)> done) = 0;

  // Drops the connection to `address`, if any.
  virtual void Disconnect(const std::string& address) = 0;
  virtual void Stop() = 0;
};

// Whether a failed call certainly never left this process: no connection could be made.
bool NeverSent(const Status& failure);

std::unique_ptr<Client> CreateClient(ClientOptions options, ClientHandler handler);

}  // namespace triad::remoting
