#include "bin/admin/time_text.h"

#include <chrono>
#include <cstdio>
#include <ctime>

namespace triad::admin {

std::string FormatTime(std::int64_t ms) {
  if (ms <= 0) return "N/A";
  const std::time_t seconds = static_cast<std::time_t>(ms / 1000);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  char text[40];
  const std::size_t n = std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
  std::snprintf(text + n, sizeof text - n, ",%03d", static_cast<int>(ms % 1000));
  return text;
}

Result<std::int64_t> ParseTime(const std::string& text) {
  if (text == "-1") return std::int64_t{-1};
  if (text == "now" || text == "currentTimeMillis") {
    return std::int64_t{std::chrono::duration_cast<std::chrono::milliseconds>(
                            std::chrono::system_clock::now().time_since_epoch())
                            .count()};
  }
  if (!text.empty() && text.find_first_not_of("0123456789") == std::string::npos &&
      text.size() < 18) {
    return std::int64_t{std::stoll(text)};
  }
  std::tm time{};
  int ms = 0;
  if (std::sscanf(text.c_str(), "%d-%d-%d#%d:%d:%d:%d", &time.tm_year, &time.tm_mon, &time.tm_mday,
                  &time.tm_hour, &time.tm_min, &time.tm_sec, &ms) < 6) {
    return Status::InvalidArgument(
        "'" + text + "' is no time; expected now, milliseconds, or yyyy-MM-dd#HH:mm:ss:SSS");
  }
  time.tm_year -= 1900;
  time.tm_mon -= 1;
  time.tm_isdst = -1;
  return std::int64_t{std::mktime(&time)} * 1000 + ms;
}

}  // namespace triad::admin
