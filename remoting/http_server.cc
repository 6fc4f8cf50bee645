#include "remoting/http_server.h"

#include <glog/logging.h>

#include <algorithm>
#include <array>
#include <asio/basic_socket_acceptor.hpp>
#include <asio/basic_stream_socket.hpp>
#include <asio/basic_waitable_timer.hpp>
#include <asio/buffer.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/ip/v6_only.hpp>
#include <asio/write.hpp>
#include <utility>
#include <vector>

#include "remoting/http_request.h"
#include "remoting/io_thread.h"

namespace triad::remoting {
namespace {

using Executor = asio::io_context::executor_type;
using Socket = asio::basic_stream_socket<asio::ip::tcp, Executor>;
using Acceptor = asio::basic_socket_acceptor<asio::ip::tcp, Executor>;
using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                         asio::wait_traits<std::chrono::steady_clock>, Executor>;

constexpr std::chrono::milliseconds kAcceptPause{100};  // when no descriptor is left
// What an ended connection may still send: closed at once, it would lose our answer.
constexpr std::size_t kDrainBytesMax = 64 << 10;
constexpr std::chrono::milliseconds kDrainTime{1000};

const char* ReasonOf(int status) {
  switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 431: return "Request Header Fields Too Large";
    default: return "Service Unavailable";
  }
}

HttpResponse Refusal(int status, std::string text) {
  HttpResponse response;
  response.status = status;
  response.body = std::make_shared<const std::string>(std::move(text) + "\n");
  return response;
}

// What all connections of a server share.
struct Shared {
  HttpServerOptions options;
  std::map<std::string, HttpServer::Page> pages;
  IoThread thread;
};

// One connection: reads a request, answers it, reads the next one. Owner: the server's thread.
class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  HttpConnection(std::shared_ptr<Shared> shared, Socket socket)
      : shared_(std::move(shared)), socket_(std::move(socket)), timer_(socket_.get_executor()) {}

  void Begin() { AwaitRequest(); }
  void Close() {
    asio::error_code ignored;
    socket_.close(ignored);
    timer_.cancel();
  }
  bool closed() const { return !socket_.is_open(); }
  bool waiting() const { return waiting_; }  // for a request
  std::chrono::steady_clock::time_point since() const { return since_; }

 private:
  void AwaitRequest();
  void Read();
  void TakeRequest();
  void Ask(const HttpRequest& request);
  void Respond(const HttpResponse& response, bool keep_alive);
  void Drain(std::size_t left);
  void SetDeadline(std::chrono::milliseconds wait);

  const std::shared_ptr<Shared> shared_;
  Socket socket_;
  Timer timer_;
  bool waiting_ = false;
  std::chrono::steady_clock::time_point since_;
  std::array<char, 2048> chunk_{};
  std::string input_;
  std::string head_;                         // of the answer on its way
  std::shared_ptr<const std::string> body_;  // of the answer on its way
};

void HttpConnection::SetDeadline(std::chrono::milliseconds wait) {
  timer_.expires_after(wait);
  timer_.async_wait([self = shared_from_this()](const asio::error_code& error) {
    // A late one was set anew meanwhile.
    if (!error && self->timer_.expiry() <= std::chrono::steady_clock::now()) self->Close();
  });
}

void HttpConnection::AwaitRequest() {
  waiting_ = true;
  since_ = std::chrono::steady_clock::now();
  SetDeadline(shared_->options.idle_timeout);
  if (input_.empty()) {
    Read();
  } else {
    TakeRequest();
  }
}

void HttpConnection::Read() {
  socket_.async_read_some(
      asio::buffer(chunk_),
      [self = shared_from_this()](const asio::error_code& error, std::size_t bytes) {
        if (error || self->closed()) return self->Close();
        self->input_.append(self->chunk_.data(), bytes);
        self->TakeRequest();
      });
}

void HttpConnection::TakeRequest() {
  HttpRequest request;
  const std::size_t most = shared_->options.max_request_bytes;
  const auto size = ReadHttpRequest(std::string_view(input_).substr(0, most), &request);
  if (size.ok() && *size == 0) {
    if (input_.size() < most) return Read();
    return Respond(Refusal(431, "a request has at most " + std::to_string(most) + " bytes"), false);
  }
  if (!size.ok()) return Respond(Refusal(400, std::string(size.status().message())), false);
  input_.erase(0, *size);
  Ask(request);
}

void HttpConnection::Ask(const HttpRequest& request) {
  // The answer to a HEAD would need no body: it shall not be taken for the next answer.
  const bool keep_alive = request.keep_alive && !request.has_body && request.method != "HEAD";
  if (request.method != "GET") return Respond(Refusal(405, "only GET is served"), keep_alive);
  const auto page = shared_->pages.find(request.path);
  if (page == shared_->pages.end()) {
    std::string text = "no such page; there are:";
    for (const auto& [path, unused] : shared_->pages) text += " " + path;
    return Respond(Refusal(404, std::move(text)), keep_alive);
  }
  waiting_ = false;
  SetDeadline(shared_->options.idle_timeout);
  page->second([shared = shared_, weak = weak_from_this(), keep_alive](HttpResponse response) {
    shared->thread.Post([weak, keep_alive, response = std::move(response)] {
      const auto self = weak.lock();
      if (self != nullptr && !self->closed()) self->Respond(response, keep_alive);
    });
  });
}

void HttpConnection::Respond(const HttpResponse& response, bool keep_alive) {
  waiting_ = false;
  SetDeadline(shared_->options.idle_timeout);
  body_ = response.body;
  head_ = "HTTP/1.1 " + std::to_string(response.status) + " " + ReasonOf(response.status) +
          "\r\nContent-Type: " + response.content_type +
          "\r\nContent-Length: " + std::to_string(body_ == nullptr ? 0 : body_->size()) +
          (response.status == 405 ? "\r\nAllow: GET" : "") +
          "\r\nConnection: " + (keep_alive ? "keep-alive" : "close") + "\r\n\r\n";
  std::array<asio::const_buffer, 2> parts{asio::buffer(head_), asio::const_buffer()};
  if (body_ != nullptr) parts[1] = asio::buffer(*body_);
  asio::async_write(
      socket_, parts,
      [self = shared_from_this(), keep_alive](const asio::error_code& error, std::size_t) {
        self->body_.reset();
        if (error || self->closed()) return self->Close();
        if (keep_alive) return self->AwaitRequest();
        asio::error_code ignored;
        self->socket_.shutdown(Socket::shutdown_send, ignored);
        self->SetDeadline(kDrainTime);
        self->Drain(kDrainBytesMax);
      });
}

void HttpConnection::Drain(std::size_t left) {
  socket_.async_read_some(
      asio::buffer(chunk_),
      [self = shared_from_this(), left](const asio::error_code& error, std::size_t bytes) {
        if (error || self->closed() || bytes >= left) return self->Close();
        self->Drain(left - bytes);
      });
}

class AsioHttpServer final : public HttpServer {
 public:
  AsioHttpServer(HttpServerOptions options, std::map<std::string, Page> pages)
      : shared_(std::make_shared<Shared>()),
        acceptor_(shared_->thread.io()),
        pause_(shared_->thread.io()) {
    shared_->options = std::move(options);
    shared_->pages = std::move(pages);
  }
  ~AsioHttpServer() override { Stop(); }

  Status Start() override;
  std::uint16_t port() const override { return port_; }
  void Stop() override;

 private:
  void Accept();
  void Welcome(Socket socket);

  const std::shared_ptr<Shared> shared_;
  Acceptor acceptor_;
  Timer pause_;
  std::vector<std::shared_ptr<HttpConnection>> connections_;  // owner: the thread
  std::uint16_t port_ = 0;
  bool started_ = false;
};

Status AsioHttpServer::Start() {
  CHECK(!started_) << "a server starts once";
  const HttpServerOptions& options = shared_->options;
  const std::string text = options.bind_address + ":" + std::to_string(options.port);
  asio::error_code error;
  const auto address = asio::ip::make_address(options.bind_address, error);
  if (error) return Status::InvalidArgument("cannot listen on " + text + ": not an IP address");
  const asio::ip::tcp::endpoint endpoint(address, options.port);
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
  if (!error && address.is_v6()) acceptor_.set_option(asio::ip::v6_only(false), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (error) return Status::Unavailable("cannot listen on " + text + ": " + error.message());
  port_ = acceptor_.local_endpoint(error).port();
  started_ = true;
  Accept();
  shared_->thread.Start("metrics");
  return Status::Ok();
}

void AsioHttpServer::Accept() {
  acceptor_.async_accept([this](const asio::error_code& error, Socket socket) {
    if (!acceptor_.is_open()) return;
    if (!error) {
      Welcome(std::move(socket));
      return Accept();
    }
    pause_.expires_after(kAcceptPause);
    pause_.async_wait([this](const asio::error_code& stopped) {
      if (!stopped && acceptor_.is_open()) Accept();
    });
  });
}

void AsioHttpServer::Welcome(Socket socket) {
  std::erase_if(connections_, [](const auto& connection) { return connection->closed(); });
  if (connections_.size() >= shared_->options.max_connections) {
    auto oldest = connections_.end();
    for (auto it = connections_.begin(); it != connections_.end(); ++it) {
      if (!(*it)->waiting()) continue;
      if (oldest == connections_.end() || (*it)->since() < (*oldest)->since()) oldest = it;
    }
    if (oldest == connections_.end()) return;  // `socket` is closed
    (*oldest)->Close();
    connections_.erase(oldest);
  }
  connections_.push_back(std::make_shared<HttpConnection>(shared_, std::move(socket)));
  connections_.back()->Begin();
}

void AsioHttpServer::Stop() {
  if (!std::exchange(started_, false)) return;
  shared_->thread.Post([this] {
    asio::error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
    for (const auto& connection : connections_) connection->Close();
    connections_.clear();
  });
  shared_->thread.Stop();
}

}  // namespace

std::unique_ptr<HttpServer> CreateHttpServer(HttpServerOptions options,
                                             std::map<std::string, HttpServer::Page> pages) {
  return std::make_unique<AsioHttpServer>(std::move(options), std::move(pages));
}

}  // namespace triad::remoting
