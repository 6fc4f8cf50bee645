// Server: accepts remoting connections and hands every request to one handler.
//
// One io_context and thread per connection thread; a connection lives and dies on one of them. Per
// connection: one read loop and one write loop, a bounded output buffer (the connection is closed
// when its peer does not read), a bounded number of unanswered requests (reading pauses). A bad
// frame costs the sender its connection and one rate-limited line. Thread: Start/Stop on the
// owner's thread; the handler runs on connection threads and must not block.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "remoting/command.h"

namespace triad::remoting {

// One client's connection as seen by a handler. Every method is safe on every thread, also after
// the end.
class Connection {
 public:
  virtual ~Connection() = default;

  // Queues a command (a response, or an own oneway request whose opaque is set here). Dropped when
  // closed. A response counts against the bounded in-flight requests until it is sent.
  virtual void Send(Command command) = 0;

  // Queues whole frames: the answers to `count` requests, encoded by the caller.
  virtual void SendFrames(std::string frames, std::size_t count) = 0;

  // One request of this connection gets no answer: it does not count as in flight any more.
  virtual void ForgetRequest() = 0;

  // An own request; `done` gets the answer or kTimedOut / kUnavailable, on this connection's
  // thread.
  virtual void Call(Command request, std::chrono::milliseconds timeout,
                    std::function<void(Result<Command>)> done) = 0;

  virtual void Close() = 0;
  virtual bool closed() const = 0;

  virtual std::uint64_t id() const = 0;                   // unique in this process
  virtual const std::string& remote_address() const = 0;  // "ip:port"
  virtual SerializeType last_serialize_type() const = 0;  // for own requests

  // Runs `task` on this connection's thread. Dropped when the server stopped.
  virtual void Post(std::function<void()> task) = 0;
};
using ConnectionPtr = std::shared_ptr<Connection>;

struct ServerOptions {
  std::string bind_address = "0.0.0.0";
  std::vector<std::uint16_t> ports;  // all served alike; 0 = any free port
  std::size_t threads = 2;           // connection threads, 1..4
  std::size_t max_connections = 20000;
  std::size_t max_output_bytes = 64u << 20;    // per connection
  std::size_t max_inflight_requests = 100000;  // per connection, oneway requests not counted
  std::chrono::milliseconds idle_timeout{120000};
  std::chrono::milliseconds partial_frame_timeout{30000};
};

struct ServerHandler {
  // Every request, in order of arrival per connection. Answer with
  // connection->Send(Command::ResponseTo(...)), at once or later.
  std::function<void(const ConnectionPtr&, Command)> on_request;
  // Offered each whole frame first, as it came: true takes the request, which is answered by
  // SendFrames, or by Send. May be null.
  std::function<bool(const ConnectionPtr&, std::string_view frame)> on_frame;
  // Around the requests that one read brought, on the connection's thread: what they start may be
  // begun together. Both or none; may be null.
  std::function<void()> before_requests;
  std::function<void()> after_requests;
  // Once per connection, after its last request was handed over. May be null.
  std::function<void(const ConnectionPtr&)> on_closed;
};

class Server {
 public:
  virtual ~Server() = default;
  // Errors: kInvalidArgument or kUnavailable naming the address that cannot be bound.
  virtual Status Start() = 0;
  // The ports in the order of the options (0 replaced).
  virtual std::vector<std::uint16_t> ports() const = 0;
  virtual std::size_t connection_count() const = 0;
  // Closes listeners, waits at most `grace` for the answers to what was read and until they are
  // sent, closes connections, joins the threads.
  virtual void Stop(std::chrono::milliseconds grace) = 0;
  // Stops accepting; keeps the connections.
  virtual void StopAccepting() = 0;
};

std::unique_ptr<Server> CreateServer(ServerOptions options, ServerHandler handler);

}  // namespace triad::remoting
