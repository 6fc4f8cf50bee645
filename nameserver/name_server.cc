#include "nameserver/name_server.h"

#include <glog/logging.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "remoting/codes.h"

namespace triad::nameserver {

using remoting::Command;
using remoting::ConnectionPtr;

namespace {

constexpr std::chrono::milliseconds kStopGrace{1000};

// Requests that tie a broker's address to their connection: when it breaks, the address is gone.
bool BindsAddress(std::int32_t code) {
  return code == remoting::kRegisterBroker || code == remoting::kBrokerHeartbeat ||
         code == remoting::kQueryDataVersion;
}

}  // namespace

NameServer::NameServer(NameServerConfig config, FileSystem& file_system, const Clock& clock)
    : config_(std::move(config)),
      clock_(clock),
      processor_(config_, file_system, clock.MonoNow()) {}

NameServer::~NameServer() {
  Stop();
}

Status NameServer::Start() {
  CHECK(server_ == nullptr) << "started twice";
  TRIAD_RETURN_IF_ERROR(processor_.Load());

  remoting::ServerOptions options;
  options.bind_address = config_.bind_address;
  options.ports = {static_cast<std::uint16_t>(config_.listen_port)};
  options.threads = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 4);
  options.idle_timeout = std::chrono::seconds(config_.idle_seconds);
  remoting::ServerHandler handler;
  handler.on_request = [this](const ConnectionPtr& connection, Command request) {
    OnRequest(connection, std::move(request));
  };
  handler.on_closed = [this](const ConnectionPtr& connection) { OnClosed(connection); };
  server_ = remoting::CreateServer(std::move(options), std::move(handler));

  // Before the first request can come.
  background_ =
      std::make_unique<BackgroundThread>(kMaxWaitingWrites, config_.scan_interval, [this] {
        DropSilentBrokers();
        return processor_.scan_interval();
      });
  const Status started = server_->Start();
  if (!started.ok()) {
    background_.reset();
    server_.reset();
  }
  return started;
}

std::uint16_t NameServer::port() const {
  CHECK(server_ != nullptr) << "not started";
  return server_->ports().front();
}

void NameServer::Stop() {
  if (server_ == nullptr) return;
  server_->StopAccepting();
  background_->Stop();  // its answers still reach their connections
  server_->Stop(kStopGrace);
  background_.reset();
  server_.reset();
}

void NameServer::OnRequest(const ConnectionPtr& connection, Command request) {
  if (BindsAddress(request.code)) {
    const std::lock_guard hold(mutex_);
    brokers_[connection->id()] = connection;
  }
  if (!RequestProcessor::NeedsDisk(request.code)) return Answer(connection, request);

  auto waiting = std::make_shared<const Command>(std::move(request));
  if (background_->Post([this, connection, waiting] { Answer(connection, *waiting); })) return;
  if (waiting->is_oneway()) return;
  connection->Send(Command::ResponseTo(*waiting, remoting::kSystemBusy,
                                       "too many configuration changes are waiting for the disk"));
}

void NameServer::Answer(const ConnectionPtr& connection, const Command& request) {
  Command response = processor_.Process(request, connection->id(), clock_.MonoNow());
  if (!request.is_oneway()) connection->Send(std::move(response));
}

void NameServer::OnClosed(const ConnectionPtr& connection) {
  {
    const std::lock_guard hold(mutex_);
    if (brokers_.erase(connection->id()) == 0) return;
  }
  for (const RemovedBroker& broker : processor_.ConnectionClosed(connection->id())) {
    LOG(WARNING) << "the connection of " << broker.broker_name << " at " << broker.address
                 << " broke: it is no longer in any route";
  }
}

void NameServer::DropSilentBrokers() {
  for (const RemovedBroker& broker : processor_.Expire(clock_.MonoNow())) {
    LOG(WARNING) << broker.broker_name << " at " << broker.address
                 << " was silent for too long: it is no longer in any route";
    ConnectionPtr connection;
    {
      const std::lock_guard hold(mutex_);
      const auto found = brokers_.find(broker.connection);
      if (found != brokers_.end()) connection = found->second.lock();
    }
    if (connection != nullptr) connection->Close();  // it registers anew when it can
  }
}

}  // namespace triad::nameserver
