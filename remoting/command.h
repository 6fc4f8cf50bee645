// Command: one RocketMQ remoting request or response, as values.
//
// Pure. Source: wire.md §1.2. Bodies are opaque bytes.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/status.h"

namespace triad::remoting {

enum class SerializeType : std::uint8_t { kJson = 0, kRocketmq = 1 };

inline constexpr std::int32_t kFlagResponse = 1;
inline constexpr std::int32_t kFlagOneway = 2;
inline constexpr int kServerVersion = 479;  // V5_3_3: wire.md §1.5
inline constexpr std::string_view kServerVersionName = "V5_3_3";

// The header fields of one command: few and short, so a flat list. Later duplicates win on lookup
// of decoded input.
class ExtFields {
 public:
  using Item = std::pair<std::string, std::string>;

  void Set(std::string_view key, std::string value);  // replaces
  void Set(std::string_view key, std::int64_t value);
  void SetBool(std::string_view key, bool value);
  void Add(std::string key, std::string value) {
    items_.emplace_back(std::move(key), std::move(value));
  }  // no search

  // Null when absent. An empty string counts as present here.
  const std::string* Find(std::string_view key) const;

  // The required forms. Errors: kInvalidArgument naming the field when absent or not parsable.
  Result<std::string> GetString(std::string_view key) const;
  Result<std::int64_t> GetInt64(std::string_view key) const;
  Result<std::int32_t> GetInt32(std::string_view key) const;

  // The optional forms: `fallback` when absent or empty; kInvalidArgument when not parsable.
  std::string StringOr(std::string_view key, std::string_view fallback) const;
  Result<std::int64_t> Int64Or(std::string_view key, std::int64_t fallback) const;
  Result<std::int32_t> Int32Or(std::string_view key, std::int32_t fallback) const;
  bool BoolOr(std::string_view key,
              bool fallback) const;  // "true" in any case is true, all else false

  void Reserve(std::size_t count) { items_.reserve(count); }
  const std::vector<Item>& items() const { return items_; }
  bool empty() const { return items_.empty(); }

 private:
  std::vector<Item> items_;
};

struct Command {
  std::int32_t code = 0;
  std::string language = "JAVA";
  std::int32_t version = kServerVersion;
  std::int32_t opaque = 0;
  std::int32_t flag = 0;
  std::string remark;  // empty = null
  ExtFields ext;
  std::string body;
  SerializeType serialize_type = SerializeType::kJson;

  bool is_response() const { return (flag & kFlagResponse) != 0; }
  bool is_oneway() const { return (flag & kFlagOneway) != 0; }

  static Command Request(std::int32_t code);
  // The answer to `request`: its opaque and encoding, response bit set.
  static Command ResponseTo(const Command& request, std::int32_t code, std::string remark = {});
};

}  // namespace triad::remoting
