#include "bin/bench/frame_template.h"

#include <cstring>
#include <utility>

#include "common/byte_order.h"
#include "remoting/frame.h"

namespace triad::bench {
namespace {

constexpr std::size_t kPrefixBytes = 8;
constexpr std::size_t kBinaryOpaqueAt = kPrefixBytes + 5;
constexpr std::size_t kOpaqueDigits = 10;
constexpr std::string_view kOpaqueKey = "\"opaque\":";
constexpr std::string_view kCodeKey = "\"code\":";

// The number at `at`, if one stands there.
bool ReadNumber(std::string_view text, std::size_t at, std::int64_t* value) {
  const bool is_negative = at < text.size() && text[at] == '-';
  if (is_negative) ++at;
  std::int64_t number = 0;
  std::size_t digits = 0;
  for (; at < text.size() && digits < 18 && text[at] >= '0' && text[at] <= '9'; ++at, ++digits)
    number = number * 10 + (text[at] - '0');
  *value = is_negative ? -number : number;
  return digits > 0;
}

bool ReadMember(std::string_view header, std::string_view key, std::int64_t* value) {
  const std::size_t at = header.find(key);
  return at != std::string_view::npos && ReadNumber(header, at + key.size(), value);
}

}  // namespace

void WriteDecimal(std::uint64_t value, std::size_t width, char* to) {
  for (std::size_t i = width; i-- > 0; value /= 10) to[i] = static_cast<char>('0' + value % 10);
}

Result<FrameTemplate> FrameTemplate::Make(remoting::Command command, std::size_t body_bytes,
                                          const std::vector<std::string_view>& places) {
  FrameTemplate made;
  made.is_json_ = command.serialize_type == remoting::SerializeType::kJson;
  command.opaque = static_cast<std::int32_t>(kFirstOpaque);
  TRIAD_RETURN_IF_ERROR(remoting::EncodeFrameHead(command, body_bytes, &made.head_));
  made.opaque_at_ =
      made.is_json_ ? made.head_.find(kOpaqueKey) + kOpaqueKey.size() : kBinaryOpaqueAt;
  for (const std::string_view place : places) {
    const std::size_t at = made.head_.find(place);
    if (at == std::string::npos || made.head_.find(place, at + 1) != std::string::npos) {
      return Status::InvalidArgument("the header does not hold \"" + std::string(place) +
                                     "\" exactly once");
    }
    made.places_at_.push_back(at);
  }
  return made;
}

void FrameTemplate::Append(std::uint32_t opaque, std::span<const std::string_view> texts,
                           std::string* out) const {
  const std::size_t begin = out->size();
  out->append(head_);
  char* const head = out->data() + begin;
  if (is_json_) {
    WriteDecimal(opaque, kOpaqueDigits, head + opaque_at_);
  } else {
    StoreBe32(head + opaque_at_, opaque);
  }
  for (std::size_t i = 0; i < places_at_.size(); ++i)
    std::memcpy(head + places_at_[i], texts[i].data(), texts[i].size());
}

Result<AnswerHead> ReadAnswerHead(std::string_view input) {
  AnswerHead answer;
  if (input.size() < kPrefixBytes) return answer;
  const std::size_t frame_bytes = std::size_t{LoadBe32(input.data())} + 4;
  const std::uint32_t type_and_length = LoadBe32(input.data() + 4);
  const std::size_t header_bytes = type_and_length & 0xFFFFFF;
  if (frame_bytes > remoting::kMaxFrameBytes || header_bytes + kPrefixBytes > frame_bytes) {
    return Status::Corruption("the server sent what is no remoting frame (length " +
                              std::to_string(frame_bytes) + ", header " +
                              std::to_string(header_bytes) + ")");
  }
  if (input.size() < frame_bytes) return answer;
  answer.header = input.substr(kPrefixBytes, header_bytes);
  answer.body =
      input.substr(kPrefixBytes + header_bytes, frame_bytes - kPrefixBytes - header_bytes);
  std::int64_t code = 0;
  std::int64_t opaque = 0;
  if (type_and_length >> 24 != 0) {
    if (header_bytes < 21) return Status::Corruption("the server's binary header is too short");
    code = static_cast<std::int16_t>(LoadBe16(answer.header.data()));
    opaque = LoadBe32(answer.header.data() + 5);
  } else if (!ReadMember(answer.header, kCodeKey, &code) ||
             !ReadMember(answer.header, kOpaqueKey, &opaque)) {
    return Status::Corruption("the server's header has no code or opaque: " +
                              std::string(answer.header.substr(0, 200)));
  }
  answer.code = static_cast<std::int32_t>(code);
  answer.opaque = static_cast<std::uint32_t>(opaque);
  answer.frame_bytes = frame_bytes;
  return answer;
}

std::int64_t FindNumber(const AnswerHead& answer, std::string_view key) {
  std::size_t at = answer.header.find(key);
  if (at == std::string_view::npos) return -1;
  at += key.size();
  // JSON: quote, colon, maybe a quote. Binary: the length in four bytes.
  if (at < answer.header.size() && answer.header[at] == '"') {
    at += 2;
    if (at < answer.header.size() && answer.header[at] == '"') ++at;
  } else {
    at += 4;
  }
  std::int64_t value = 0;
  return ReadNumber(answer.header, at, &value) ? value : -1;
}

std::string DescribeFailure(std::string_view frame) {
  const Result<remoting::Command> answer = remoting::DecodeFrame(frame);
  if (!answer.ok()) return answer.status().ToString();
  return "code " + std::to_string(answer->code) + " " + answer->remark;
}

}  // namespace triad::bench
