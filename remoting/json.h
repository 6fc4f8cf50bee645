// Json: the fastjson dialect in and out.
//
// In: standard JSON plus unquoted and numeric keys, single quotes, OBJECT keys ({{"a":1}:2}),
// trailing white space, unescaped control characters. Out: compact, members in the order they were
// added, strings escaped. Pure. Bounds: depth 64, a million values. Source: wire.md §1.6, admin.md
// §1.1.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/status.h"

namespace triad::remoting {

class JsonWriter;

// A parsed value. Copyable; small documents only.
class Json {
 public:
  enum class Type { kNull, kBool, kNumber, kString, kArray, kObject };

  // Errors: kInvalidArgument with what was wrong and at which byte.
  static Result<Json> Parse(std::string_view text);

  Type type() const { return type_; }
  bool is_null() const { return type_ == Type::kNull; }
  bool is_object() const { return type_ == Type::kObject; }
  bool is_array() const { return type_ == Type::kArray; }

  // Objects. Missing member: a null Json. A number as key is its text; an object as key is in
  // key_object().
  const Json& operator[](std::string_view member) const;
  bool Has(std::string_view member) const;
  struct Member;
  const std::vector<Member>& members() const { return members_; }
  const std::vector<Json>& items() const { return items_; }  // arrays

  // Lenient scalars: numbers as strings and strings as numbers; `fallback` when neither fits.
  std::string AsString(std::string_view fallback = {}) const;
  std::int64_t AsInt64(std::int64_t fallback = 0) const;
  double AsDouble(double fallback = 0) const;
  bool AsBool(bool fallback = false) const;

  // The value again, compact.
  void WriteTo(JsonWriter* writer) const;

 private:
  friend class JsonParser;
  Type type_ = Type::kNull;
  bool bool_ = false;
  std::string text_;  // string value, or the number's text
  std::vector<Json> items_;
  std::vector<Member> members_;
};

struct Json::Member {
  std::string key;  // for an object key: its text as it stood
  Json key_object;  // null unless the key was an object
  Json value;
};

// Writes compact JSON into a string. Keys in call order; callers follow alphabetical order
// (admin.md R1).
//   JsonWriter w; w.BeginObject(); w.Key("a").Int(1); w.EndObject();
class JsonWriter {
 public:
  JsonWriter& BeginObject();
  JsonWriter& EndObject();
  JsonWriter& BeginArray();
  JsonWriter& EndArray();
  JsonWriter& Key(std::string_view key);     // "key":
  JsonWriter& RawKey(std::string_view raw);  // raw:   (object keys of the dialect)
  JsonWriter& String(std::string_view value);
  JsonWriter& Int(std::int64_t value);
  JsonWriter& Double(double value);  // 0.0, 12.5
  JsonWriter& Bool(bool value);
  JsonWriter& Raw(std::string_view json);  // a finished value
  const std::string& text() const { return out_; }
  std::string Take() { return std::move(out_); }

 private:
  void BeforeValue();
  std::string out_;
  std::vector<bool> has_items_;
  bool after_key_ = false;
};

// Appends `value` with quotes and escapes.
void AppendJsonString(std::string_view value, std::string* out);
// Whether it may stand between quotes as it is: ASCII, and nothing to escape.
bool IsPlainJsonText(std::string_view value);

}  // namespace triad::remoting
