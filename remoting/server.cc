#include "remoting/server.h"

#include <glog/logging.h>

#include <asio/basic_socket_acceptor.hpp>
#include <asio/co_spawn.hpp>
#include <asio/ip/v6_only.hpp>
#include <asio/post.hpp>
#include <condition_variable>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "common/log_rate_limiter.h"
#include "remoting/asio_connection.h"
#include "remoting/endpoint_text.h"

namespace triad::remoting {

namespace {

using Acceptor = asio::basic_socket_acceptor<asio::ip::tcp, IoExecutor>;
constexpr std::chrono::milliseconds kAcceptPause{100};  // when the process has no descriptor left

std::atomic<std::uint64_t> next_server_connection_id{1};

// One connection thread and the connections that live on it.
struct Home {
  std::shared_ptr<IoThread> thread = std::make_shared<IoThread>();
  // Owner: the thread.
  std::unordered_map<std::uint64_t, std::shared_ptr<AsioConnection>> connections;
};

class AsioServer final : public Server {
 public:
  AsioServer(ServerOptions options, ServerHandler handler);
  ~AsioServer() override { Stop(std::chrono::milliseconds(0)); }

  Status Start() override;
  std::vector<std::uint16_t> ports() const override { return ports_; }
  std::size_t connection_count() const override { return count_.load(); }
  void Stop(std::chrono::milliseconds grace) override;
  void StopAccepting() override;

 private:
  static IoAwaitable<void> AcceptLoop(AsioServer* self, Acceptor* acceptor);
  Status Listen(std::uint16_t port);
  void Welcome(IoSocket socket, const asio::ip::tcp::endpoint& peer, Home* home);
  void Register(Home* home, IoSocket socket, std::shared_ptr<AsioConnection> connection);
  void OnClosed(const ConnectionPtr& connection);
  Home& HomeOf(std::uint64_t id) { return *homes_[id % homes_.size()]; }
  void OnEveryConnection(void (*task)(AsioConnection*));
  void Uncount();

  const ServerOptions options_;
  const ServerHandler handler_;
  std::shared_ptr<const ConnectionLimits> limits_;
  std::shared_ptr<const ConnectionHooks> hooks_;
  std::vector<std::unique_ptr<Home>> homes_;  // the first one accepts
  std::vector<std::unique_ptr<Acceptor>> acceptors_;
  std::vector<std::uint16_t> ports_;
  bool started_ = false;
  std::atomic<bool> stopping_ = false;
  std::atomic<std::size_t> count_ = 0;
  std::mutex mutex_;  // leaf: for the wait in Stop only
  std::condition_variable all_closed_;
};

AsioServer::AsioServer(ServerOptions options, ServerHandler handler)
    : options_(std::move(options)), handler_(std::move(handler)) {
  CHECK(handler_.on_request != nullptr);
  ConnectionLimits limits;
  limits.max_output_bytes = options_.max_output_bytes;
  limits.max_inflight_requests = options_.max_inflight_requests;
  limits.idle_timeout = options_.idle_timeout;
  limits.partial_frame_timeout = options_.partial_frame_timeout;
  limits_ = std::make_shared<const ConnectionLimits>(limits);
  ConnectionHooks hooks;
  hooks.on_request = handler_.on_request;
  hooks.on_frame = handler_.on_frame;
  hooks.before_requests = handler_.before_requests;
  hooks.after_requests = handler_.after_requests;
  hooks.on_closed = [this](const ConnectionPtr& connection) { OnClosed(connection); };
  hooks_ = std::make_shared<const ConnectionHooks>(std::move(hooks));
}

Status AsioServer::Listen(std::uint16_t port) {
  const std::string text = options_.bind_address + ":" + std::to_string(port);
  asio::error_code error;
  const auto address = asio::ip::make_address(options_.bind_address, error);
  if (error) return Status::InvalidArgument("cannot listen on " + text + ": not an IP address");
  const asio::ip::tcp::endpoint endpoint(address, port);
  auto acceptor = std::make_unique<Acceptor>(homes_[0]->thread->io());
  acceptor->open(endpoint.protocol(), error);
  if (!error) acceptor->set_option(asio::socket_base::reuse_address(true), error);
  if (!error && address.is_v6()) acceptor->set_option(asio::ip::v6_only(false), error);
  if (!error) acceptor->bind(endpoint, error);
  if (!error) acceptor->listen(asio::socket_base::max_listen_connections, error);
  if (error) return Status::Unavailable("cannot listen on " + text + ": " + error.message());
  ports_.push_back(acceptor->local_endpoint(error).port());
  acceptors_.push_back(std::move(acceptor));
  return Status::Ok();
}

Status AsioServer::Start() {
  CHECK(!started_) << "a server starts once";
  if (options_.threads < 1 || options_.threads > 64) {
    return Status::InvalidArgument("connection threads must be within 1..64");
  }
  for (std::size_t i = 0; i < options_.threads; ++i) homes_.push_back(std::make_unique<Home>());
  for (const std::uint16_t port : options_.ports) {
    Status listening = Listen(port);
    if (!listening.ok()) {
      acceptors_.clear();
      homes_.clear();
      ports_.clear();
      return listening;
    }
  }
  started_ = true;
  for (std::size_t i = 0; i < homes_.size(); ++i) {
    homes_[i]->thread->Start("conn-" + std::to_string(i));
  }
  for (const auto& acceptor : acceptors_) {
    asio::co_spawn(homes_[0]->thread->io(), AcceptLoop(this, acceptor.get()),
                   CrashOnException{"accept loop"});
  }
  return Status::Ok();
}

IoAwaitable<void> AsioServer::AcceptLoop(AsioServer* self, Acceptor* acceptor) {
  static LogRateLimiter failure_lines(std::chrono::seconds(5));
  IoTimer pause(acceptor->get_executor());
  std::size_t next = 0;
  while (acceptor->is_open()) {
    Home* home = self->homes_[next].get();
    IoSocket socket(home->thread->io());
    asio::ip::tcp::endpoint peer;
    auto [error] = co_await acceptor->async_accept(socket, peer, kIoToken);
    if (!acceptor->is_open()) break;
    if (!error) {
      self->Welcome(std::move(socket), peer, home);
      next = (next + 1) % self->homes_.size();
      continue;
    }
    if (auto suppressed = failure_lines.Allow(SystemClock().MonoNow())) {
      LOG(WARNING) << "cannot accept a connection now: " << error.message() << "; trying again in "
                   << kAcceptPause.count() << " ms" << SuppressedNote(*suppressed);
    }
    pause.expires_after(kAcceptPause);
    co_await pause.async_wait(kIoToken);
  }
}

void AsioServer::Welcome(IoSocket socket, const asio::ip::tcp::endpoint& peer, Home* home) {
  static LogRateLimiter full_lines(std::chrono::seconds(5));
  if (count_.fetch_add(1) >= options_.max_connections) {
    if (auto suppressed = full_lines.Allow(SystemClock().MonoNow())) {
      LOG(WARNING) << "refusing " << EndpointText(peer) << ": " << options_.max_connections
                   << " connections are open already" << SuppressedNote(*suppressed);
    }
    Uncount();
    return;
  }
  // The id tells the home: see HomeOf.
  std::uint64_t id = next_server_connection_id.fetch_add(1);
  while (&HomeOf(id) != home) id = next_server_connection_id.fetch_add(1);
  auto connection = std::make_shared<AsioConnection>(home->thread, id, limits_, hooks_);
  connection->SetAcceptedFrom(peer);
  asio::post(home->thread->io(), [this, home, socket = std::move(socket),
                                  connection = std::move(connection)]() mutable {
    Register(home, std::move(socket), std::move(connection));
  });
}

void AsioServer::Register(Home* home, IoSocket socket, std::shared_ptr<AsioConnection> connection) {
  if (stopping_) {
    Uncount();
    return;
  }
  home->connections.emplace(connection->id(), connection);
  connection->Adopt(std::move(socket));
}

void AsioServer::OnClosed(const ConnectionPtr& connection) {
  HomeOf(connection->id()).connections.erase(connection->id());
  Uncount();  // first: whoever hears of the end finds it counted
  if (handler_.on_closed) handler_.on_closed(connection);
}

void AsioServer::Uncount() {
  if (count_.fetch_sub(1) != 1) return;
  std::lock_guard hold(mutex_);
  all_closed_.notify_all();
}

void AsioServer::StopAccepting() {
  if (!started_) return;
  homes_[0]->thread->Post([this] {
    asio::error_code ignored;
    for (const auto& acceptor : acceptors_) acceptor->close(ignored);
  });
}

void AsioServer::OnEveryConnection(void (*task)(AsioConnection*)) {
  for (const auto& home : homes_) {
    asio::post(home->thread->io(), [task, connections = &home->connections] {
      std::vector<std::shared_ptr<AsioConnection>> all;  // tasks take themselves off the list
      for (const auto& [id, connection] : *connections) all.push_back(connection);
      for (const auto& connection : all) task(connection.get());
    });
  }
}

void AsioServer::Stop(std::chrono::milliseconds grace) {
  if (!started_ || stopping_.exchange(true)) return;
  StopAccepting();
  OnEveryConnection([](AsioConnection* connection) { connection->Drain(); });
  {
    std::unique_lock hold(mutex_);
    all_closed_.wait_for(hold, grace, [this] { return count_.load() == 0; });
  }
  OnEveryConnection([](AsioConnection* connection) {
    connection->Shut(Status::Unavailable("the server is stopping"));
  });
  for (const auto& home : homes_) home->thread->Stop();
}

}  // namespace

std::unique_ptr<Server> CreateServer(ServerOptions options, ServerHandler handler) {
  return std::make_unique<AsioServer>(std::move(options), std::move(handler));
}

}  // namespace triad::remoting
