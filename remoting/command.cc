#include "remoting/command.h"

#include <glog/logging.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "remoting/header_fields.h"

namespace triad::remoting {
namespace {

template <typename Int>
Status ParseInteger(std::string_view key, std::string_view text, Int* out) {
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

Status ParseField(std::string_view /*key*/, std::string_view text, std::string* out) {
  *out = text;
  return Status::Ok();
}

Status ParseField(std::string_view key, std::string_view text, std::int32_t* out) {
  return ParseInteger(key, text, out);
}

Status ParseField(std::string_view key, std::string_view text, std::int64_t* out) {
  return ParseInteger(key, text, out);
}

Status ParseField(std::string_view /*key*/, std::string_view text, bool* out) {
  *out = IsTrue(text);
  return Status::Ok();
}

std::uint32_t ExtFields::Append(std::string_view text) {
  const std::size_t at = text_.size();
  CHECK_LE(at + text.size(), std::numeric_limits<std::uint32_t>::max());
  text_.append(text);
  return static_cast<std::uint32_t>(at);
}

void ExtFields::Add(std::string_view key, std::string_view value) {
  Place place{};
  place.key_bytes = static_cast<std::uint32_t>(key.size());
  place.value_bytes = static_cast<std::uint32_t>(value.size());
  place.key_at = Append(key);
  place.value_at = Append(value);
  places_.push_back(place);
}

void ExtFields::AddInt(std::string_view key, std::int64_t value) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  Add(key, {digits.data(), static_cast<std::size_t>(end - digits.data())});
}

void ExtFields::Set(std::string_view key, std::string_view value) {
  for (Place& place : places_) {
    if (KeyOf(place) != key) continue;
    place.value_bytes = static_cast<std::uint32_t>(value.size());
    place.value_at = Append(value);
    return;
  }
  Add(key, value);
}

void ExtFields::Set(std::string_view key, std::int64_t value) {
  Set(key, std::string_view(std::to_string(value)));
}

void ExtFields::SetBool(std::string_view key, bool value) {
  Set(key, std::string_view(value ? "true" : "false"));
}

std::optional<std::string_view> ExtFields::Find(std::string_view key) const {
  for (auto it = places_.rbegin(); it != places_.rend(); ++it) {
    if (KeyOf(*it) == key) return ValueOf(*it);
  }
  return std::nullopt;
}

void ExtFields::Reserve(std::size_t count, std::size_t text_bytes) {
  places_.reserve(count);
  text_.reserve(text_bytes);
}

std::vector<ExtFields::Item> ExtFields::items() const {
  std::vector<Item> items;
  items.reserve(places_.size());
  for (const Place& place : places_) items.emplace_back(KeyOf(place), ValueOf(place));
  return items;
}

Result<std::string> ExtFields::GetString(std::string_view key) const {
  const std::optional<std::string_view> text = Find(key);
  if (!text) return MissingField(key);
  return std::string(*text);
}

Result<std::int64_t> ExtFields::GetInt64(std::string_view key) const {
  const std::optional<std::string_view> text = Find(key);
  if (!text) return MissingField(key);
  std::int64_t value = 0;
  TRIAD_RETURN_IF_ERROR(ParseInteger(key, *text, &value));
  return value;
}

Result<std::int32_t> ExtFields::GetInt32(std::string_view key) const {
  const std::optional<std::string_view> text = Find(key);
  if (!text) return MissingField(key);
  std::int32_t value = 0;
  TRIAD_RETURN_IF_ERROR(ParseInteger(key, *text, &value));
  return value;
}

std::string ExtFields::StringOr(std::string_view key, std::string_view fallback) const {
  const std::optional<std::string_view> text = Find(key);
  return !text || text->empty() ? std::string(fallback) : std::string(*text);
}

Result<std::int64_t> ExtFields::Int64Or(std::string_view key, std::int64_t fallback) const {
  const std::optional<std::string_view> text = Find(key);
  if (!text || text->empty()) return fallback;
  return GetInt64(key);
}

Result<std::int32_t> ExtFields::Int32Or(std::string_view key, std::int32_t fallback) const {
  const std::optional<std::string_view> text = Find(key);
  if (!text || text->empty()) return fallback;
  return GetInt32(key);
}

bool ExtFields::BoolOr(std::string_view key, bool fallback) const {
  const std::optional<std::string_view> text = Find(key);
  return !text || text->empty() ? fallback : IsTrue(*text);
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
