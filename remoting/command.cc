#include "remoting/command.h"

#include <algorithm>
#include <charconv>

#include "remoting/header_fields.h"

namespace triad::remoting {
namespace {

template <typename Int>
Status ParseInteger(std::string_view key, const std::string& text, Int* out) {
  const char* end = text.data() + text.size();
  const auto [ptr, error] = std::from_chars(text.data(), end, *out);
  if (error == std::errc() && ptr == end && !text.empty()) return Status::Ok();
  std::string message = "field ";
  message += key;
  message += error == std::errc::result_out_of_range ? " is out of range: '" : " is no integer: '";
  message += text.substr(0, 40);
  message += '\'';
  return Status::InvalidArgument(std::move(message));
}

// C++ clients write 1 and 0.
bool IsTrue(std::string_view text) {
  static constexpr std::string_view kTrue = "true";
  if (text == "1") return true;
  return std::ranges::equal(text, kTrue, [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  });
}

}  // namespace

Status MissingField(std::string_view key) {
  return Status::InvalidArgument("missing required field " + std::string(key));
}

Status ParseField(std::string_view /*key*/, const std::string& text, std::string* out) {
  *out = text;
  return Status::Ok();
}

Status ParseField(std::string_view key, const std::string& text, std::int32_t* out) {
  return ParseInteger(key, text, out);
}

Status ParseField(std::string_view key, const std::string& text, std::int64_t* out) {
  return ParseInteger(key, text, out);
}

Status ParseField(std::string_view /*key*/, const std::string& text, bool* out) {
  *out = IsTrue(text);
  return Status::Ok();
}

void ExtFields::Set(std::string_view key, std::string value) {
  for (Item& item : items_) {
    if (item.first != key) continue;
    item.second = std::move(value);
    return;
  }
  items_.emplace_back(std::string(key), std::move(value));
}

void ExtFields::Set(std::string_view key, std::int64_t value) {
  Set(key, std::to_string(value));
}

void ExtFields::SetBool(std::string_view key, bool value) {
  Set(key, std::string(value ? "true" : "false"));
}

const std::string* ExtFields::Find(std::string_view key) const {
  for (auto it = items_.rbegin(); it != items_.rend(); ++it) {
    if (it->first == key) return &it->second;
  }
  return nullptr;
}

Result<std::string> ExtFields::GetString(std::string_view key) const {
  const std::string* text = Find(key);
  if (text == nullptr) return MissingField(key);
  return *text;
}

Result<std::int64_t> ExtFields::GetInt64(std::string_view key) const {
  const std::string* text = Find(key);
  if (text == nullptr) return MissingField(key);
  std::int64_t value = 0;
  TRIAD_RETURN_IF_ERROR(ParseInteger(key, *text, &value));
  return value;
}

Result<std::int32_t> ExtFields::GetInt32(std::string_view key) const {
  const std::string* text = Find(key);
  if (text == nullptr) return MissingField(key);
  std::int32_t value = 0;
  TRIAD_RETURN_IF_ERROR(ParseInteger(key, *text, &value));
  return value;
}

std::string ExtFields::StringOr(std::string_view key, std::string_view fallback) const {
  const std::string* text = Find(key);
  return text == nullptr || text->empty() ? std::string(fallback) : *text;
}

Result<std::int64_t> ExtFields::Int64Or(std::string_view key, std::int64_t fallback) const {
  const std::string* text = Find(key);
  if (text == nullptr || text->empty()) return fallback;
  return GetInt64(key);
}

Result<std::int32_t> ExtFields::Int32Or(std::string_view key, std::int32_t fallback) const {
  const std::string* text = Find(key);
  if (text == nullptr || text->empty()) return fallback;
  return GetInt32(key);
}

bool ExtFields::BoolOr(std::string_view key, bool fallback) const {
  const std::string* text = Find(key);
  return text == nullptr || text->empty() ? fallback : IsTrue(*text);
}

Command Command::Request(std::int32_t code) {
  Command command;
  command.code = code;
  return command;
}

Command Command::ResponseTo(const Command& request, std::int32_t code, std::string remark) {
  Command response;
  response.code = code;
  response.opaque = request.opaque;
  response.flag = kFlagResponse;
  response.remark = std::move(remark);
  response.serialize_type = request.serialize_type;
  return response;
}

}  // namespace triad::remoting
