// dLegerPeers: "id-host:port;id-host:port;...".

#include <charconv>
#include <optional>
#include <set>

#include "broker/config/broker_config.h"

namespace triad::broker {
namespace {

constexpr std::size_t kTextBytesMax = 255;  // of an id, of host:port: what the log can keep
constexpr const char* kForm = "members are written id-host:port;id-host:port;...";

Status Bad(const std::string& item, const std::string& what) {
  return Status::InvalidArgument("member \"" + item + "\": " + what + " (" + kForm + ")");
}

std::optional<std::int64_t> ParseNumber(std::string_view text) {
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || stop != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

// The integer at the end of an id.
std::optional<std::int32_t> TrailingNumber(const std::string& id) {
  const auto last = id.find_last_not_of("0123456789");
  const auto number = ParseNumber(std::string_view(id).substr(last + 1));
  if (!number || *number >= std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  return static_cast<std::int32_t>(*number);
}

// "host:port" or "[v6]:port" into `member`.
Status ParseEndpoint(const std::string& item, const std::string& endpoint, GroupMember* member) {
  std::size_t colon = endpoint.rfind(':');
  if (!endpoint.empty() && endpoint.front() == '[') {
    const auto close = endpoint.find(']');
    if (close == std::string::npos || close + 1 != colon) {
      return Bad(item, "an IPv6 address is written [address]:port");
    }
    member->host = endpoint.substr(1, close - 1);
  } else {
    if (colon == std::string::npos) return Bad(item, "the port is missing");
    if (endpoint.find(':') != colon) {
      return Bad(item, "more than one colon; write an IPv6 address in brackets, [address]:port");
    }
    member->host = endpoint.substr(0, colon);
  }
  const auto port = ParseNumber(std::string_view(endpoint).substr(colon + 1));
  if (!port || *port < 1 || *port > 65535) return Bad(item, "the port must be 1 to 65535");
  member->port = static_cast<std::uint16_t>(*port);
  if (member->host.empty() || member->host.find_first_of(" \t\r\n\f[]") != std::string::npos) {
    return Bad(item, "the host is missing or holds a blank");
  }
  return Status::Ok();
}

Result<GroupMember> ParseMember(const std::string& item) {
  if (item.find(',') != std::string::npos) {
    return Bad(item, "members are separated by semicolons, not by \",\"");
  }
  const auto hyphen = item.find('-');
  const auto colon = item.find(':');
  if (hyphen == std::string::npos || colon < hyphen || hyphen == 0) {
    return Bad(item, "the id in front of the host is missing");
  }
  if (hyphen > kTextBytesMax || item.size() - hyphen - 1 > kTextBytesMax) {
    return Bad(item, "an id and a host:port have at most " + std::to_string(kTextBytesMax) +
                         " bytes each");
  }
  GroupMember member;
  const std::string id = item.substr(0, hyphen);
  if (id.find_first_of(" \t\r\n\f/") != std::string::npos) {
    return Bad(item, "an id holds neither blanks nor /");
  }
  member.id = PeerId(id);
  const auto number = TrailingNumber(id);
  if (!number) return Bad(item, "an id must end in a number, like n0");
  member.number = *number;
  TRIAD_RETURN_IF_ERROR(ParseEndpoint(item, item.substr(hyphen + 1), &member));
  return member;
}

}  // namespace

Result<std::vector<GroupMember>> ParseGroupMembers(const std::string& text) {
  std::vector<GroupMember> members;
  std::set<std::int32_t> numbers;
  std::set<std::pair<std::string, std::uint16_t>> endpoints;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(';', begin), text.size());
    const std::string item(TrimBlanks(std::string_view(text).substr(begin, end - begin)));
    begin = end + 1;
    if (item.empty()) continue;
    auto member = ParseMember(item);
    if (!member.ok()) return member.status();
    if (!numbers.insert(member->number).second) {
      return Bad(item, "two ids end in " + std::to_string(member->number));
    }
    if (!endpoints.emplace(member->host, member->port).second) {
      return Bad(item, "two members have the same address");
    }
    members.push_back(std::move(member.value()));
  }
  if (members.empty()) return Status::InvalidArgument(std::string("no members; ") + kForm);
  return members;
}

}  // namespace triad::broker
