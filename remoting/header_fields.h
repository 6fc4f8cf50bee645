// HeaderFields: binds the members of a header struct to wire names, so that one table both reads
// and writes them.
//
// Pure; private to headers.cc and send_header.cc. Source: wire.md §1.2.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "common/status.h"
#include "remoting/command.h"

namespace triad::remoting {

template <typename H, typename T>
struct Field {
  std::string_view key;
  T H::*member;
  bool required;
};
template <typename H, typename T>
constexpr Field<H, T> Required(std::string_view key, T H::*member) {
  return {key, member, true};
}
template <typename H, typename T>
constexpr Field<H, T> Optional(std::string_view key, T H::*member) {
  return {key, member, false};
}

// Parses the text of a field into its member. Errors: kInvalidArgument naming the field.
Status ParseField(std::string_view key, std::string_view text, std::string* out);
Status ParseField(std::string_view key, std::string_view text, std::int32_t* out);
Status ParseField(std::string_view key, std::string_view text, std::int64_t* out);
Status ParseField(std::string_view key, std::string_view text, bool* out);
template <typename T>
Status ParseField(std::string_view key, std::string_view text, std::optional<T>* out) {
  T value{};
  TRIAD_RETURN_IF_ERROR(ParseField(key, text, &value));
  *out = std::move(value);
  return Status::Ok();
}
Status MissingField(std::string_view key);

inline void WriteField(std::string_view key, const std::string& value, bool required,
                       ExtFields* out) {
  if (required || !value.empty()) out->Add(key, value);
}
inline void WriteField(std::string_view key, std::int64_t value, bool /*required*/,
                       ExtFields* out) {
  out->AddInt(key, value);
}
inline void WriteField(std::string_view key, std::int32_t value, bool /*required*/,
                       ExtFields* out) {
  out->AddInt(key, value);
}
inline void WriteField(std::string_view key, bool value, bool /*required*/, ExtFields* out) {
  out->Add(key, value ? "true" : "false");
}
template <typename T>
void WriteField(std::string_view key, const std::optional<T>& value, bool required,
                ExtFields* out) {
  if (value.has_value()) WriteField(key, *value, required, out);
}

template <typename H, typename T>
Status DecodeField(const Field<H, T>& field, const ExtFields& fields, H* header) {
  const std::optional<std::string_view> text = fields.Find(field.key);
  if (!text) return field.required ? MissingField(field.key) : Status::Ok();
  if (text->empty() && !field.required) return Status::Ok();
  return ParseField(field.key, *text, &(header->*field.member));
}

template <typename H, typename Table>
Result<H> DecodeHeader(const Table& table, const ExtFields& fields) {
  H header;
  Status status;
  std::apply(
      [&](const auto&... field) {
        // Stops at the first failure: && does not evaluate what follows.
        static_cast<void>(((status = DecodeField(field, fields, &header)).ok() && ...));
      },
      table);
  if (!status.ok()) return status;
  return header;
}

template <typename H, typename Table>
void EncodeHeader(const H& header, const Table& table, ExtFields* out) {
  std::apply(
      [&](const auto&... field) {
        (WriteField(field.key, header.*field.member, field.required, out), ...);
      },
      table);
}

}  // namespace triad::remoting
