// Broker: one broker process, wired together. The only place that knows every service.
//
// Owner: main's thread: Start, then Leave or Stop, once each. What happens on which thread: see
// docs/architecture.md, "Threads".

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "broker/config/broker_config.h"
#include "common/clock.h"
#include "common/file_system.h"
#include "common/ids.h"
#include "common/status.h"

namespace triad::remoting {
class Client;
class Server;
struct ClientHandler;
struct ServerHandler;
struct ServerOptions;
}  // namespace triad::remoting

namespace triad::broker {

class TimerQueue;
struct MessageStoreOptions;

// What a broker stands on; a simulator brings its own. Empty: threads, sockets, LevelDB.
struct BrokerWorld {
  std::function<std::unique_ptr<TimerQueue>()> make_timers;
  std::function<std::unique_ptr<remoting::Client>(const remoting::ClientHandler&)> make_client;
  std::function<std::unique_ptr<remoting::Server>(const remoting::ServerOptions&,
                                                  const remoting::ServerHandler&)>
      make_server;
  std::function<void(MessageStoreOptions*)> adjust_store;
};

struct BrokerOptions {
  // The operator's override of the first-start rule: these peers are known to be gone.
  std::vector<PeerId> bootstrap_without;
  BrokerWorld world{};
  // Told at every change of leadership, and again every second, whether this peer serves as the
  // leader; true only as confirmed by a majority at that moment. Timer thread; must be short.
  // Empty: nobody wants to know.
  std::function<void(bool leads)> on_leading{};
};

class Broker {
 public:
  // `config` comes from LoadBrokerConfig without faults; `fs` and `clock` outlive the broker.
  Broker(BrokerConfig config, BrokerOptions options, FileSystem& fs, const Clock& clock);
  ~Broker();

  // Opens the store, recovers, listens, joins the group. Errors are ready to print: a port in use
  // with its purpose and option, a store in use or foreign.
  Status Start();

  // The start in words: acknowledgement in force, advertised address, store, ports.
  std::vector<std::string> Banner() const;
  // "The broker[NAME, IP:PORT] boot success. ..."
  std::string BootLine() const;

  // The planned end: hands the leadership over, goes on forwarding until no client is left (at
  // most shutdownWaitTimeSeconds), then stops. Blocks.
  void Leave();
  // Ends at once, orderly. Idempotent.
  void Stop();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace triad::broker
