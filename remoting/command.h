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

// The header fields of one command: few and short, so a flat list over one text. Later duplicates
// win on lookup of decoded input. Views are good until the next change.
class ExtFields {
 public:
  using Item = std::pair<std::string_view, std::string_view>;

  void Set(std::string_view key, std::string_view value);  // replaces
  void Set(std::string_view key, std::int64_t value);
  void SetBool(std::string_view key, bool value);
  void Add(std::string_view key, std::string_view value);  // no search
  void AddInt(std::string_view key, std::int64_t value);   // no search

  // Nothing when absent. An empty text counts as present here.
  std::optional<std::string_view> Find(std::string_view key) const;

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

  void Reserve(std::size_t count, std::size_t text_bytes);
  std::vector<Item> items() const;
  // In order, without a list: calls visit(key, value) until it returns false.
  template <typename Visitor>
  void Visit(Visitor&& visit) const {
    for (const Place& place : places_) {
      if (!visit(KeyOf(place), ValueOf(place))) return;
    }
  }
  std::size_t size() const { return places_.size(); }
  bool empty() const { return places_.empty(); }

 private:
  friend class CompactHeaderReader;  // fills places_ over a copy of the whole header

  struct Place {  // in text_
    std::uint32_t key_at;
    std::uint32_t key_bytes;
    std::uint32_t value_at;
    std::uint32_t value_bytes;
  };
  std::uint32_t Append(std::string_view text);  // where it stands
  std::string_view KeyOf(const Place& place) const {
    return {text_.data() + place.key_at, place.key_bytes};
  }
  std::string_view ValueOf(const Place& place) const {
    return {text_.data() + place.value_at, place.value_bytes};
  }

  std::string text_;
  std::vector<Place> places_;
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
