// FakeCluster: a name server and a broker group, as a client sees them, in this process.
//
// The servers are real ones on loopback sockets; behind them stands one small in-memory broker.
// Every peer answers for the leader, as ours forward. A test may stop and start peers, change who
// leads, and script answers. Thread: every method is safe on every thread.

#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "remoting/bodies.h"
#include "remoting/headers.h"
#include "remoting/server.h"
#include "triad/client_options.h"
#include "triad/message.h"

namespace triad::client {

struct StoredMessage {
  std::string topic;
  std::int32_t queue_id = 0;
  std::int64_t queue_offset = 0;
  std::int64_t physical_offset = 0;
  std::int32_t flag = 0;
  std::int32_t sys_flag = 0;
  std::int32_t reconsume_times = 0;
  std::string properties;
  std::string body;
};
// The record of wire.md §5.9.
std::string EncodeRecord(const StoredMessage& message);

class FakeCluster {
 public:
  static constexpr std::chrono::milliseconds kLong{15000};
  static constexpr const char* kBroker = "broker-a";

  explicit FakeCluster(int peers = 3);
  ~FakeCluster();

  ClientOptions client_options(const std::string& instance_name = {}) const;
  std::string peer_address(int peer) const;

  void CreateTopic(const std::string& topic, int queues, int perm = 6);
  void SetLeader(int peer);  // as the name server says from now on; -1: none is known
  void StopPeer(int peer);
  void StartPeer(int peer);
  // Also stored by the broker itself: a message as if a producer had sent it.
  void Put(const std::string& topic, int queue, const std::string& body,
           const std::string& properties = {}, std::int32_t sys_flag = 0);

  // Asked for every request to a peer. An answer: it is sent instead; kDrop: nothing is ever
  // answered; kGoOn: as usual; kLoseAnswer: done, but the connection ends before the answer. Runs
  // on a server thread.
  enum class Script { kGoOn, kDrop, kLoseAnswer };
  using Hook = std::function<std::optional<remoting::Command>(int peer, const remoting::Command&,
                                                              Script* script)>;
  // Until the guard ends; then the hook is not called any more, and what it refers to may go.
  class [[nodiscard]] HookGuard {
   public:
    explicit HookGuard(FakeCluster* cluster) : cluster_(cluster) {}
    ~HookGuard() {
      cluster_->Note([this] { cluster_->hook_ = nullptr; });
    }
    HookGuard(const HookGuard&) = delete;
    HookGuard& operator=(const HookGuard&) = delete;

   private:
    FakeCluster* const cluster_;
  };
  HookGuard SetHook(Hook hook);

  std::vector<StoredMessage> Stored(const std::string& topic);
  std::optional<std::int64_t> Offset(const std::string& group, const std::string& topic, int queue);
  void SetOffset(const std::string& group, const std::string& topic, int queue,
                 std::int64_t offset);
  int Count(std::int32_t code);                                 // requests seen
  std::string LockHolder(const std::string& topic, int queue);  // empty: free
  void SetLockHolder(const std::string& topic, int queue, const std::string& client_id);
  // Pretends that these are the group's members; empty: those that sent heartbeats.
  void SetMembers(std::vector<std::string> ids);
  void Notify(const std::string& group);  // members changed
  void ResetOffset(const std::string& group, const std::string& topic, int queue,
                   std::int64_t offset);  // request 220 to everybody

  // What each client answers to a request of the broker's.
  std::vector<Result<remoting::Command>> AskClients(const remoting::Command& request);

  // Waits until `predicate`, asked after every request and change, holds.
  bool Wait(const std::function<bool()>& predicate);
  // For what tests note themselves: `change` under the lock, then everybody waiting looks again.
  void Note(const std::function<void()>& change);

 private:
  struct Topic {
    std::vector<std::vector<StoredMessage>> queues;
    int perm = 6;
  };
  struct Held {
    remoting::ConnectionPtr connection;
    remoting::Command request;
  };

  void OnRequest(int peer, const remoting::ConnectionPtr& connection,
                 const remoting::Command& request);
  remoting::Command OnNameServer(const remoting::Command& request);
  remoting::Command Answer(const remoting::ConnectionPtr& connection,
                           const remoting::Command& request);
  remoting::Command OnSend(const remoting::Command& request);
  remoting::Command OnSendBack(const remoting::Command& request);
  std::optional<remoting::Command> OnPull(const remoting::Command& request, bool may_hold);
  remoting::Command OnOffsets(const remoting::Command& request);
  remoting::Command OnLock(const remoting::Command& request);
  std::string StoreLocked(StoredMessage message);
  void AnswerHeldLocked(bool all);
  remoting::TopicRouteData RouteLocked(const std::string& topic);

  std::recursive_mutex mutex_;
  std::condition_variable_any changed_;
  std::unique_ptr<remoting::Server> name_server_;
  std::vector<std::unique_ptr<remoting::Server>> peers_;
  std::vector<std::uint16_t> ports_;
  int leader_ = 0;
  Hook hook_;
  std::map<std::string, Topic> topics_;
  std::map<std::tuple<std::string, std::string, int>, std::int64_t> offsets_;
  std::map<std::pair<std::string, int>, std::pair<std::string, std::int64_t>> locks_;
  std::int64_t next_token_ = 1;
  std::int64_t next_physical_ = 0;
  std::set<std::pair<std::string, std::int64_t>> sent_back_;  // group, physical offset
  std::map<std::int32_t, int> counts_;
  std::vector<Held> held_;
  std::map<std::string, std::set<std::string>> members_;
  std::vector<std::string> fixed_members_;
  std::map<std::uint64_t, remoting::ConnectionPtr> connections_;
};

}  // namespace triad::client
