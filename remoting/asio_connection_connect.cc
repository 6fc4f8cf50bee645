// AsioConnection, the way to a server: name, addresses, connection.

#include <asio/ip/address.hpp>
#include <string>
#include <utility>

#include "remoting/asio_connection.h"
#include "remoting/endpoint_text.h"

namespace triad::remoting {

IoAwaitable<Status> AsioConnection::Resolve(std::shared_ptr<AsioConnection> self,
                                            std::vector<asio::ip::tcp::endpoint>* endpoints) {
  std::string host;
  std::string port;
  Status parsed = SplitAddress(self->remote_address_, &host, &port);
  if (!parsed.ok()) co_return parsed;
  asio::error_code not_numeric;
  const asio::ip::address numeric = asio::ip::make_address(host, not_numeric);
  if (!not_numeric) {
    endpoints->emplace_back(numeric, static_cast<std::uint16_t>(std::stoi(port)));
    co_return Status::Ok();
  }
  asio::ip::basic_resolver<asio::ip::tcp, IoExecutor> resolver(self->thread_->io());
  auto [error, results] = co_await resolver.async_resolve(host, port, kIoToken);
  if (error) {
    co_return Status::Unavailable(std::string(kCannot) + "resolve " + self->remote_address_ + ": " +
                                  error.message());
  }
  for (const auto& entry : results) endpoints->push_back(entry.endpoint());
  co_return Status::Ok();
}

IoAwaitable<void> AsioConnection::ConnectThenRun(std::shared_ptr<AsioConnection> self) {
  std::vector<asio::ip::tcp::endpoint> endpoints;
  Status resolved = co_await Resolve(self, &endpoints);
  if (!resolved.ok()) {
    self->Shut(std::move(resolved));
    co_return;
  }
  std::string last_error = "the name has no address";
  asio::error_code ignored;
  for (const asio::ip::tcp::endpoint& endpoint : endpoints) {
    if (self->closed()) co_return;
    self->socket_.close(ignored);  // of the address before
    auto [error] = co_await self->socket_.async_connect(endpoint, kIoToken);
    if (self->closed()) co_return;
    if (!error) {
      self->connecting_ = false;
      self->StartLoops();
      co_return;
    }
    last_error = error.message();
  }
  self->Shut(Status::Unavailable(std::string(kCannot) + "connect to " + self->remote_address_ +
                                 ": " + last_error));
}

}  // namespace triad::remoting
