#include "remoting/json.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "remoting/json_lexer.h"

namespace triad::remoting {
namespace {

// Bounds memory: a value costs up to about 200 bytes, however short its text.
constexpr std::size_t kMaxValues = 1000000;

template <typename T>
std::optional<T> ParseNumber(std::string_view text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [ptr, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || ptr != end) return std::nullopt;
  return value;
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

bool EqualsIgnoringCase(std::string_view text, std::string_view lower) {
  return std::ranges::equal(text, lower, {}, [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
}

}  // namespace

class JsonParser {
 public:
  explicit JsonParser(std::string_view text) : lexer_(text) {}

  Status ParseDocument(Json* out) {
    TRIAD_RETURN_IF_ERROR(ParseValue(0, out));
    lexer_.SkipSpace();
    if (!lexer_.at_end()) return lexer_.Error("text behind the end of the value");
    return Status::Ok();
  }

 private:
  Status ParseValue(int depth, Json* out) {
    if (++values_ > kMaxValues) return lexer_.Error("too many values");
    lexer_.SkipSpace();
    switch (lexer_.Peek()) {
      case '{': return ParseObject(depth, out);
      case '[': return ParseArray(depth, out);
      case '"':
      case '\'': out->type_ = Json::Type::kString; return lexer_.ReadString(&out->text_);
      default: return ParseWord(out);
    }
  }

  Status ParseWord(Json* out) {
    std::string_view word;
    TRIAD_RETURN_IF_ERROR(lexer_.ReadWord(&word));
    if (word == "null") return Status::Ok();
    if (word == "true" || word == "false") {
      out->type_ = Json::Type::kBool;
      out->bool_ = word == "true";
      return Status::Ok();
    }
    // from_chars also knows "inf" and "nan", which are no JSON.
    const char first = word.front();
    if ((first != '-' && (first < '0' || first > '9')) || !ParseNumber<double>(word)) {
      return lexer_.Error("'" + std::string(word.substr(0, 40)) + "' is no value");
    }
    out->type_ = Json::Type::kNumber;
    out->text_ = word;
    return Status::Ok();
  }

  Status ParseArray(int depth, Json* out) {
    if (depth >= kMaxJsonDepth) return lexer_.Error("nested too deeply");
    out->type_ = Json::Type::kArray;
    TRIAD_RETURN_IF_ERROR(lexer_.Expect('['));
    lexer_.SkipSpace();
    while (!lexer_.Consume(']')) {
      TRIAD_RETURN_IF_ERROR(ParseValue(depth + 1, &out->items_.emplace_back()));
      lexer_.SkipSpace();
      if (!lexer_.Consume(',')) return lexer_.Expect(']');
      lexer_.SkipSpace();
    }
    return Status::Ok();
  }

  Status ParseObject(int depth, Json* out) {
    if (depth >= kMaxJsonDepth) return lexer_.Error("nested too deeply");
    out->type_ = Json::Type::kObject;
    TRIAD_RETURN_IF_ERROR(lexer_.Expect('{'));
    lexer_.SkipSpace();
    while (!lexer_.Consume('}')) {
      Json::Member& member = out->members_.emplace_back();
      TRIAD_RETURN_IF_ERROR(ParseKey(depth, &member));
      lexer_.SkipSpace();
      TRIAD_RETURN_IF_ERROR(lexer_.Expect(':'));
      TRIAD_RETURN_IF_ERROR(ParseValue(depth + 1, &member.value));
      lexer_.SkipSpace();
      if (!lexer_.Consume(',')) return lexer_.Expect('}');
      lexer_.SkipSpace();
    }
    return Status::Ok();
  }

  Status ParseKey(int depth, Json::Member* member) {
    switch (lexer_.Peek()) {
      case '"':
      case '\'': return lexer_.ReadString(&member->key);
      case '{': {
        const std::size_t from = lexer_.position();
        TRIAD_RETURN_IF_ERROR(ParseValue(depth + 1, &member->key_object));
        member->key = lexer_.Slice(from);
        return Status::Ok();
      }
      default: {
        std::string_view word;
        TRIAD_RETURN_IF_ERROR(lexer_.ReadWord(&word));
        member->key = word;
        return Status::Ok();
      }
    }
  }

  JsonLexer lexer_;
  std::size_t values_ = 0;
};

Result<Json> Json::Parse(std::string_view text) {
  Json json;
  TRIAD_RETURN_IF_ERROR(JsonParser(text).ParseDocument(&json));
  return json;
}

const Json& Json::operator[](std::string_view member) const {
  static const Json kNothing;
  // From the back: a later duplicate wins, as in the original.
  for (auto it = members_.rbegin(); it != members_.rend(); ++it) {
    if (it->key == member) return it->value;
  }
  return kNothing;
}

bool Json::Has(std::string_view member) const {
  return std::ranges::any_of(members_, [&](const Member& m) { return m.key == member; });
}

std::string Json::AsString(std::string_view fallback) const {
  switch (type_) {
    case Type::kString:
    case Type::kNumber: return text_;
    case Type::kBool: return bool_ ? "true" : "false";
    default: return std::string(fallback);
  }
}

std::int64_t Json::AsInt64(std::int64_t fallback) const {
  if (type_ != Type::kString && type_ != Type::kNumber) return fallback;
  const std::string_view text = Trim(text_);
  if (const auto whole = ParseNumber<std::int64_t>(text)) return *whole;
  const auto real = ParseNumber<double>(text);
  // 2^63 is the first double beyond int64; a NaN fails both comparisons.
  if (!real || !(*real >= -9223372036854775808.0) || !(*real < 9223372036854775808.0)) {
    return fallback;
  }
  return static_cast<std::int64_t>(*real);
}

double Json::AsDouble(double fallback) const {
  if (type_ != Type::kString && type_ != Type::kNumber) return fallback;
  return ParseNumber<double>(Trim(text_)).value_or(fallback);
}

bool Json::AsBool(bool fallback) const {
  switch (type_) {
    case Type::kBool: return bool_;
    case Type::kString:
      if (EqualsIgnoringCase(text_, "true")) return true;
      if (EqualsIgnoringCase(text_, "false")) return false;
      return fallback;
    case Type::kNumber: return AsInt64(0) != 0;
    default: return fallback;
  }
}

void Json::WriteTo(JsonWriter* writer) const {
  switch (type_) {
    case Type::kNull: writer->Raw("null"); return;
    case Type::kBool: writer->Bool(bool_); return;
    case Type::kNumber: writer->Raw(text_); return;
    case Type::kString: writer->String(text_); return;
    case Type::kArray:
      writer->BeginArray();
      for (const Json& item : items_) item.WriteTo(writer);
      writer->EndArray();
      return;
    case Type::kObject: break;
  }
  writer->BeginObject();
  for (const Member& member : members_) {
    if (member.key_object.is_null()) {
      writer->Key(member.key);
    } else {
      JsonWriter key;
      member.key_object.WriteTo(&key);
      writer->RawKey(key.text());
    }
    member.value.WriteTo(writer);
  }
  writer->EndObject();
}

}  // namespace triad::remoting
