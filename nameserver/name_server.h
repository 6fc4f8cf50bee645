// NameServer: the shell around RequestProcessor: sockets, the clock, one background thread.
//
// Requests are answered on the connection thread that read them; those that write a file go to the
// background thread, which also looks for silent brokers. Bounds: kMaxWaitingWrites.
// Thread: Start and Stop on the owner's.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "common/clock.h"
#include "common/file_system.h"
#include "common/status.h"
#include "nameserver/background_thread.h"
#include "nameserver/name_server_config.h"
#include "nameserver/request_processor.h"
#include "remoting/server.h"

namespace triad::nameserver {

inline constexpr std::size_t kMaxWaitingWrites = 1000;

class NameServer {
 public:
  // `file_system` and `clock` outlive this.
  NameServer(NameServerConfig config, FileSystem& file_system, const Clock& clock);
  ~NameServer();

  NameServer(const NameServer&) = delete;
  NameServer& operator=(const NameServer&) = delete;

  // Errors: a damaged KV file, an address that cannot be bound.
  Status Start();
  std::uint16_t port() const;  // of a started server
  // Answers what is in flight, closes the connections, ends the threads.
  void Stop();

 private:
  void OnRequest(const remoting::ConnectionPtr& connection, remoting::Command request);
  void OnClosed(const remoting::ConnectionPtr& connection);
  void Answer(const remoting::ConnectionPtr& connection, const remoting::Command& request);
  void DropSilentBrokers();

  const NameServerConfig config_;  // as started; the processor holds the one in force
  const Clock& clock_;
  RequestProcessor processor_;
  std::mutex mutex_;  // guards brokers_
  // Connections that speak for a broker: closed when it goes silent, so that it notices.
  std::map<ConnectionId, std::weak_ptr<remoting::Connection>> brokers_;
  std::unique_ptr<remoting::Server> server_;
  std::unique_ptr<BackgroundThread> background_;
};

}  // namespace triad::nameserver
