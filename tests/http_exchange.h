// HttpExchange: a plain blocking client for the tests of the metrics page: bytes out, answers in.
//
// IPv4 loopback or any numeric address. Reads give up after ten seconds.

#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "tests/plain_socket.h"

namespace triad {

class HttpExchange : public PlainSocket {
 public:
  using PlainSocket::PlainSocket;

  struct Response {
    int status = 0;
    std::string head;  // with its empty line
    std::string body;
  };
  // nullopt: the stream ended, or ten seconds passed, before the answer was whole.
  std::optional<Response> Read() {
    std::size_t end = std::string::npos;
    while ((end = input_.find("\r\n\r\n")) == std::string::npos) {
      if (!Receive()) return std::nullopt;
    }
    Response response;
    response.head = input_.substr(0, end + 4);
    response.status = std::atoi(response.head.substr(response.head.find(' ')).c_str());
    constexpr std::string_view kLength = "Content-Length: ";
    const std::size_t length_at = response.head.find(kLength);
    if (length_at == std::string::npos) return std::nullopt;
    const std::size_t length =
        std::strtoul(response.head.c_str() + length_at + kLength.size(), nullptr, 10);
    while (input_.size() < end + 4 + length) {
      if (!Receive()) return std::nullopt;
    }
    response.body = input_.substr(end + 4, length);
    input_.erase(0, end + 4 + length);
    return response;
  }
  std::optional<Response> Get(const std::string& path) {
    if (!Write("GET " + path + " HTTP/1.1\r\nHost: test\r\n\r\n")) return std::nullopt;
    return Read();
  }
  // True when the other side closed and sent nothing more than what was read, within ten seconds.
  bool ReadsEnd() {
    if (!input_.empty()) return false;
    char byte = 0;
    const ssize_t n = recv(fd(), &byte, 1, 0);
    return n == 0 || (n < 0 && errno == ECONNRESET);
  }

 private:
  bool Receive() {
    char buffer[65536];
    const ssize_t n = recv(fd(), buffer, sizeof(buffer), 0);
    if (n <= 0) return false;
    input_.append(buffer, static_cast<std::size_t>(n));
    return true;
  }

  std::string input_;
};

}  // namespace triad
