#include "remoting/frame.h"

#include <algorithm>
#include <cstring>

#include "common/byte_order.h"
#include "remoting/header_codec.h"

namespace triad::remoting {
namespace {

constexpr std::size_t kMaxHeaderBytes = 0xFFFFFF;  // 24 bits
constexpr std::size_t kKeptCapacity = 1u << 20;    // of an emptied buffer
constexpr int kSmallReads = 64;                    // in a row: little comes here now

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

std::size_t HeaderBytes(std::string_view frame) {
  return LoadBe32(frame.data() + kLengthBytes) & kMaxHeaderBytes;
}

// The first kPrefixBytes of a frame are there, and `total` was checked.
Status CheckHeaderLength(std::string_view frame, std::size_t total) {
  const std::size_t header_bytes = HeaderBytes(frame);
  if (header_bytes <= total + kLengthBytes - kPrefixBytes) return Status::Ok();
  return BadFrame("header length " + std::to_string(header_bytes) + " is beyond the frame's " +
                  std::to_string(total + kLengthBytes) + " bytes");
}

// `frame` is complete and its lengths were checked.
Status DecodeChecked(std::string_view frame, Command* out) {
  const auto type = static_cast<std::uint8_t>(frame[kLengthBytes]);
  const std::size_t header_bytes = HeaderBytes(frame);
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

std::span<char> FrameDecoder::Room() {
  if (begin_ == end_) {
    begin_ = end_ = 0;
    const bool is_calm = small_reads_ >= kSmallReads && room_bytes_ > kFirstRoomBytes;
    if (is_calm) room_bytes_ = kFirstRoomBytes;
    if (is_calm || capacity_ > kKeptCapacity) {
      buffer_.reset();
      capacity_ = 0;
    }
  }
  // Less than wanted is good enough, unless it is next to nothing.
  MakeRoom(std::max(room_bytes_ / 4, kFirstRoomBytes));
  return {buffer_.get() + end_, capacity_ - end_};
}

void FrameDecoder::Filled(std::size_t bytes) {
  small_reads_ = bytes < kFirstRoomBytes / 2 ? small_reads_ + 1 : 0;
  end_ += bytes;
  if (end_ == capacity_) room_bytes_ = std::min(room_bytes_ * 8, kFullRoomBytes);
}

void FrameDecoder::Append(std::string_view bytes) {
  if (begin_ == end_) begin_ = end_ = 0;
  MakeRoom(bytes.size());
  std::memcpy(buffer_.get() + end_, bytes.data(), bytes.size());
  end_ += bytes.size();
}

void FrameDecoder::MakeRoom(std::size_t bytes) {
  if (capacity_ - end_ >= bytes && buffer_ != nullptr) return;
  const std::size_t kept = end_ - begin_;
  // At least half is used up: what moves was paid for by what was consumed.
  if (begin_ >= kept && capacity_ - kept >= bytes && buffer_ != nullptr) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, kept);
    begin_ = 0;
    end_ = kept;
    return;
  }
  // A large frame gets room for all of itself once a quarter of it has come.
  std::size_t wanted = std::max(kept + bytes, std::max(2 * kept, room_bytes_));
  if (kept >= kLengthBytes) {
    const std::size_t total = LoadBe32(buffer_.get() + begin_) + kLengthBytes;
    wanted = std::max(wanted, std::min(total, 4 * kept));
  }
  Grow(wanted);
}

// Moves what is kept into a new buffer.
void FrameDecoder::Grow(std::size_t capacity) {
  const std::size_t kept = end_ - begin_;
  auto next = std::make_unique_for_overwrite<char[]>(capacity);
  if (kept > 0) std::memcpy(next.get(), buffer_.get() + begin_, kept);
  buffer_ = std::move(next);
  capacity_ = capacity;
  begin_ = 0;
  end_ = kept;
}

Result<std::optional<std::string_view>> FrameDecoder::Peek() const {
  using Frame = std::optional<std::string_view>;
  const std::string_view waiting(buffer_.get() + begin_, end_ - begin_);
  if (waiting.empty()) return Frame();
  TRIAD_RETURN_IF_ERROR(CheckFirstByte(waiting.front()));
  if (waiting.size() < kLengthBytes) return Frame();
  const std::size_t total = LoadBe32(waiting.data());
  TRIAD_RETURN_IF_ERROR(CheckTotal(total, max_frame_bytes_));
  if (waiting.size() < kPrefixBytes) return Frame();
  TRIAD_RETURN_IF_ERROR(CheckHeaderLength(waiting, total));
  if (waiting.size() < kLengthBytes + total) return Frame();
  return Frame(waiting.substr(0, kLengthBytes + total));
}

Result<std::optional<Command>> FrameDecoder::Next() {
  const Result<std::optional<std::string_view>> frame = Peek();
  if (!frame.ok()) return frame.status();
  if (!frame->has_value()) return std::optional<Command>();
  std::optional<Command> command(std::in_place);
  TRIAD_RETURN_IF_ERROR(DecodeChecked(**frame, &*command));
  Drop(**frame);
  return command;
}

SerializeType TypeOfFrame(std::string_view frame) {
  return static_cast<SerializeType>(frame[kLengthBytes]);
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
  TRIAD_RETURN_IF_ERROR(CheckHeaderLength(frame, total));
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
