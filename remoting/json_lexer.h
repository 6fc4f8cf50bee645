// JsonLexer: the words of the fastjson dialect, one at a time, without building a tree.
//
// Pure; private to json.cc and header_json.cc. Bounds: skipped values nest at most kMaxJsonDepth
// deep. Errors: kInvalidArgument with what was wrong and at which byte. Source: wire.md §1.3, §1.6.

#pragma once

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <bit>
#include <cstddef>
#include <string>
#include <string_view>

#include "common/status.h"

namespace triad::remoting {

inline constexpr int kMaxJsonDepth = 64;

class JsonLexer {
 public:
  explicit JsonLexer(std::string_view text) : text_(text) {}

  void SkipSpace() {
    while (at_ < text_.size() && IsSpace(text_[at_])) ++at_;
  }
  bool at_end() const { return at_ == text_.size(); }
  std::size_t position() const { return at_; }
  std::string_view Slice(std::size_t from) const { return text_.substr(from, at_ - from); }
  // The next character; 0 at the end.
  char Peek() const { return at_end() ? '\0' : text_[at_]; }
  // Steps over `expected` when it is next.
  bool Consume(char expected) {
    if (at_end() || text_[at_] != expected) return false;
    ++at_;
    return true;
  }
  Status Expect(char expected) {
    if (Consume(expected)) return Status::Ok();
    return Error(std::string("expected '") + expected + "'");
  }

  // At a quote of either kind: the text inside, unescaped, checked to be UTF-8. A lone surrogate
  // becomes '?', as Java writes it.
  Status ReadString(std::string* out);
  // The same, into `text_`'s own bytes when nothing was escaped, else into *scratch.
  Status ReadString(std::string* scratch, std::string_view* out);
  // A bare word: number, true, false, null, unquoted key.
  Status ReadWord(std::string_view* out);
  // Steps over one value of any kind.
  Status SkipValue(int depth = 0);

  Status Error(std::string_view what) const;

 private:
  static bool IsSpace(char c) {
    return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f';
  }
  // Steps to the next `quote` or backslash; false at the end of the text.
  bool SkipPlain(char quote, bool* ascii);
  Status ReadEscaped(char quote, std::string* out, bool* ascii);
  Status ReadEscape(std::string* out);
  Status ReadUnicodeEscape(std::string* out);
  bool ReadHex4(unsigned* out);
  Status SkipContainer(char open, int depth);

  std::string_view text_;
  std::size_t at_ = 0;
};

bool IsValidUtf8(std::string_view text);

// The first `quote` or backslash in [at, end), or end; *ascii becomes false when a byte in front of
// it is none.
inline const char* FindStringStop(const char* at, const char* end, char quote, bool* ascii) {
#ifdef __SSE2__
  const __m128i quotes = _mm_set1_epi8(quote);
  const __m128i slashes = _mm_set1_epi8('\\');
  for (; end - at >= 16; at += 16) {
    const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    const __m128i stops =
        _mm_or_si128(_mm_cmpeq_epi8(block, quotes), _mm_cmpeq_epi8(block, slashes));
    const auto stop = static_cast<unsigned>(_mm_movemask_epi8(stops));
    const auto high = static_cast<unsigned>(_mm_movemask_epi8(block));
    if (stop == 0) {
      if (high != 0) *ascii = false;
      continue;
    }
    const int plain = std::countr_zero(stop);
    if ((high & ((1u << plain) - 1)) != 0) *ascii = false;
    return at + plain;
  }
#endif
  for (; at < end && *at != quote && *at != '\\'; ++at) {
    if (static_cast<unsigned char>(*at) >= 0x80) *ascii = false;
  }
  return at;
}

}  // namespace triad::remoting
