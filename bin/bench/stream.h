// Stream: one non-blocking TCP connection of a load, with its bytes in and out.
//
// For benchmarks only: a load must cost little beside the servers it measures, so this is a bare
// socket. Owner: one thread. Bounds: the caller stops adding to `out` above kOutputMax; `in` holds
// at most one frame more than was read. Errors: kUnavailable.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "bin/bench/schedule.h"
#include "common/status.h"

namespace triad::bench {

Nanos Now();

class Stream {
 public:
  static constexpr std::size_t kOutputMax = 1u << 20;

  Stream() = default;
  ~Stream() { Close(); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  Stream(Stream&& other) noexcept { *this = std::move(other); }
  Stream& operator=(Stream&& other) noexcept;

  // "ip:port". Blocks until the connection stands (at most three seconds).
  Status Connect(const std::string& address);
  void Close();
  bool is_open() const { return fd_ >= 0; }
  // Changes with every Connect and Close.
  std::uint64_t generation() const { return generation_; }
  int fd() const { return fd_; }

  std::string& out() { return out_; }
  bool has_room() const { return out_.size() - sent_ < kOutputMax; }
  bool wants_to_write() const { return sent_ < out_.size(); }
  Status Flush();  // writes what the kernel takes

  // Reads what is there.
  Status Fill();
  std::string_view input() const { return std::string_view(in_).substr(begin_, end_ - begin_); }
  void Consume(std::size_t bytes) { begin_ += bytes; }

  // For handshakes: waits until there is more input. kTimedOut after `timeout_ms`.
  Status WaitForInput(int timeout_ms);

 private:
  int fd_ = -1;
  std::uint64_t generation_ = 0;
  std::string out_;
  std::size_t sent_ = 0;
  std::string in_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace triad::bench
