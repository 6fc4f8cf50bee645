// HttpExchange: a plain blocking client for the tests of the metrics page: bytes out, answers in.
//
// IPv4 loopback or any numeric address. Reads give up after ten seconds.

#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace triad {

class HttpExchange {
 public:
  explicit HttpExchange(std::uint16_t port, const std::string& ip = "127.0.0.1") {
    fd_ = socket(AF_INET, SOCK_STREAM, 0);
    timeval limit{10, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    inet_pton(AF_INET, ip.c_str(), &address.sin_addr);
    connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~HttpExchange() { close(fd_); }
  HttpExchange(const HttpExchange&) = delete;
  HttpExchange& operator=(const HttpExchange&) = delete;

  bool connected() const { return connected_; }
  bool Write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }

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
    const ssize_t n = recv(fd_, &byte, 1, 0);
    return n == 0 || (n < 0 && errno == ECONNRESET);
  }

 private:
  bool Receive() {
    char buffer[65536];
    const ssize_t n = recv(fd_, buffer, sizeof(buffer), 0);
    if (n <= 0) return false;
    input_.append(buffer, static_cast<std::size_t>(n));
    return true;
  }

  int fd_ = -1;
  bool connected_ = false;
  std::string input_;
};

}  // namespace triad
