// Frame codec: bytes of one TCP stream to commands and back.
//
// Pure. Source: wire.md §1.1, §1.3, §1.4. Bounds: kMaxFrameBytes; nothing is allocated for a frame
// before its length was checked.

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "common/status.h"
#include "remoting/command.h"

namespace triad::remoting {

inline constexpr std::size_t kMaxFrameBytes = 16777216;  // the whole frame, length field included

// Collects bytes; yields whole frames. One per connection.
class FrameDecoder {
 public:
  explicit FrameDecoder(std::size_t max_frame_bytes = kMaxFrameBytes)
      : max_frame_bytes_(max_frame_bytes) {}

  // Each byte is copied here once and moved at most a constant number of times after that.
  void Append(std::string_view bytes);

  // The next whole command; nullopt when more bytes are needed.
  // Errors (close the connection): kInvalidArgument with what was wrong. The first byte of a TLS
  // hello is refused by name.
  Result<std::optional<Command>> Next();

  std::size_t buffered_bytes() const { return buffer_.size() - begin_; }

 private:
  std::size_t max_frame_bytes_;
  std::string buffer_;
  std::size_t begin_ = 0;
};

// The whole frame, in command.serialize_type. Errors: kInvalidArgument when larger than the limit.
Result<std::string> EncodeFrame(const Command& command);
// Appends the part before the body to `out` (length prefix included); the body is to follow as it
// is.
Status EncodeFrameHead(const Command& command, std::size_t body_bytes, std::string* out);
// One whole frame, length field included. Errors: kInvalidArgument.
Result<Command> DecodeFrame(std::string_view frame);

}  // namespace triad::remoting
