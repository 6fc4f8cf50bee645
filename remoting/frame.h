// Frame codec: bytes of one TCP stream to commands and back.
//
// Pure. Source: wire.md §1.1, §1.3, §1.4. Bounds: kMaxFrameBytes; nothing is allocated for a frame
// before its length was checked.

#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/status.h"
#include "remoting/command.h"

namespace triad::remoting {

inline constexpr std::size_t kMaxFrameBytes = 16777216;  // the whole frame, length field included

// Collects bytes; yields whole frames. One per connection. Its buffer follows the stream: a few KiB
// where little comes, up to kFullRoomBytes where much does; more only for a frame that needs it.
class FrameDecoder {
 public:
  static constexpr std::size_t kFullRoomBytes = 256 * 1024;

  explicit FrameDecoder(std::size_t max_frame_bytes = kMaxFrameBytes)
      : max_frame_bytes_(max_frame_bytes) {}

  // Where the next bytes of the stream are to be read to, never empty; Filled says how many came.
  // A byte is moved at most a constant number of times after that.
  std::span<char> Room();
  void Filled(std::size_t bytes);
  void Append(std::string_view bytes);  // the same for bytes that are elsewhere

  // The next whole frame as it stands, length field included: good until the next Room or Append.
  // nullopt: more bytes are needed. Errors (close the connection): kInvalidArgument with what was
  // wrong. The first byte of a TLS hello is refused by name.
  Result<std::optional<std::string_view>> Peek() const;
  void Drop(std::string_view frame) { begin_ += frame.size(); }  // the one that Peek gave
  // Both, decoded.
  Result<std::optional<Command>> Next();

  std::size_t buffered_bytes() const { return end_ - begin_; }

 private:
  void MakeRoom(std::size_t bytes);
  void Grow(std::size_t capacity);

  std::size_t max_frame_bytes_;
  std::unique_ptr<char[]> buffer_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;  // of what is not taken yet
  std::size_t end_ = 0;
  std::size_t room_bytes_ = kFirstRoomBytes;  // wanted for the next read
  int small_reads_ = 0;                       // in a row

  static constexpr std::size_t kFirstRoomBytes = 4096;
};

// The whole frame, in command.serialize_type. Errors: kInvalidArgument when larger than the limit.
Result<std::string> EncodeFrame(const Command& command);
// Appends the part before the body to `out` (length prefix included); the body is to follow as it
// is.
Status EncodeFrameHead(const Command& command, std::size_t body_bytes, std::string* out);
// Of a whole frame that was read.
SerializeType TypeOfFrame(std::string_view frame);
// One whole frame, length field included. Errors: kInvalidArgument.
Result<Command> DecodeFrame(std::string_view frame);

}  // namespace triad::remoting
