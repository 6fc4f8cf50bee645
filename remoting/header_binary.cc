// The ROCKETMQ binary header (wire.md §1.4).

#include <array>
#include <cstdint>
#include <limits>

#include "common/byte_order.h"
#include "remoting/header_codec.h"
#include "remoting/json_lexer.h"  // IsValidUtf8

namespace triad::remoting {
namespace {

// The index is the code on the wire (wire.md §1.3).
constexpr std::array<std::string_view, 14> kLanguages = {
    "JAVA",  "CPP",  "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY",
    "OTHER", "HTTP", "GO",     "PHP",    "OMS",    "RUST",   "NODE_JS"};
constexpr std::uint8_t kOther = 7;

std::uint8_t LanguageCode(std::string_view name) {
  for (std::size_t i = 0; i < kLanguages.size(); ++i) {
    if (kLanguages[i] == name) return static_cast<std::uint8_t>(i);
  }
  return kOther;
}

// Takes bytes from the front of a block; says what was cut short.
class BlockReader {
 public:
  explicit BlockReader(std::string_view bytes) : bytes_(bytes) {}
  bool empty() const { return bytes_.empty(); }

  Status Take(std::size_t count, std::string_view what, std::string_view* out) {
    if (count > bytes_.size()) {
      return Status::InvalidArgument("bad binary header: " + std::string(what) + " needs " +
                                     std::to_string(count) + " bytes, " +
                                     std::to_string(bytes_.size()) + " are left");
    }
    *out = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return Status::Ok();
  }
  Status TakeText(std::size_t count, std::string_view what, std::string_view* out) {
    TRIAD_RETURN_IF_ERROR(Take(count, what, out));
    if (IsValidUtf8(*out)) return Status::Ok();
    return Status::InvalidArgument("bad binary header: " + std::string(what) + " is not UTF-8");
  }
  // A block behind its 4-byte length.
  Status TakeBlock(std::string_view what, std::string_view* out) {
    std::string_view length;
    TRIAD_RETURN_IF_ERROR(Take(4, what, &length));
    return Take(LoadBe32(length.data()), what, out);
  }

 private:
  std::string_view bytes_;
};

Status DecodeFields(std::string_view block, ExtFields* out) {
  BlockReader reader(block);
  while (!reader.empty()) {
    std::string_view length;
    std::string_view key;
    std::string_view value;
    TRIAD_RETURN_IF_ERROR(reader.Take(2, "a key's length", &length));
    TRIAD_RETURN_IF_ERROR(reader.TakeText(LoadBe16(length.data()), "a key", &key));
    TRIAD_RETURN_IF_ERROR(reader.Take(4, "a value's length", &length));
    TRIAD_RETURN_IF_ERROR(reader.TakeText(LoadBe32(length.data()), "a value", &value));
    out->Add(key, value);
  }
  return Status::Ok();
}

}  // namespace

Status DecodeBinaryHeader(std::string_view header, Command* out) {
  static constexpr std::size_t kFixedBytes = 13;
  BlockReader reader(header);
  std::string_view fixed;
  TRIAD_RETURN_IF_ERROR(reader.Take(kFixedBytes, "the fixed part", &fixed));
  out->code = static_cast<std::int16_t>(LoadBe16(fixed.data()));
  const auto language = static_cast<std::uint8_t>(fixed[2]);
  out->language = kLanguages[language < kLanguages.size() ? language : kOther];
  out->version = static_cast<std::int16_t>(LoadBe16(fixed.data() + 3));
  out->opaque = static_cast<std::int32_t>(LoadBe32(fixed.data() + 5));
  out->flag = static_cast<std::int32_t>(LoadBe32(fixed.data() + 9));

  std::string_view remark;
  TRIAD_RETURN_IF_ERROR(reader.TakeBlock("the remark", &remark));
  if (!IsValidUtf8(remark)) {
    return Status::InvalidArgument("bad binary header: the remark is not UTF-8");
  }
  out->remark = remark;
  std::string_view fields;
  TRIAD_RETURN_IF_ERROR(reader.TakeBlock("extFields", &fields));
  out->ext.Reserve(16, fields.size());
  return DecodeFields(fields, &out->ext);
}

Status AppendBinaryHeader(const Command& command, std::string* out) {
  static constexpr std::int32_t kMin16 = std::numeric_limits<std::int16_t>::min();
  static constexpr std::int32_t kMax16 = std::numeric_limits<std::int16_t>::max();
  if (command.code < kMin16 || command.code > kMax16) {
    return Status::InvalidArgument("code " + std::to_string(command.code) +
                                   " cannot be sent in a binary header");
  }
  if (command.version < kMin16 || command.version > kMax16) {
    return Status::InvalidArgument("version " + std::to_string(command.version) +
                                   " cannot be sent in a binary header");
  }
  AppendBe16(out, static_cast<std::uint16_t>(command.code));
  out->push_back(static_cast<char>(LanguageCode(command.language)));
  AppendBe16(out, static_cast<std::uint16_t>(command.version));
  AppendBe32(out, static_cast<std::uint32_t>(command.opaque));
  AppendBe32(out, static_cast<std::uint32_t>(command.flag));
  AppendBe32(out, static_cast<std::uint32_t>(command.remark.size()));
  out->append(command.remark);
  const std::size_t length_at = out->size();
  AppendBe32(out, 0);
  bool fits = true;
  command.ext.Visit([&](std::string_view key, std::string_view value) {
    fits = key.size() <= static_cast<std::size_t>(kMax16);
    if (!fits) return false;
    AppendBe16(out, static_cast<std::uint16_t>(key.size()));
    out->append(key);
    AppendBe32(out, static_cast<std::uint32_t>(value.size()));
    out->append(value);
    return true;
  });
  if (!fits) {
    return Status::InvalidArgument("a header field's name is longer than 32767 bytes");
  }
  StoreBe32(out->data() + length_at, static_cast<std::uint32_t>(out->size() - length_at - 4));
  return Status::Ok();
}

}  // namespace triad::remoting
