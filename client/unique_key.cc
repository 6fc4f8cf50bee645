#include <arpa/inet.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <random>

#include "client/local_address.h"
#include "client/message_codec.h"
#include "common/clock.h"

namespace triad::client {

namespace {

void AppendHex(std::uint64_t value, int digits, std::string* out) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  for (int i = digits - 1; i >= 0; --i) out->push_back(kDigits[value >> (4 * i) & 15]);
}

std::string FixedPart() {
  in_addr address{};
  inet_pton(AF_INET, LocalAddress().c_str(), &address);
  std::string text;
  AppendHex(ntohl(address.s_addr), 8, &text);
  AppendHex(static_cast<std::uint64_t>(getpid()), 4, &text);
  AppendHex(std::random_device()(), 8, &text);  // where Java has its class loader's hash
  return text;
}

// The first millisecond of the month of `now_ms`, local time, as Java counts.
std::int64_t MonthStartMs(std::int64_t now_ms) {
  const std::time_t seconds = static_cast<std::time_t>(now_ms / 1000);
  std::tm local{};
  localtime_r(&seconds, &local);
  local.tm_mday = 1;
  local.tm_hour = 0;
  local.tm_min = 0;
  local.tm_sec = 0;
  local.tm_isdst = -1;
  return static_cast<std::int64_t>(mktime(&local)) * 1000;
}

}  // namespace

std::string NewUniqueKey() {
  static const std::string fixed = FixedPart();
  static const std::int64_t month_start = MonthStartMs(WallNowMs());
  static std::atomic<std::uint32_t> counter{0};
  std::string key = fixed;
  const std::uint32_t count = counter.fetch_add(1, std::memory_order_relaxed);
  AppendHex(static_cast<std::uint32_t>(WallNowMs() - month_start), 8, &key);
  AppendHex(count & 0xFFFF, 4, &key);
  return key;
}

}  // namespace triad::client
