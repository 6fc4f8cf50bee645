#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <iterator>

#include "remoting/json.h"
#include "remoting/json_lexer.h"

namespace triad::remoting {
namespace {

void AppendEscaped(char c, std::string* out) {
  switch (c) {
    case '"': out->append("\\\""); return;
    case '\\': out->append("\\\\"); return;
    case '\b': out->append("\\b"); return;
    case '\f': out->append("\\f"); return;
    case '\n': out->append("\\n"); return;
    case '\r': out->append("\\r"); return;
    case '\t': out->append("\\t"); return;
    default: break;
  }
  static constexpr char kHex[] = "0123456789abcdef";
  out->append("\\u00");
  out->push_back(kHex[(static_cast<unsigned char>(c) >> 4) & 0xF]);
  out->push_back(kHex[static_cast<unsigned char>(c) & 0xF]);
}

// 1: must be escaped; 2: not ASCII.
constexpr std::array<std::uint8_t, 256> MakeEscapeClasses() {
  std::array<std::uint8_t, 256> classes{};
  for (std::size_t i = 0; i < 0x20; ++i) classes[i] = 1;
  for (std::size_t i = 0x80; i < 256; ++i) classes[i] = 2;
  classes['"'] = 1;
  classes['\\'] = 1;
  return classes;
}
constexpr auto kEscapeClasses = MakeEscapeClasses();

std::uint8_t ClassOf(char c) {
  return kEscapeClasses[static_cast<unsigned char>(c)];
}

template <typename Int>
void AppendNumber(Int value, std::string* out) {
  char digits[32];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), value).ptr;
  out->append(digits, end);
}

}  // namespace

bool IsPlainJsonText(std::string_view value) {
  const char* at = value.data();
  const char* const end = at + value.size();
#ifdef __SSE2__
  const __m128i quotes = _mm_set1_epi8('"');
  const __m128i slashes = _mm_set1_epi8('\\');
  const __m128i spaces = _mm_set1_epi8(' ');
  for (; end - at >= 16; at += 16) {
    const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    const __m128i special =
        _mm_or_si128(_mm_cmplt_epi8(block, spaces),  // signed: above 0x7F too
                     _mm_or_si128(_mm_cmpeq_epi8(block, quotes), _mm_cmpeq_epi8(block, slashes)));
    if (_mm_movemask_epi8(special) != 0) return false;
  }
#endif
  for (; at < end; ++at) {
    if (ClassOf(*at) != 0) return false;
  }
  return true;
}

void AppendJsonString(std::string_view value, std::string* out) {
  if (IsPlainJsonText(value)) {
    out->push_back('"');
    out->append(value);
    out->push_back('"');
    return;
  }
  std::uint8_t seen = 0;
  for (const char c : value) seen = static_cast<std::uint8_t>(seen | ClassOf(c));
  std::string repaired;
  if ((seen & 2) != 0 && !IsValidUtf8(value)) {
    // A reader refuses the whole text for one such byte; what is lost was not text.
    repaired.assign(value);
    for (char& c : repaired) {
      if (ClassOf(c) == 2) c = '?';
    }
    value = repaired;
  }
  out->push_back('"');
  std::size_t from = 0;
  for (std::size_t at = 0; (seen & 1) != 0 && at < value.size(); ++at) {
    if (ClassOf(value[at]) != 1) continue;
    out->append(value, from, at - from);
    AppendEscaped(value[at], out);
    from = at + 1;
  }
  out->append(value, from, value.size() - from);
  out->push_back('"');
}

void JsonWriter::BeforeValue() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (has_items_.empty()) return;
  if (has_items_.back()) out_.push_back(',');
  has_items_.back() = true;
}

JsonWriter& JsonWriter::BeginObject() {
  BeforeValue();
  out_.push_back('{');
  has_items_.push_back(false);
  return *this;
}

JsonWriter& JsonWriter::EndObject() {
  CHECK(!has_items_.empty());
  has_items_.pop_back();
  out_.push_back('}');
  return *this;
}

JsonWriter& JsonWriter::BeginArray() {
  BeforeValue();
  out_.push_back('[');
  has_items_.push_back(false);
  return *this;
}

JsonWriter& JsonWriter::EndArray() {
  CHECK(!has_items_.empty());
  has_items_.pop_back();
  out_.push_back(']');
  return *this;
}

JsonWriter& JsonWriter::Key(std::string_view key) {
  BeforeValue();
  AppendJsonString(key, &out_);
  out_.push_back(':');
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::RawKey(std::string_view raw) {
  BeforeValue();
  out_.append(raw);
  out_.push_back(':');
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::String(std::string_view value) {
  BeforeValue();
  AppendJsonString(value, &out_);
  return *this;
}

JsonWriter& JsonWriter::Int(std::int64_t value) {
  BeforeValue();
  AppendNumber(value, &out_);
  return *this;
}

JsonWriter& JsonWriter::Double(double value) {
  BeforeValue();
  if (!std::isfinite(value)) {  // JSON has no such number; the original writes null
    out_.append("null");
    return *this;
  }
  const std::size_t from = out_.size();
  AppendNumber(value, &out_);
  if (out_.find_first_of(".e", from) == std::string::npos) out_.append(".0");
  return *this;
}

JsonWriter& JsonWriter::Bool(bool value) {
  BeforeValue();
  out_.append(value ? "true" : "false");
  return *this;
}

JsonWriter& JsonWriter::Raw(std::string_view json) {
  BeforeValue();
  out_.append(json);
  return *this;
}

}  // namespace triad::remoting
