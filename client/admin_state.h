// Admin::State: what every call of Admin stands on: the connections, and ways to ask a name server,
// one broker, or every group.
//
// Thread: every method is safe on every thread.

#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "client/broker_calls.h"
#include "client/client_instance.h"
#include "remoting/bodies.h"
#include "triad/admin.h"

namespace triad::client {

class Admin::State {
 public:
  State(ClientOptions options, std::chrono::milliseconds timeout)
      : options_(std::move(options)), timeout_(timeout) {}

  Status Start();
  void Shutdown();
  Result<remoting::ClusterInfo> Cluster();
  Result<remoting::TopicRouteData> RouteOf(const std::string& topic);
  Result<remoting::Command> AskNameServer(remoting::Command request, const std::string& what);
  // The answer may carry any code.
  Result<remoting::Command> Call(const std::string& address, const remoting::Command& request);
  Result<remoting::Command> AskBroker(const std::string& address, const remoting::Command& request,
                                      const std::string& what);
  // A write: at one address, or at every group of a cluster (empty: of all).
  Status Change(const remoting::Command& request, const std::string& cluster,
                const std::string& broker_address, const std::string& what);
  // Asks every group of the topic's route.
  Status AskGroups(const std::string& topic, const remoting::Command& request,
                   const std::string& what,
                   const std::function<Status(const remoting::Command&)>& use);

  const ClientOptions options_;
  const std::chrono::milliseconds timeout_;
  std::mutex lifecycle_;
  std::shared_ptr<ClientInstance> instance_;
  std::unique_ptr<BrokerCalls> calls_;
  std::atomic<bool> running_ = false;
};

}  // namespace triad::client
