#include "remoting/frame.h"

#include <algorithm>

#include "common/byte_order.h"
#include "remoting/header_codec.h"

namespace triad::remoting {
namespace {

constexpr std::size_t kLengthBytes = 4;
constexpr std::size_t kPrefixBytes = 8;            // total length, serialize type + header length
constexpr std::size_t kMaxHeaderBytes = 0xFFFFFF;  // 24 bits
constexpr std::size_t kKeptCapacity = 1u << 20;    // of an emptied buffer

Status BadFrame(std::string what) {
  return Status::InvalidArgument("bad frame: " + what);
}

// A frame below 16 MiB starts with a zero byte; anything else is another protocol.
Status CheckFirstByte(char first) {
  if (first == 0) return Status::Ok();
  if (first == 0x16) return BadFrame("this is a TLS hello, but TLS is not enabled on this port");
  if (first >= 'A' && first <= 'Z') {
    return BadFrame("first byte '" + std::string(1, first) +
                    "': this looks like HTTP or text, not like the RocketMQ protocol");
  }
  return BadFrame("first byte " + std::to_string(static_cast<unsigned char>(first)) +
                  ": this is not the RocketMQ protocol");
}

// `total` is the length field: what follows it.
Status CheckTotal(std::size_t total, std::size_t max_frame_bytes) {
  if (total + kLengthBytes > max_frame_bytes) {
    return BadFrame(std::to_string(total + kLengthBytes) + " bytes, the limit is " +
                    std::to_string(max_frame_bytes));
  }
  if (total < kPrefixBytes - kLengthBytes) {
    return BadFrame("length " + std::to_string(total) + " leaves no room for the header length");
  }
  return Status::Ok();
}

// `frame` is complete and its total length was checked.
Status DecodeChecked(std::string_view frame, Command* out) {
  const auto type = static_cast<std::uint8_t>(frame[kLengthBytes]);
  const std::size_t header_bytes = LoadBe32(frame.data() + kLengthBytes) & kMaxHeaderBytes;
  if (header_bytes > frame.size() - kPrefixBytes) {
    return BadFrame("header length " + std::to_string(header_bytes) + " is beyond the frame's " +
                    std::to_string(frame.size()) + " bytes");
  }
  const std::string_view header = frame.substr(kPrefixBytes, header_bytes);
  if (type == static_cast<std::uint8_t>(SerializeType::kJson)) {
    TRIAD_RETURN_IF_ERROR(DecodeJsonHeader(header, out));
  } else if (type == static_cast<std::uint8_t>(SerializeType::kRocketmq)) {
    TRIAD_RETURN_IF_ERROR(DecodeBinaryHeader(header, out));
  } else {
    return BadFrame("unknown header encoding " + std::to_string(type));
  }
  out->serialize_type = static_cast<SerializeType>(type);
  out->body = frame.substr(kPrefixBytes + header_bytes);
  return Status::Ok();
}

}  // namespace

void FrameDecoder::Append(std::string_view bytes) {
  if (begin_ == buffer_.size()) {
    buffer_.clear();
    begin_ = 0;
    if (buffer_.capacity() > kKeptCapacity) std::string().swap(buffer_);
  } else if (begin_ > buffer_.size() / 2) {
    // At least half is used up: what moves was paid for by what was consumed.
    buffer_.erase(0, begin_);
    begin_ = 0;
  }
  buffer_.append(bytes);
}

Result<std::optional<Command>> FrameDecoder::Next() {
  const std::string_view waiting = std::string_view(buffer_).substr(begin_);
  if (waiting.empty()) return std::optional<Command>();
  TRIAD_RETURN_IF_ERROR(CheckFirstByte(waiting.front()));
  if (waiting.size() < kLengthBytes) return std::optional<Command>();
  const std::size_t total = LoadBe32(waiting.data());
  TRIAD_RETURN_IF_ERROR(CheckTotal(total, max_frame_bytes_));
  if (waiting.size() < kLengthBytes + total) return std::optional<Command>();

  std::optional<Command> command(std::in_place);
  TRIAD_RETURN_IF_ERROR(DecodeChecked(waiting.substr(0, kLengthBytes + total), &*command));
  begin_ += kLengthBytes + total;
  return command;
}

Result<Command> DecodeFrame(std::string_view frame) {
  if (frame.size() < kLengthBytes) return BadFrame("shorter than its length field");
  TRIAD_RETURN_IF_ERROR(CheckFirstByte(frame.front()));
  const std::size_t total = LoadBe32(frame.data());
  TRIAD_RETURN_IF_ERROR(CheckTotal(total, kMaxFrameBytes));
  if (frame.size() != kLengthBytes + total) {
    return BadFrame("its length field says " + std::to_string(kLengthBytes + total) +
                    " bytes, there are " + std::to_string(frame.size()));
  }
  Command command;
  TRIAD_RETURN_IF_ERROR(DecodeChecked(frame, &command));
  return command;
}

Status EncodeFrameHead(const Command& command, std::size_t body_bytes, std::string* out) {
  const std::size_t start = out->size();
  out->append(kPrefixBytes, '\0');
  if (command.serialize_type == SerializeType::kJson) {
    AppendJsonHeader(command, out);
  } else {
    const Status status = AppendBinaryHeader(command, out);
    if (!status.ok()) {
      out->resize(start);
      return status;
    }
  }
  const std::size_t header_bytes = out->size() - start - kPrefixBytes;
  const std::size_t room = kMaxFrameBytes - kPrefixBytes;
  if (header_bytes > kMaxHeaderBytes || body_bytes > room || header_bytes > room - body_bytes) {
    out->resize(start);
    return Status::InvalidArgument("a frame with a header of " + std::to_string(header_bytes) +
                                   " and a body of " + std::to_string(body_bytes) +
                                   " bytes is larger than " + std::to_string(kMaxFrameBytes));
  }
  const std::size_t total = kPrefixBytes - kLengthBytes + header_bytes + body_bytes;
  const auto type = static_cast<std::uint32_t>(command.serialize_type);
  StoreBe32(out->data() + start, static_cast<std::uint32_t>(total));
  StoreBe32(out->data() + start + kLengthBytes,
            (type << 24) | static_cast<std::uint32_t>(header_bytes));
  return Status::Ok();
}

Result<std::string> EncodeFrame(const Command& command) {
  std::string frame;
  frame.reserve(kPrefixBytes + 256 + command.remark.size() + command.body.size());
  TRIAD_RETURN_IF_ERROR(EncodeFrameHead(command, command.body.size(), &frame));
  frame += command.body;
  return frame;
}

}  // namespace triad::remoting
