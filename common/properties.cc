#include "common/properties.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace triad {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool IsBlank(char c) {
  return c == ' ' || c == '\t' || c == '\f';
}

bool IsLineEnd(char c) {
  return c == '\n' || c == '\r';
}

// Yields logical lines: comments and blank lines dropped, continuations joined, escapes kept.
class LineReader {
 public:
  explicit LineReader(std::string_view text) : text_(text) {}

  struct Line {
    std::string text;
    int number = 0;  // of its first physical line
  };

  std::optional<Line> Next() {
    while (at_ < text_.size()) {
      SkipBlanks();
      const int number = line_;
      if (at_ < text_.size() && (text_[at_] == '#' || text_[at_] == '!')) {
        SkipPhysicalLine();
        continue;
      }
      std::string joined = ReadJoined();
      if (!joined.empty()) return Line{std::move(joined), number};
    }
    return std::nullopt;
  }

 private:
  void SkipBlanks() {
    while (at_ < text_.size() && IsBlank(text_[at_])) ++at_;
  }

  void SkipPhysicalLine() {
    while (at_ < text_.size() && !IsLineEnd(text_[at_])) ++at_;
    SkipLineEnd();
  }

  // LF, CR and CRLF each end one line.
  void SkipLineEnd() {
    if (at_ >= text_.size()) return;
    if (text_[at_] == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') ++at_;
    ++at_;
    ++line_;
  }

  std::string ReadJoined() {
    std::string joined;
    bool backslash = false;  // an odd number of backslashes stands before at_
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (!IsLineEnd(c)) {
        joined.push_back(c);
        backslash = c == '\\' && !backslash;
        ++at_;
        continue;
      }
      SkipLineEnd();
      if (!backslash) return joined;
      joined.pop_back();
      backslash = false;
      SkipBlanks();
    }
    if (backslash) joined.pop_back();  // a lone backslash at the end of the file
    return joined;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
};

void AppendUtf8(std::uint32_t code_point, std::string* out) {
  const auto put = [out](std::uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) return put(code_point);
  if (code_point < 0x800) {
    put(0xc0 | (code_point >> 6));
    return put(0x80 | (code_point & 0x3f));
  }
  if (code_point < 0x10000) {
    put(0xe0 | (code_point >> 12));
  } else {
    put(0xf0 | (code_point >> 18));
    put(0x80 | ((code_point >> 12) & 0x3f));
  }
  put(0x80 | ((code_point >> 6) & 0x3f));
  put(0x80 | (code_point & 0x3f));
}

std::optional<std::uint32_t> ParseHex4(std::string_view digits) {
  if (digits.size() < 4) return std::nullopt;
  std::uint32_t value = 0;
  for (const char c : digits.substr(0, 4)) {
    std::uint32_t digit = 0;
    if (c >= '0' && c <= '9') {
      digit = static_cast<std::uint32_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      digit = static_cast<std::uint32_t>(c - 'a' + 10);
    } else if (c >= 'A' && c <= 'F') {
      digit = static_cast<std::uint32_t>(c - 'A' + 10);
    } else {
      return std::nullopt;
    }
    value = value * 16 + digit;
  }
  return value;
}

bool IsHighSurrogate(std::uint32_t unit) {
  return unit >= 0xd800 && unit < 0xdc00;
}

bool IsLowSurrogate(std::uint32_t unit) {
  return unit >= 0xdc00 && unit < 0xe000;
}

// Decodes the \u at `at` (of the 'u') and moves `at` behind it; joins a surrogate pair.
bool UnescapeUnicode(std::string_view raw, std::size_t* at, std::string* out) {
  constexpr std::uint32_t kReplacement = 0xfffd;
  const std::optional<std::uint32_t> unit = ParseHex4(raw.substr(*at + 1));
  if (!unit) return false;
  *at += 5;
  std::uint32_t code_point = *unit;
  if (IsHighSurrogate(*unit) && raw.substr(*at, 2) == "\\u") {
    const std::optional<std::uint32_t> low = ParseHex4(raw.substr(*at + 2));
    if (low && IsLowSurrogate(*low)) {
      code_point = 0x10000 + ((*unit - 0xd800) << 10) + (*low - 0xdc00);
      *at += 6;
    }
  }
  const bool is_half = IsHighSurrogate(code_point) || IsLowSurrogate(code_point);
  AppendUtf8(is_half ? kReplacement : code_point, out);
  return true;
}

// nullopt: a \u without four hexadecimal digits.
std::optional<std::string> Unescape(std::string_view raw) {
  std::string out;
  out.reserve(raw.size());
  for (std::size_t at = 0; at < raw.size();) {
    if (raw[at] != '\\') {
      out.push_back(raw[at++]);
      continue;
    }
    if (++at == raw.size()) break;
    switch (raw[at]) {
      case 'u':
        if (!UnescapeUnicode(raw, &at, &out)) return std::nullopt;
        continue;
      case 't': out.push_back('\t'); break;
      case 'n': out.push_back('\n'); break;
      case 'r': out.push_back('\r'); break;
      case 'f': out.push_back('\f'); break;
      default: out.push_back(raw[at]);
    }
    ++at;
  }
  return out;
}

struct RawPair {
  std::string_view key;
  std::string_view value;
};

RawPair Split(std::string_view line) {
  std::size_t key_end = 0;
  bool escaped = false;
  for (; key_end < line.size(); ++key_end) {
    const char c = line[key_end];
    if (!escaped && (c == '=' || c == ':' || IsBlank(c))) break;
    escaped = c == '\\' && !escaped;
  }
  std::size_t value = key_end;
  while (value < line.size() && IsBlank(line[value])) ++value;
  if (value < line.size() && (line[value] == '=' || line[value] == ':')) ++value;
  while (value < line.size() && IsBlank(line[value])) ++value;
  return {line.substr(0, key_end), line.substr(value)};
}

}  // namespace

Result<Properties> Properties::Parse(std::string_view text) {
  Properties properties;
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    properties.had_bom_ = true;
    text.remove_prefix(kByteOrderMark.size());
  }
  LineReader reader(text);
  while (std::optional<LineReader::Line> line = reader.Next()) {
    const RawPair raw = Split(line->text);
    std::optional<std::string> key = Unescape(raw.key);
    std::optional<std::string> value = Unescape(raw.value);
    if (!key || !value) {
      return Status::InvalidArgument("line " + std::to_string(line->number) +
                                     ": \\u must be followed by four hexadecimal digits");
    }
    properties.Set(std::move(*key), std::move(*value), line->number);
  }
  return properties;
}

void Properties::Set(std::string key, std::string value, int line) {
  const auto found = entries_.find(key);
  if (found != entries_.end()) overwritten_.push_back({key, found->second.line, line});
  entries_[std::move(key)] = Entry{std::move(value), line};
}

const Properties::Entry* Properties::Find(const std::string& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &found->second;
}

namespace {

std::string Escaped(std::string_view text, std::string_view specials) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\t': out += "\\t"; continue;
      case '\n': out += "\\n"; continue;
      case '\r': out += "\\r"; continue;
      case '\f': out += "\\f"; continue;
      default: break;
    }
    const bool leading_blank = c == ' ' && out.empty();
    if (leading_blank || specials.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string Assignment(const std::string& key, const std::string& value) {
  return Escaped(key, "\\=:#! ") + "=" + Escaped(value, "\\") + "\n";
}

bool Continues(std::string_view line) {
  std::size_t backslashes = 0;
  while (backslashes < line.size() && line[line.size() - 1 - backslashes] == '\\') ++backslashes;
  return backslashes % 2 == 1;
}

}  // namespace

Result<std::string> SetInPropertiesText(std::string_view text,
                                        const std::map<std::string, std::string>& changes) {
  const Result<Properties> parsed = Properties::Parse(text);
  if (!parsed.ok()) return parsed.status();
  std::map<int, const std::map<std::string, std::string>::value_type*> by_line;
  std::string appended;
  for (const auto& change : changes) {
    const Properties::Entry* entry = parsed->Find(change.first);
    if (entry != nullptr) {
      by_line[entry->line] = &change;
    } else {
      appended += Assignment(change.first, change.second);
    }
  }
  std::string out;
  bool replaced = false;  // the line before was replaced, and it continues on this one
  bool open = false;      // the line before is there, and it continues on this one
  for (int line = 1; !text.empty(); ++line) {
    std::size_t end = text.find_first_of("\r\n");
    if (end == std::string_view::npos) end = text.size();
    const std::string_view content = text.substr(0, end);
    const std::size_t line_end = text.substr(end, 2) == "\r\n" ? 2 : (end < text.size() ? 1 : 0);
    const auto change = by_line.find(line);
    if (change != by_line.end()) out += Assignment(change->second->first, change->second->second);
    if (change == by_line.end() && !replaced) {
      out.append(text.substr(0, end + line_end));
      if (line_end == 0) out += '\n';
    }
    open = change == by_line.end() && !replaced && Continues(content);
    replaced = (replaced || change != by_line.end()) && Continues(content);
    text.remove_prefix(end + line_end);
  }
  // What is appended must not become the rest of a last line that continues on nothing. Behind a CR
  // the first LF only completes its line end.
  if (open && !appended.empty()) out += out.ends_with('\r') ? "\n\n" : "\n";
  return out + appended;
}

}  // namespace triad
