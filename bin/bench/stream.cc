#include "bin/bench/stream.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

namespace triad::bench {
namespace {

constexpr int kConnectTimeoutMs = 3000;
constexpr std::size_t kReadBytes = 1u << 20;

Status Failed(const std::string& what) {
  return Status::Unavailable(what + ": " + std::strerror(errno));
}

Status WaitForEvent(int fd, short events, int timeout_ms, const std::string& what) {
  pollfd wait{fd, events, 0};
  const int ready = ::poll(&wait, 1, timeout_ms);
  if (ready > 0) return Status::Ok();
  return ready == 0
             ? Status::TimedOut(what + ": nothing within " + std::to_string(timeout_ms) + " ms")
             : Failed(what);
}

}  // namespace

Nanos Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Stream& Stream::operator=(Stream&& other) noexcept {
  if (this == &other) return *this;
  Close();
  fd_ = std::exchange(other.fd_, -1);
  generation_ = other.generation_;
  out_ = std::move(other.out_);
  sent_ = std::exchange(other.sent_, 0);
  in_ = std::move(other.in_);
  begin_ = std::exchange(other.begin_, 0);
  end_ = std::exchange(other.end_, 0);
  return *this;
}

Status Stream::Connect(const std::string& address) {
  Close();
  const std::size_t colon = address.rfind(':');
  sockaddr_in to{};
  to.sin_family = AF_INET;
  const std::string host = address.substr(0, colon);
  if (colon == std::string::npos || ::inet_pton(AF_INET, host.c_str(), &to.sin_addr) != 1) {
    return Status::InvalidArgument("\"" + address + "\" is no ip:port");
  }
  to.sin_port = htons(static_cast<std::uint16_t>(std::strtoul(&address[colon + 1], nullptr, 10)));
  fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd_ < 0) return Failed("socket");
  const int on = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
    if (errno != EINPROGRESS) return Failed("connect to " + address);
    TRIAD_RETURN_IF_ERROR(WaitForEvent(fd_, POLLOUT, kConnectTimeoutMs, "connect to " + address));
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size);
    errno = error;
    if (error != 0) return Failed("connect to " + address);
  }
  return Status::Ok();
}

void Stream::Close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  ++generation_;
  out_.clear();
  sent_ = begin_ = end_ = 0;
}

Status Stream::Flush() {
  while (sent_ < out_.size()) {
    const ssize_t n = ::send(fd_, out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Status::Ok();
    if (n <= 0) return Failed("the connection was lost while writing");
    sent_ += static_cast<std::size_t>(n);
  }
  out_.clear();
  sent_ = 0;
  return Status::Ok();
}

Status Stream::Fill() {
  if (begin_ > 0) {
    std::memmove(in_.data(), in_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (in_.size() - end_ < kReadBytes) in_.resize(end_ + kReadBytes);
  const ssize_t n = ::recv(fd_, in_.data() + end_, in_.size() - end_, 0);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return Status::Ok();
  if (n == 0) return Status::Unavailable("the server closed the connection");
  if (n < 0) return Failed("the connection was lost while reading");
  end_ += static_cast<std::size_t>(n);
  return Status::Ok();
}

Status Stream::WaitForInput(int timeout_ms) {
  TRIAD_RETURN_IF_ERROR(Flush());
  TRIAD_RETURN_IF_ERROR(WaitForEvent(fd_, POLLIN, timeout_ms, "waiting for an answer"));
  return Fill();
}

}  // namespace triad::bench
