// ClientInstance: what the producers and consumers of one process share: connections, routes,
// heartbeats.
//
// One per (name server list, instance name); the first Attach starts it, the last Detach stops it.
// Thread: safe on every thread. Owns the remoting client's thread and the scheduler's. Callbacks on
// these threads must not block. Bounds: one heartbeat per address at a time. Source: wire.md §4.1.

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "client/address_book.h"
#include "client/name_servers.h"
#include "client/route_cache.h"
#include "client/scheduler.h"
#include "remoting/client.h"
#include "remoting/client_bodies.h"
#include "triad/client_options.h"

namespace triad::client {

// A consumer of the instance, as heartbeats and notifications see it. Called on the instance's
// threads; must not block.
class GroupMember {
 public:
  virtual ~GroupMember() = default;
  virtual remoting::ConsumerData Describe() = 0;
  virtual void OnGroupChanged() = 0;
  virtual void OnRouteChanged() = 0;
  // The broker was told to move the group: queue -> offset.
  virtual void OnOffsetReset(std::map<MessageQueue, std::int64_t> offsets) = 0;
  // A tool asks through the broker (307, 309, 221); `reply` once, on any thread.
  using Reply = std::function<void(remoting::Command)>;
  virtual void OnDirected(const remoting::Command& request, Reply reply) = 0;
};

class ClientInstance : public std::enable_shared_from_this<ClientInstance> {
 public:
  // Errors: kInvalidArgument (no name server address), kUnavailable (none answers).
  static Result<std::shared_ptr<ClientInstance>> Attach(const ClientOptions& options);
  // Once per Attach; the last one stops the threads. Never on one of them.
  void Detach();
  ~ClientInstance();

  ClientInstance(const ClientInstance&) = delete;
  ClientInstance& operator=(const ClientInstance&) = delete;

  const std::string& client_id() const { return client_id_; }
  remoting::Client& remoting() { return *remoting_; }
  Scheduler& scheduler() { return *scheduler_; }
  NameServers& name_servers() { return *name_servers_; }
  RouteCache& routes() { return *routes_; }
  AddressBook& book() { return book_; }

  // Groups that heartbeats name. Errors: kAlreadyExists: this instance has a consumer of the group.
  Status Join(const std::string& group, std::weak_ptr<GroupMember> member);
  // Also tells every broker (UNREGISTER_CLIENT), waiting at most a second.
  void Leave(const std::string& group);
  void AddProducer(const std::string& group);
  void RemoveProducer(const std::string& group);

  // Sends heartbeats to every address now, without waiting.
  void HeartbeatSoon();
  // The same, and waits for the answers, at most `limit`.
  void Heartbeat(std::chrono::milliseconds limit);

 private:
  class PendingAnswers;
  struct Contact {
    bool confirmed = false;  // it took a heartbeat on the connection that is open now
    bool asking = false;
    TimePoint last{};
  };

  explicit ClientInstance(const ClientOptions& options, std::string key);
  static std::shared_ptr<ClientInstance> FindOrStart(const ClientOptions& options);
  Status CheckNameServers();
  void Start();
  void Stop();
  void Tick();  // once a second
  void SendHeartbeats(bool all, const std::shared_ptr<PendingAnswers>& pending);
  void SendHeartbeat(const std::string& address, const std::string& body,
                     const std::shared_ptr<PendingAnswers>& pending);
  remoting::HeartbeatData HeartbeatBody();
  std::vector<std::string> HeartbeatTargets();
  std::vector<std::shared_ptr<GroupMember>> Members();
  void Unregister(const std::string& producer_group, const std::string& consumer_group);

  std::shared_ptr<GroupMember> FindMember(const std::string& group);
  static bool IsDirected(std::int32_t code);
  void OnDirected(const remoting::ConnectionPtr& connection, const remoting::Command& request);
  void OnRequest(const remoting::ConnectionPtr& connection, const remoting::Command& request);
  void OnDisconnect(const std::string& address);
  void OnRouteChange(bool new_address);

  const ClientOptions options_;
  const std::string key_;
  const std::string client_id_;
  int users_ = 0;  // guarded by the registry's mutex
  AddressBook book_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<remoting::Client> remoting_;
  std::unique_ptr<NameServers> name_servers_;
  std::unique_ptr<RouteCache> routes_;
  TimePoint routes_polled_at_{};  // scheduler thread

  std::mutex mutex_;  // leaf
  std::map<std::string, std::weak_ptr<GroupMember>> consumers_;
  std::map<std::string, int> producers_;  // group -> users
  std::map<std::string, Contact> contacts_;
};

}  // namespace triad::client
