// What tests of the Asio server and client share: a scripted server, a raw socket, a waiter.

#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "remoting/client.h"
#include "remoting/frame.h"
#include "remoting/server.h"
#include "tests/plain_socket.h"

namespace triad::remoting {
using std::chrono::milliseconds;
using std::chrono::seconds;

inline constexpr milliseconds kLong{10000};

// Waits until `predicate` holds, woken by Notify.
class Waiter {
 public:
  void Notify(const std::function<void()>& change) {
    std::lock_guard hold(mutex_);
    change();
    changed_.notify_all();
  }
  bool Wait(const std::function<bool()>& predicate, milliseconds limit = kLong) {
    std::unique_lock hold(mutex_);
    return changed_.wait_for(hold, limit, predicate);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
};

inline std::string Local(std::uint16_t port) {
  return "127.0.0.1:" + std::to_string(port);
}

// A plain blocking socket: the peer that does what our client never would.
class RawSocket : public PlainSocket {
 public:
  explicit RawSocket(std::uint16_t port, int receive_buffer = 0)
      : PlainSocket(port, "127.0.0.1", receive_buffer) {}

  // The next frame; nullopt at the end of the stream or after ten seconds.
  std::optional<Command> Read() {
    for (;;) {
      Result<std::optional<Command>> next = decoder_.Next();
      if (!next.ok()) return std::nullopt;
      if (next->has_value()) return std::move(**next);
      char buffer[65536];
      const ssize_t n = recv(fd(), buffer, sizeof(buffer), 0);
      if (n <= 0) return std::nullopt;
      decoder_.Append(std::string_view(buffer, static_cast<std::size_t>(n)));
    }
  }
  // True when the peer closed, within ten seconds.
  bool ReadsEnd() {
    char buffer[65536];
    for (;;) {
      const ssize_t n = recv(fd(), buffer, sizeof(buffer), 0);
      if (n == 0) return true;
      if (n < 0) return errno == ECONNRESET;
    }
  }

 private:
  FrameDecoder decoder_;
};

inline std::string RequestBytes(std::int32_t code, std::int32_t opaque, std::string body = {},
                                SerializeType type = SerializeType::kJson) {
  Command request = Command::Request(code);
  request.opaque = opaque;
  request.body = std::move(body);
  request.serialize_type = type;
  return EncodeFrame(request).value();
}

// Codes of the test server.
inline constexpr int kEcho = 1;
inline constexpr int kHold = 2;     // answered by AnswerHeld
inline constexpr int kBig = 3;      // answered with 1 MiB
inline constexpr int kSilence = 4;  // never answered

class Asio : public testing::Test {
 protected:
  void StartServer(ServerOptions options = {}) {
    if (options.ports.empty()) options.ports = {0};
    ServerHandler handler;
    handler.on_request = [this](const ConnectionPtr& connection, Command request) {
      OnRequest(connection, std::move(request));
    };
    handler.on_closed = [this](const ConnectionPtr& connection) {
      waiter_.Notify([&] { closed_.push_back(connection->id()); });
    };
    server_ = CreateServer(options, handler);
    const Status started = server_->Start();
    ASSERT_TRUE(started.ok()) << started;
    port_ = server_->ports().at(0);
  }

  void OnRequest(const ConnectionPtr& connection, Command request) {
    waiter_.Notify([&] {
      ++received_;
      last_connection_ = connection;
      if (request.code == kHold) held_.emplace_back(connection, request);
    });
    if (request.is_oneway()) return;
    if (request.code == kEcho) {
      Command response = Command::ResponseTo(request, 0);
      response.body = request.body;
      response.ext = request.ext;
      connection->Send(std::move(response));
    } else if (request.code == kBig) {
      Command response = Command::ResponseTo(request, 0);
      response.body.assign(1 << 20, 'b');
      connection->Send(std::move(response));
    } else if (request.code > kSilence) {
      connection->Send(Command::ResponseTo(request, 3, "unknown"));
    }
  }

  void AnswerHeld() {
    std::vector<std::pair<ConnectionPtr, Command>> held;
    waiter_.Notify([&] { held.swap(held_); });
    for (const auto& [connection, request] : held) {
      connection->Send(Command::ResponseTo(request, 0, "held"));
    }
  }

  void StartClient(ClientOptions options = {}, ClientHandler handler = {}) {
    if (!handler.on_disconnect) {
      handler.on_disconnect = [this](const std::string& address) {
        waiter_.Notify([&] { disconnected_.push_back(address); });
      };
    }
    client_ = CreateClient(options, handler);
  }

  Result<Command> Echo(std::string body, milliseconds timeout = kLong) {
    Command request = Command::Request(kEcho);
    request.body = std::move(body);
    return client_->CallSync(Local(port_), std::move(request), timeout);
  }

  void TearDown() override {
    client_.reset();
    if (server_) server_->Stop(milliseconds(0));
  }

  Waiter waiter_;
  int received_ = 0;
  std::vector<std::uint64_t> closed_;
  std::vector<std::string> disconnected_;
  ConnectionPtr last_connection_;
  std::vector<std::pair<ConnectionPtr, Command>> held_;
  std::uint16_t port_ = 0;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Client> client_;
};

}  // namespace triad::remoting
