#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <chrono>

#include "broker/store/message.h"
#include "common/byte_order.h"

namespace triad::broker {
namespace {

constexpr std::string_view kMappedPrefix("\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
constexpr std::int32_t kPortMax = 65535;
constexpr char kHexDigits[] = "0123456789ABCDEF";

std::string HexUpper(std::string_view bytes) {
  std::string out(bytes.size() * 2, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = static_cast<std::uint8_t>(bytes[i]);
    out[2 * i] = kHexDigits[byte >> 4];
    out[2 * i + 1] = kHexDigits[byte & 15];
  }
  return out;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

Result<std::string> FromHex(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    const int high = HexDigit(text[i]);
    const int low = HexDigit(text[i + 1]);
    if (high < 0 || low < 0) return Status::InvalidArgument("not a hexadecimal digit");
    bytes.push_back(static_cast<char>(high * 16 + low));
  }
  return bytes;
}

// Raw bytes of a textual address; empty when it is none.
std::string AddressBytes(const std::string& text, bool v6) {
  char raw[16];
  if (inet_pton(v6 ? AF_INET6 : AF_INET, text.c_str(), raw) != 1) return {};
  const std::string_view bytes(raw, v6 ? 16 : 4);
  if (v6 && bytes.substr(0, kMappedPrefix.size()) == kMappedPrefix) {
    return std::string(bytes.substr(kMappedPrefix.size()));
  }
  return std::string(bytes);
}

}  // namespace

Result<HostPort> ParseHostPort(std::string_view text) {
  const auto wrong = [&] {
    return Status::InvalidArgument("not an address and port: '" + std::string(text) + "'");
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return wrong();
  std::string_view address = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  const bool v6 = address.front() == '[';
  if (v6) {
    if (address.size() < 2 || address.back() != ']') return wrong();
    address = address.substr(1, address.size() - 2);
  }
  HostPort host;
  const char* end = digits.data() + digits.size();
  const auto [parsed_to, error] = std::from_chars(digits.data(), end, host.port);
  if (digits.empty() || error != std::errc() || parsed_to != end || host.port < 0 ||
      host.port > kPortMax) {
    return wrong();
  }
  host.ip = AddressBytes(std::string(address), v6);
  if (host.ip.empty()) return wrong();
  return host;
}

std::string FormatHostPort(const HostPort& host) {
  char text[INET6_ADDRSTRLEN] = "0.0.0.0";
  if (!host.ip.empty()) {
    CHECK(host.ip.size() == 4 || host.ip.size() == 16);
    CHECK(inet_ntop(host.is_v6() ? AF_INET6 : AF_INET, host.ip.data(), text, sizeof(text)) !=
          nullptr);
  }
  const std::string port = std::to_string(host.port);
  return host.is_v6() ? "[" + std::string(text) + "]:" + port : std::string(text) + ":" + port;
}

std::string OffsetMessageId(const HostPort& store_host, PhysicalOffset offset) {
  return std::string(OffsetMessageIds(store_host).Of(offset));
}

OffsetMessageIds::OffsetMessageIds(const HostPort& store_host) {
  std::string raw = store_host.ip.empty() ? std::string(4, '\0') : store_host.ip;
  AppendBe32(&raw, static_cast<std::uint32_t>(store_host.port));
  raw.append(8, '\0');  // the offset
  text_ = HexUpper(raw);
}

std::string_view OffsetMessageIds::Of(PhysicalOffset offset) {
  auto rest = static_cast<std::uint64_t>(offset.value());
  for (std::size_t i = 1; i <= 16; ++i, rest >>= 4) {
    text_[text_.size() - i] = kHexDigits[rest & 15];
  }
  return text_;
}

Result<std::pair<HostPort, PhysicalOffset>> ParseOffsetMessageId(std::string_view id) {
  if (id.size() != 32 && id.size() != 56) {
    return Status::InvalidArgument("a message id has 32 or 56 digits, not " +
                                   std::to_string(id.size()));
  }
  const Result<std::string> raw = FromHex(id);
  if (!raw.ok()) return raw.status();
  HostPort host;
  const std::size_t ip_bytes = raw->size() - 12;
  host.ip = raw->substr(0, ip_bytes);
  host.port = static_cast<std::int32_t>(LoadBe32(raw->data() + ip_bytes));
  const auto offset = static_cast<std::int64_t>(LoadBe64(raw->data() + ip_bytes + 4));
  if (host.port < 0 || host.port > kPortMax || offset < 0) {
    return Status::InvalidArgument("a message id with an impossible port or offset");
  }
  return std::make_pair(host, PhysicalOffset{offset});
}

std::string MakeUniqueKey(const HostPort& host, std::int32_t pid, std::int64_t now_ms,
                          std::uint32_t counter) {
  using std::chrono::floor;
  const std::chrono::sys_time<std::chrono::milliseconds> now{std::chrono::milliseconds(now_ms)};
  const std::chrono::year_month_day today{floor<std::chrono::days>(now)};
  const auto month_start =
      std::chrono::sys_days{today.year() / today.month() / std::chrono::day{1}};
  // Java has a class loader's hash there: any number will do, so it widens the counter.
  constexpr std::uint32_t kLoader = 0x54524400;
  std::string raw = host.ip.empty() ? std::string(4, '\0') : host.ip;
  AppendBe16(&raw, static_cast<std::uint16_t>(pid));
  AppendBe32(&raw, kLoader + (counter >> 16));
  AppendBe32(&raw, static_cast<std::uint32_t>((now - month_start).count()));
  AppendBe16(&raw, static_cast<std::uint16_t>(counter));
  return HexUpper(raw);
}

}  // namespace triad::broker
