#include "remoting/json_lexer.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace triad::remoting {
namespace {

// What ends a bare word.
bool IsPunctuation(char c) {
  return c == ',' || c == ':' || c == '}' || c == ']' || c == '{' || c == '[' || c == '"' ||
         c == '\'';
}

void AppendUtf8(unsigned code, std::string* out) {
  const auto put = [out](unsigned byte) { out->push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | (code >> 6));
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3F));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

// Bytes of the UTF-8 sequence that starts at `at`, 0 when it is none.
std::size_t SequenceLength(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return 1;
  std::size_t length = 0;
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    if (first == 0xE0) low = 0xA0;   // no overlong forms
    if (first == 0xED) high = 0x9F;  // no surrogates
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;  // nothing above U+10FFFF
  } else {
    return 0;
  }
  if (text.size() - at < length) return 0;
  if (byte(at + 1) < low || byte(at + 1) > high) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return 0;
  }
  return length;
}

}  // namespace

bool IsValidUtf8(std::string_view text) {
  std::size_t at = 0;
  for (std::uint64_t eight = 0; text.size() - at >= sizeof(eight); at += sizeof(eight)) {
    std::memcpy(&eight, text.data() + at, sizeof(eight));
    if ((eight & 0x8080808080808080u) != 0) break;
  }
  while (at < text.size()) {
    const std::size_t length = SequenceLength(text, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

Status JsonLexer::Error(std::string_view what) const {
  std::string message = "bad JSON at byte " + std::to_string(at_) + ": ";
  message += what;
  if (at_end()) message += " (the text ends here)";
  return Status::InvalidArgument(std::move(message));
}

bool JsonLexer::SkipPlain(char quote, bool* ascii) {
  const char* const end = text_.data() + text_.size();
  at_ = static_cast<std::size_t>(FindStringStop(text_.data() + at_, end, quote, ascii) -
                                 text_.data());
  return !at_end();
}

Status JsonLexer::ReadString(std::string* scratch, std::string_view* out) {
  const char quote = Peek();
  if (quote != '"' && quote != '\'') return Error("expected a string");
  ++at_;
  const std::size_t from = at_;
  bool ascii = true;
  if (!SkipPlain(quote, &ascii)) return Error("a string does not end");
  if (text_[at_] == quote) {
    *out = Slice(from);
    ++at_;
  } else {
    scratch->assign(text_, from, at_ - from);
    TRIAD_RETURN_IF_ERROR(ReadEscaped(quote, scratch, &ascii));
    *out = *scratch;
  }
  if (!ascii && !IsValidUtf8(*out)) return Error("a string is not UTF-8");
  return Status::Ok();
}

Status JsonLexer::ReadString(std::string* out) {
  std::string_view plain;
  TRIAD_RETURN_IF_ERROR(ReadString(out, &plain));
  if (plain.data() != out->data()) out->assign(plain);
  return Status::Ok();
}

// At a backslash: the rest of the string, and the quote that ends it. What an escape stands for is
// always whole UTF-8; *ascii speaks of the other bytes.
Status JsonLexer::ReadEscaped(char quote, std::string* out, bool* ascii) {
  // Up to the next quote is a good guess at what will follow.
  out->reserve(out->size() + std::min(text_.find(quote, at_), text_.size()) - at_);
  while (text_[at_] != quote) {
    TRIAD_RETURN_IF_ERROR(ReadEscape(out));
    const std::size_t from = at_;
    if (!SkipPlain(quote, ascii)) return Error("a string does not end");
    out->append(text_, from, at_ - from);
  }
  ++at_;
  return Status::Ok();
}

Status JsonLexer::ReadEscape(std::string* out) {
  ++at_;  // the backslash
  if (at_end()) return Error("a string does not end");
  const char c = text_[at_];
  switch (c) {
    case '"':
    case '\'':
    case '\\':
    case '/': out->push_back(c); break;
    case 'b': out->push_back('\b'); break;
    case 'f': out->push_back('\f'); break;
    case 'n': out->push_back('\n'); break;
    case 'r': out->push_back('\r'); break;
    case 't': out->push_back('\t'); break;
    case 'v': out->push_back('\v'); break;
    case 'u': ++at_; return ReadUnicodeEscape(out);
    default: return Error("unknown escape");
  }
  ++at_;
  return Status::Ok();
}

bool JsonLexer::ReadHex4(unsigned* out) {
  if (text_.size() - at_ < 4) return false;
  unsigned value = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = text_[at_ + static_cast<std::size_t>(i)];
    unsigned digit = 0;
    if (c >= '0' && c <= '9') {
      digit = static_cast<unsigned>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      digit = static_cast<unsigned>(c - 'a') + 10;
    } else if (c >= 'A' && c <= 'F') {
      digit = static_cast<unsigned>(c - 'A') + 10;
    } else {
      return false;
    }
    value = value * 16 + digit;
  }
  at_ += 4;
  *out = value;
  return true;
}

Status JsonLexer::ReadUnicodeEscape(std::string* out) {
  unsigned code = 0;
  if (!ReadHex4(&code)) return Error("\\u needs four hexadecimal digits");
  if (code >= 0xD800 && code <= 0xDBFF && text_.substr(at_, 2) == "\\u") {
    const std::size_t back = at_;
    at_ += 2;
    unsigned low = 0;
    if (!ReadHex4(&low)) return Error("\\u needs four hexadecimal digits");
    if (low >= 0xDC00 && low <= 0xDFFF) {
      AppendUtf8(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00), out);
      return Status::Ok();
    }
    at_ = back;  // not its pair: read on its own next
  }
  if (code >= 0xD800 && code <= 0xDFFF) {
    out->push_back('?');
  } else {
    AppendUtf8(code, out);
  }
  return Status::Ok();
}

Status JsonLexer::ReadWord(std::string_view* out) {
  const std::size_t from = at_;
  while (!at_end() && !IsSpace(text_[at_]) && !IsPunctuation(text_[at_])) {
    const auto c = static_cast<unsigned char>(text_[at_]);
    if (c < 0x20 || c > 0x7E) return Error("a stray byte outside a string");
    ++at_;
  }
  if (at_ == from) return Error("expected a value");
  *out = Slice(from);
  return Status::Ok();
}

Status JsonLexer::SkipValue(int depth) {
  SkipSpace();
  const char c = Peek();
  if (c == '{' || c == '[') {
    if (depth >= kMaxJsonDepth) return Error("nested too deeply");
    return SkipContainer(c, depth);
  }
  if (c == '"' || c == '\'') {
    std::string ignored;
    return ReadString(&ignored);
  }
  std::string_view word;
  return ReadWord(&word);
}

Status JsonLexer::SkipContainer(char open, int depth) {
  const char close = open == '{' ? '}' : ']';
  ++at_;
  SkipSpace();
  while (!Consume(close)) {
    if (open == '{') {
      TRIAD_RETURN_IF_ERROR(SkipValue(depth + 1));  // a key of any kind
      SkipSpace();
      TRIAD_RETURN_IF_ERROR(Expect(':'));
    }
    TRIAD_RETURN_IF_ERROR(SkipValue(depth + 1));
    SkipSpace();
    if (!Consume(',')) {
      TRIAD_RETURN_IF_ERROR(Expect(close));
      return Status::Ok();
    }
    SkipSpace();
  }
  return Status::Ok();
}

}  // namespace triad::remoting
