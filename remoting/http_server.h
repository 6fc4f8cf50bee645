// HttpServer: answers GET for a few pages over HTTP/1.1, for monitoring.
//
// One thread of its own. Everything is bounded: connections (a newcomer takes the place of the one
// that has been silent longest; when all are being answered it is closed), the head of a request
// (431 beyond), the time a request may take to come and an answer to go. No request has a body
// here: one that announces one is answered, and its connection closed. Other paths: 404; other
// methods: 405; what is no HTTP: 400. Thread: Start and Stop on the owner's; pages are asked on the
// server's thread and must not block; they answer from any thread, also after Stop.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/status.h"

namespace triad::remoting {

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::shared_ptr<const std::string> body;  // null: empty
};

struct HttpServerOptions {
  std::string bind_address = "0.0.0.0";
  std::uint16_t port = 0;  // 0: any free port
  std::size_t max_connections = 16;
  std::size_t max_request_bytes = 8 << 10;
  std::chrono::milliseconds idle_timeout{30000};  // for a whole request, and for a whole answer
};

class HttpServer {
 public:
  // Answers exactly once.
  using Answer = std::function<void(HttpResponse)>;
  using Page = std::function<void(Answer)>;

  virtual ~HttpServer() = default;
  // Errors: kInvalidArgument or kUnavailable naming the address that cannot be bound.
  virtual Status Start() = 0;
  virtual std::uint16_t port() const = 0;  // that it listens on
  // Closes everything and joins the thread. Idempotent.
  virtual void Stop() = 0;
};

// `pages`: by path.
std::unique_ptr<HttpServer> CreateHttpServer(HttpServerOptions options,
                                             std::map<std::string, HttpServer::Page> pages);

}  // namespace triad::remoting
