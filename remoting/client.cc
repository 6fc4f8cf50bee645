#include "remoting/client.h"

#include <glog/logging.h>

#include <asio/post.hpp>
#include <atomic>
#include <future>
#include <map>
#include <mutex>
#include <utility>

#include "remoting/asio_connection.h"

namespace triad::remoting {

namespace {

std::atomic<std::uint64_t> next_client_connection_id{1};

Status Stopped() {
  return Status::Cancelled("this client was stopped");
}

class AsioClient final : public Client {
 public:
  AsioClient(ClientOptions options, ClientHandler handler);
  ~AsioClient() override { Stop(); }

  void Call(const std::string& address, Command request, std::chrono::milliseconds timeout,
            CallDone done) override;
  Result<Command> CallSync(const std::string& address, Command request,
                           std::chrono::milliseconds timeout) override;
  void Oneway(const std::string& address, Command request,
              std::function<void(Status)> done) override;
  void Disconnect(const std::string& address) override;
  void Stop() override;

 private:
  // The connection to `address`, made when there is none; null after Stop.
  std::shared_ptr<AsioConnection> Find(const std::string& address);
  void OnClosed(const ConnectionPtr& connection);

  const ClientOptions options_;
  const ClientHandler handler_;
  std::shared_ptr<const ConnectionLimits> limits_;
  std::shared_ptr<const ConnectionHooks> hooks_;
  const std::shared_ptr<IoThread> thread_ = std::make_shared<IoThread>();
  std::mutex mutex_;  // leaf
  std::map<std::string, std::shared_ptr<AsioConnection>, std::less<>> connections_;
  bool stopped_ = false;
};

AsioClient::AsioClient(ClientOptions options, ClientHandler handler)
    : options_(std::move(options)), handler_(std::move(handler)) {
  ConnectionLimits limits;
  limits.max_calls = options_.max_inflight;
  limits.idle_timeout = options_.idle_timeout;
  limits.connect_timeout = options_.connect_timeout;
  limits_ = std::make_shared<const ConnectionLimits>(limits);
  ConnectionHooks hooks;
  hooks.on_request = handler_.on_request;
  hooks.on_closed = [this](const ConnectionPtr& connection) { OnClosed(connection); };
  hooks_ = std::make_shared<const ConnectionHooks>(std::move(hooks));
  thread_->Start("remoting-client");
}

std::shared_ptr<AsioConnection> AsioClient::Find(const std::string& address) {
  std::shared_ptr<AsioConnection> made;
  {
    std::lock_guard hold(mutex_);
    if (stopped_) return nullptr;
    std::shared_ptr<AsioConnection>& known = connections_[address];
    if (known != nullptr && !known->closed()) return known;
    made = std::make_shared<AsioConnection>(thread_, next_client_connection_id.fetch_add(1),
                                            limits_, hooks_);
    made->SetTarget(address, options_.serialize_type);
    known = made;
  }
  asio::post(thread_->io(), [made] { made->Connect(); });
  return made;
}

void AsioClient::Call(const std::string& address, Command request,
                      std::chrono::milliseconds timeout, CallDone done) {
  CHECK(done != nullptr);
  const std::shared_ptr<AsioConnection> connection = Find(address);
  if (connection == nullptr) {
    done(Stopped());
    return;
  }
  request.language = options_.language;
  connection->Call(std::move(request), timeout, std::move(done));
}

Result<Command> AsioClient::CallSync(const std::string& address, Command request,
                                     std::chrono::milliseconds timeout) {
  CHECK(!thread_->IsCurrent()) << "CallSync would wait for its own thread";
  auto answer = std::make_shared<std::promise<Result<Command>>>();
  Call(address, std::move(request), timeout,
       [answer](Result<Command> result) { answer->set_value(std::move(result)); });
  return answer->get_future().get();
}

void AsioClient::Oneway(const std::string& address, Command request,
                        std::function<void(Status)> done) {
  const std::shared_ptr<AsioConnection> connection = Find(address);
  if (connection == nullptr) {
    if (done) done(Stopped());
    return;
  }
  request.language = options_.language;
  connection->SendOneway(std::move(request), std::move(done));
}

void AsioClient::Disconnect(const std::string& address) {
  std::lock_guard hold(mutex_);
  const auto found = connections_.find(address);
  if (found == connections_.end()) return;
  found->second->Close();
  connections_.erase(found);  // the next call opens a new one
}

void AsioClient::OnClosed(const ConnectionPtr& connection) {
  const std::string& address = connection->remote_address();
  bool stopped = false;
  {
    std::lock_guard hold(mutex_);
    stopped = stopped_;
    const auto found = connections_.find(address);
    if (found != connections_.end() && found->second == connection) connections_.erase(found);
  }
  if (!stopped && handler_.on_disconnect) handler_.on_disconnect(address);
}

void AsioClient::Stop() {
  std::map<std::string, std::shared_ptr<AsioConnection>, std::less<>> open;
  {
    std::lock_guard hold(mutex_);
    if (stopped_) return;
    stopped_ = true;
    open.swap(connections_);
  }
  for (const auto& [address, connection] : open) {
    asio::post(thread_->io(), [connection = connection] { connection->Shut(Stopped()); });
  }
  thread_->Stop();
}

}  // namespace

bool NeverSent(const Status& failure) {
  return failure.code() == StatusCode::kUnavailable && failure.message().starts_with(kCannot);
}

std::unique_ptr<Client> CreateClient(ClientOptions options, ClientHandler handler) {
  return std::make_unique<AsioClient>(std::move(options), std::move(handler));
}

}  // namespace triad::remoting
