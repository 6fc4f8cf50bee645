#include "bin/admin/charset.h"

#include <iconv.h>
#include <strings.h>

#include <cerrno>

namespace triad::admin {
namespace {

constexpr const char* kReplacement = "\xEF\xBF\xBD";

bool Is(const std::string& charset, const char* name) {
  return strcasecmp(charset.c_str(), name) == 0;
}

bool HasByteOrderMark(const std::string& text) {
  return text.starts_with("\xFE\xFF") || text.starts_with("\xFF\xFE");
}

std::string Convert(iconv_t converter, std::string text) {
  std::string out;
  char* from = text.data();
  std::size_t left = text.size();
  while (true) {
    char buffer[512];
    char* to = buffer;
    std::size_t space = sizeof(buffer);
    const bool at_end = left == 0;  // then what the converter still holds
    const std::size_t done =
        iconv(converter, at_end ? nullptr : &from, at_end ? nullptr : &left, &to, &space);
    const int error = done == static_cast<std::size_t>(-1) ? errno : 0;
    out.append(buffer, static_cast<std::size_t>(to - buffer));
    if (error == 0 && at_end) return out;
    if (error == 0 || error == E2BIG) continue;
    out += kReplacement;  // no character, or the text ends within one
    if (left == 0) return out;
    ++from;
    --left;
  }
}

}  // namespace

Result<std::string> ToUtf8(const std::string& text, const std::string& charset) {
  if (charset.empty() || Is(charset, "UTF-8") || Is(charset, "UTF8")) return text;
  // Without a mark the high byte comes first (RFC 2781); iconv would take the machine's order.
  const bool unmarked = Is(charset, "UTF-16") && !HasByteOrderMark(text);
  iconv_t converter = iconv_open("UTF-8", unmarked ? "UTF-16BE" : charset.c_str());
  if (converter == reinterpret_cast<iconv_t>(-1)) {
    return Status::InvalidArgument("there is no character set '" + charset +
                                   "', as UTF-8, GBK or ISO-8859-1");
  }
  std::string converted = Convert(converter, text);
  iconv_close(converter);
  return converted;
}

}  // namespace triad::admin
