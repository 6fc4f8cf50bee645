#include "remoting/plain_send.h"

#include <glog/logging.h>

#include <array>
#include <charconv>
#include <cstring>

#include "common/byte_order.h"
#include "remoting/codes.h"
#include "remoting/frame.h"
#include "remoting/header_codec.h"
#include "remoting/headers.h"
#include "remoting/json.h"
#include "remoting/json_lexer.h"

namespace triad::remoting {
namespace {

constexpr std::uint32_t kRequired = 0xFF;  // "a" to "h"

template <typename Int>
bool ParseWhole(std::string_view text, Int* out) {
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, *out);
  return error == std::errc() && at == end && !text.empty();
}

template <typename Int>
bool ParseOptional(std::string_view text, Int* out) {
  return text.empty() || ParseWhole(text, out);
}

// The value of one header field, by its letter (send_header.cc has what each means). False: the
// long way has to judge it.
bool TakeField(char letter, std::string_view value, std::uint32_t* seen, PlainSend* out) {
  *seen |= 1u << (letter - 'a');
  std::int32_t unused = 0;
  switch (letter) {
    case 'b': out->topic = value; return true;
    case 'd': return ParseWhole(value, &unused);
    case 'e': return ParseWhole(value, &out->queue_id);
    case 'f': return ParseWhole(value, &out->sys_flag);
    case 'g': return ParseWhole(value, &out->born_timestamp_ms);
    case 'h': return ParseWhole(value, &out->flag);
    case 'i': out->properties = value; return true;
    case 'j': return ParseOptional(value, &out->reconsume_times);
    case 'l': return ParseOptional(value, &unused);
    case 'm': return value == "false" || value.empty();
    default: return true;  // a, c, k, n: they say nothing about where the message goes
  }
}

// The compact JSON that clients write.
class JsonReader {
 public:
  JsonReader(std::string_view text, std::string* scratch, PlainSend* out)
      : at_(text.data()), end_(text.data() + text.size()), scratch_(scratch), out_(out) {}

  bool Read() {
    if (!Take('{')) return false;
    do {
      std::string_view key;
      if (!ReadPlain(&key) || !Take(':') || !ReadMember(key)) return false;
    } while (Take(','));
    return Take('}') && at_ == end_ && code_ == kSendMessageV2 && (seen_ & kRequired) == kRequired;
  }

 private:
  bool Take(char expected) {
    if (at_ == end_ || *at_ != expected) return false;
    ++at_;
    return true;
  }

  // A quoted text without escapes.
  bool ReadPlain(std::string_view* text) {
    if (!Take('"')) return false;
    const char* const from = at_;
    bool ascii = true;
    at_ = FindStringStop(at_, end_, '"', &ascii);
    if (at_ == end_ || *at_ != '"') return false;
    *text = {from, static_cast<std::size_t>(at_ - from)};
    ++at_;
    return ascii || IsValidUtf8(*text);
  }

  // true, false or a number.
  bool ReadWord(std::string_view* text) {
    const char* const from = at_;
    while (at_ != end_ && ((*at_ >= '0' && *at_ <= '9') || (*at_ >= 'a' && *at_ <= 'z') ||
                           *at_ == '-' || *at_ == '.')) {
      ++at_;
    }
    *text = {from, static_cast<std::size_t>(at_ - from)};
    return !text->empty() && *text != "null";
  }

  bool ReadMember(std::string_view key) {
    if (key == "extFields") return ReadFields();
    std::string_view value;
    if (at_ == end_) return false;
    const bool quoted = *at_ == '"';
    if (quoted ? !ReadPlain(&value) : !ReadWord(&value)) return false;
    if (key == "code") return ParseWhole(value, &code_);
    if (key == "opaque") return ParseWhole(value, &out_->opaque);
    if (key == "flag") return value == "0";  // a request that wants an answer
    if (key == "version") return ParseWhole(value, &version_);
    if (key == "remark") return value.empty();
    return quoted && (key == "language" || key == "serializeTypeCurrentRPC");
  }

  bool ReadFields() {
    if (!Take('{')) return false;
    do {
      std::string_view key;
      if (!ReadPlain(&key) || !Take(':') || at_ == end_) return false;
      const bool is_letter = key.size() == 1 && key[0] >= 'a' && key[0] <= 'n';
      std::string_view value;
      if (is_letter && key[0] == 'i') {
        if (!ReadProperties(&value)) return false;
      } else if (*at_ == '"' ? !ReadPlain(&value) : !ReadWord(&value)) {
        return false;
      }
      if (is_letter && !TakeField(key[0], value, &seen_, out_)) return false;
    } while (Take(','));
    return Take('}');
  }

  // Separators of properties come as \u0001 and \u0002. Other escapes are rare here.
  bool ReadProperties(std::string_view* value) {
    if (*at_ != '"') return ReadWord(value);
    const char* from = ++at_;
    bool ascii = true;
    at_ = FindStringStop(at_, end_, '"', &ascii);
    if (at_ == end_) return false;
    if (*at_ == '"') {
      *value = {from, static_cast<std::size_t>(at_ - from)};
      ++at_;
      return ascii || IsValidUtf8(*value);
    }
    scratch_->clear();
    while (at_ != end_ && *at_ == '\\') {
      scratch_->append(from, at_);
      static constexpr std::string_view kStart = "\\u000";
      if (static_cast<std::size_t>(end_ - at_) < kStart.size() + 1) return false;
      if (std::memcmp(at_, kStart.data(), kStart.size()) != 0) return false;
      const char digit = at_[kStart.size()];
      if (digit != '1' && digit != '2') return false;
      scratch_->push_back(static_cast<char>(digit - '0'));
      at_ += kStart.size() + 1;
      from = at_;
      at_ = FindStringStop(at_, end_, '"', &ascii);
    }
    if (at_ == end_) return false;
    scratch_->append(from, at_);
    ++at_;
    *value = *scratch_;
    return IsValidUtf8(*value);
  }

  const char* at_;
  const char* const end_;
  std::string* const scratch_;
  PlainSend* const out_;
  std::int32_t code_ = 0;
  std::int32_t version_ = 0;
  std::uint32_t seen_ = 0;
};

// wire.md §1.4.
bool ReadBinary(std::string_view header, PlainSend* out) {
  constexpr std::size_t kFixedBytes = 13;
  constexpr std::size_t kFieldsAt = kFixedBytes + 8;  // behind an empty remark and their length
  if (header.size() < kFieldsAt) return false;
  if (LoadBe16(header.data()) != static_cast<std::uint16_t>(kSendMessageV2)) return false;
  out->opaque = static_cast<std::int32_t>(LoadBe32(header.data() + 5));
  const bool wants_answer = LoadBe32(header.data() + 9) == 0;
  const bool has_remark = LoadBe32(header.data() + kFixedBytes) != 0;
  if (!wants_answer || has_remark) return false;
  const std::size_t fields_bytes = LoadBe32(header.data() + kFixedBytes + 4);
  std::string_view rest = header.substr(kFieldsAt);
  if (rest.size() != fields_bytes) return false;
  std::uint32_t seen = 0;
  while (!rest.empty()) {
    if (rest.size() < 2) return false;
    const std::size_t key_bytes = LoadBe16(rest.data());
    if (rest.size() - 2 < key_bytes + 4) return false;
    const std::string_view key = rest.substr(2, key_bytes);
    const std::size_t value_bytes = LoadBe32(rest.data() + 2 + key_bytes);
    rest.remove_prefix(2 + key_bytes + 4);
    if (rest.size() < value_bytes) return false;
    const std::string_view value = rest.substr(0, value_bytes);
    rest.remove_prefix(value_bytes);
    if (!IsValidUtf8(key) || !IsValidUtf8(value)) return false;
    const bool is_letter = key.size() == 1 && key[0] >= 'a' && key[0] <= 'n';
    if (is_letter && !TakeField(key[0], value, &seen, out)) return false;
  }
  return (seen & kRequired) == kRequired;
}

}  // namespace

bool ReadPlainSend(std::string_view frame, std::string* scratch, PlainSend* out) {
  if (frame.size() < kPrefixBytes) return false;
  const std::uint32_t word = LoadBe32(frame.data() + kLengthBytes);
  const std::size_t header_bytes = word & 0xFFFFFF;
  if (header_bytes > frame.size() - kPrefixBytes) return false;
  *out = PlainSend();
  out->head = frame.substr(0, kPrefixBytes + header_bytes);
  out->body = frame.substr(kPrefixBytes + header_bytes);
  const std::string_view header = frame.substr(kPrefixBytes, header_bytes);
  out->serialize_type = static_cast<SerializeType>(word >> 24);
  if (out->serialize_type == SerializeType::kJson) return JsonReader(header, scratch, out).Read();
  if (out->serialize_type == SerializeType::kRocketmq) return ReadBinary(header, out);
  return false;
}

// ---- the answer ---------------------------------------------------------------------------------

namespace {

// Appends to room that was made before; the sizes of all pieces are known or bounded.
class Writer {
 public:
  explicit Writer(char* at) : at_(at) {}
  char* at() const { return at_; }
  void Raw(std::string_view text) {
    std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
  }
  void Number(std::int64_t value) { at_ = std::to_chars(at_, at_ + 20, value).ptr; }
  void Be16(std::uint16_t value) {
    StoreBe16(at_, value);
    at_ += 2;
  }
  void Be32(std::uint32_t value) {
    StoreBe32(at_, value);
    at_ += 4;
  }
  void Field(std::string_view key, std::string_view value) {
    Be16(static_cast<std::uint16_t>(key.size()));
    Raw(key);
    Be32(static_cast<std::uint32_t>(value.size()));
    Raw(value);
  }

 private:
  char* at_;
};

constexpr std::size_t kFixedTextMax = 320;  // of an answer, without the texts it carries

void WriteJson(const PlainSendAnswer& answer, Writer* out) {
  out->Raw("{\"code\":0,\"extFields\":{\"msgId\":\"");
  out->Raw(answer.msg_id);
  out->Raw("\",\"queueId\":\"");
  out->Number(answer.queue_id);
  out->Raw("\",\"queueOffset\":\"");
  out->Number(answer.queue_offset);
  if (!answer.transaction_id.empty()) {
    out->Raw("\",\"transactionId\":\"");
    out->Raw(answer.transaction_id);
  }
  if (!answer.msg_region.empty()) {
    out->Raw("\",\"MSG_REGION\":\"");
    out->Raw(answer.msg_region);
  }
  out->Raw(answer.trace_on
               ? "\",\"TRACE_ON\":\"true\"},\"flag\":1,\"language\":\"JAVA\",\"opaque\":"
               : "\",\"TRACE_ON\":\"false\"},\"flag\":1,\"language\":\"JAVA\",\"opaque\":");
  out->Number(answer.opaque);
  out->Raw(",\"serializeTypeCurrentRPC\":\"JSON\",\"version\":");
  out->Number(kServerVersion);
  out->Raw("}");
}

void WriteBinary(const PlainSendAnswer& answer, Writer* out) {
  std::array<char, 24> digits;
  const auto text = [&digits](std::int64_t value) {
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    return std::string_view(digits.data(), static_cast<std::size_t>(end - digits.data()));
  };
  out->Be16(0);                         // code
  out->Raw(std::string_view("\0", 1));  // language: JAVA
  out->Be16(static_cast<std::uint16_t>(kServerVersion));
  out->Be32(static_cast<std::uint32_t>(answer.opaque));
  out->Be32(static_cast<std::uint32_t>(kFlagResponse));
  out->Be32(0);  // remark
  char* const length_at = out->at();
  out->Be32(0);
  out->Field("msgId", answer.msg_id);
  out->Field("queueId", text(answer.queue_id));
  out->Field("queueOffset", text(answer.queue_offset));
  if (!answer.transaction_id.empty()) out->Field("transactionId", answer.transaction_id);
  if (!answer.msg_region.empty()) out->Field("MSG_REGION", answer.msg_region);
  out->Field("TRACE_ON", answer.trace_on ? "true" : "false");
  StoreBe32(length_at, static_cast<std::uint32_t>(out->at() - length_at - 4));
}

// Texts that need care in JSON.
void AppendTheLongWay(const PlainSendAnswer& answer, std::string* out) {
  Command response;
  response.opaque = answer.opaque;
  response.flag = kFlagResponse;
  response.serialize_type = answer.serialize_type;
  SendMessageResponse header;
  header.msg_id = answer.msg_id;
  header.queue_id = answer.queue_id;
  header.queue_offset = answer.queue_offset;
  header.transaction_id = answer.transaction_id;
  header.msg_region = answer.msg_region;
  header.trace_on = answer.trace_on;
  header.Encode(&response.ext);
  const Status encoded = EncodeFrameHead(response, 0, out);
  CHECK(encoded.ok()) << encoded;  // its texts came in one frame
}

}  // namespace

void AppendPlainSendAnswer(const PlainSendAnswer& answer, std::string* out) {
  const bool json = answer.serialize_type == SerializeType::kJson;
  if (json && (!IsPlainJsonText(answer.transaction_id) || !IsPlainJsonText(answer.msg_region))) {
    AppendTheLongWay(answer, out);
    return;
  }
  const std::size_t start = out->size();
  out->resize(start + kPrefixBytes + kFixedTextMax + answer.msg_id.size() +
              answer.transaction_id.size() + answer.msg_region.size());
  Writer writer(out->data() + start + kPrefixBytes);
  json ? WriteJson(answer, &writer) : WriteBinary(answer, &writer);
  const auto end = static_cast<std::size_t>(writer.at() - out->data());
  CHECK_LE(end, out->size());
  out->resize(end);
  const std::size_t header_bytes = end - start - kPrefixBytes;
  const auto type = static_cast<std::uint32_t>(answer.serialize_type);
  StoreBe32(out->data() + start, static_cast<std::uint32_t>(header_bytes + kLengthBytes));
  StoreBe32(out->data() + start + kLengthBytes,
            (type << 24) | static_cast<std::uint32_t>(header_bytes));
}

}  // namespace triad::remoting
