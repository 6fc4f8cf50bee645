#include "remoting/endpoint_text.h"

#include <charconv>

namespace triad::remoting {

std::string EndpointText(const asio::ip::tcp::endpoint& endpoint) {
  const asio::ip::address address = endpoint.address();
  const std::string port = std::to_string(endpoint.port());
  if (address.is_v4()) return address.to_string() + ":" + port;
  const asio::ip::address_v6 v6 = address.to_v6();
  if (v6.is_v4_mapped()) {
    return asio::ip::make_address_v4(asio::ip::v4_mapped, v6).to_string() + ":" + port;
  }
  return "[" + v6.to_string() + "]:" + port;
}

Status SplitAddress(std::string_view address, std::string* host, std::string* port) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string_view::npos || colon == 0) {
    return Status::InvalidArgument("'" + std::string(address) + "' is not host:port");
  }
  std::string_view name = address.substr(0, colon);
  const std::string_view number = address.substr(colon + 1);
  if (name.front() == '[' && name.back() == ']') name = name.substr(1, name.size() - 2);
  unsigned value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (name.empty() || error != std::errc() || end != number.data() + number.size() || value == 0 ||
      value > 65535) {
    return Status::InvalidArgument("'" + std::string(address) + "' is not host:port");
  }
  *host = std::string(name);
  *port = std::string(number);
  return Status::Ok();
}

}  // namespace triad::remoting
