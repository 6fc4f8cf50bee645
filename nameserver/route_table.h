// RouteTable: which brokers live where, which topics they hold, and until when that is believed.
//
// Pure: no IO, no clock, no lock. The caller passes `now`, so a test decides the time.
// Owner: whoever holds it calls it from one thread at a time (RequestProcessor: under its lock).
// Size: at most `limits` brokers, addresses and topics; what would exceed them is refused whole.
// Source: wire.md §3.2 (rules 1-8), §3.3, §3.4.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/status.h"
#include "remoting/route_bodies.h"

namespace triad::nameserver {

inline constexpr std::int64_t kLeaderBrokerId = 0;
inline constexpr std::chrono::milliseconds kDefaultBrokerTimeout{120000};

inline constexpr std::int32_t kPermWrite = 2;
inline constexpr std::int32_t kPermReadWrite = 6;
inline constexpr std::int32_t kTopicFlagUnit = 1;
inline constexpr std::int32_t kTopicFlagUnitSub = 2;

using ConnectionId = std::uint64_t;

struct RouteLimits {
  std::size_t brokers = 10000;  // names
  std::size_t addresses = 50000;
  std::size_t topics = 200000;
};

// One REGISTER_BROKER, decoded.
struct BrokerRegistration {
  std::string cluster;
  std::string broker_name;
  std::string address;  // "ip:port", what clients will dial
  std::string ha_address;
  std::int64_t broker_id = 0;
  std::optional<std::chrono::milliseconds> timeout;
  std::optional<bool> enable_acting_master;  // absent: an old broker (rule 6)
  remoting::DataVersion version;
  std::map<std::string, remoting::TopicConfigBody> topics;
  bool delete_missing_topics = false;
  ConnectionId connection = 0;
};

struct RegistrationAnswer {  // empty for a leader, and when there is no live leader
  std::string leader_address;
  std::string leader_ha_address;
};

struct RemovedBroker {
  std::string broker_name;
  std::string address;
  ConnectionId connection = 0;
};

class RouteTable {
 public:
  explicit RouteTable(RouteLimits limits = {});

  RouteTable(const RouteTable&) = delete;
  RouteTable& operator=(const RouteTable&) = delete;

  // Errors: kInvalidArgument (a name is missing, a negative id, the first registration of an id
  // with one topic only: rule 4), kBusy (a limit). Nothing has changed then.
  Result<RegistrationAnswer> Register(const BrokerRegistration& registration, TimePoint now);
  // Forgets an address, whatever its id. Nothing happens when it is not known.
  void Unregister(const std::string& broker_name, const std::string& address);

  // The registering connection broke: its addresses are gone at once.
  std::vector<RemovedBroker> ConnectionClosed(ConnectionId connection);
  // Drops what was silent for too long.
  std::vector<RemovedBroker> Expire(TimePoint now);
  // A sign of life. It also binds the address to this connection. False: nothing has changed, for
  // it is not registered, or is by now that of a later leader than the sender, who leads in `term`
  // (stock brokers do not say).
  bool Heartbeat(const std::string& address, ConnectionId connection, TimePoint now,
                 std::optional<std::int64_t> term = std::nullopt);
  // Null: not registered.
  const remoting::DataVersion* VersionOf(const std::string& address) const;

  // Topics.
  // nullopt: no queue, or no broker of it is left.
  std::optional<remoting::TopicRouteData> Route(const std::string& topic) const;
  // Errors: kInvalidArgument naming a broker that is not registered; kBusy.
  Status SetQueues(const std::string& topic, const std::vector<remoting::QueueData>& queues);
  // With a cluster: only the queues on its brokers.
  void DeleteTopic(const std::string& topic, const std::string& cluster);
  // Both return how many topics the broker has.
  std::int32_t WipeWritePerm(const std::string& broker_name);
  std::int32_t AddWritePerm(const std::string& broker_name);

  // Lists, sorted.
  remoting::ClusterInfo Clusters() const;
  std::vector<std::string> Topics() const;
  std::vector<std::string> TopicsOfCluster(const std::string& cluster) const;
  // Topics with all bits of `with` and none of `without` in their flags.
  std::vector<std::string> TopicsByFlags(std::int32_t with, std::int32_t without) const;
  // Cluster and broker names, and any broker's address.
  remoting::TopicList SystemTopics() const;
  // Null: not registered.
  const remoting::BrokerData* Broker(const std::string& broker_name) const;

 private:
  struct Live {  // by address
    std::string broker_name;
    std::string ha_address;
    remoting::DataVersion version;
    TimePoint last_seen;
    std::chrono::milliseconds timeout{0};
    ConnectionId connection = 0;
  };
  using QueuesOfTopic = std::map<std::string, remoting::QueueData>;  // by broker name

  Status Check(const BrokerRegistration& r) const;
  bool IsDeposed(const BrokerRegistration& r) const;
  bool TopicsChanged(const BrokerRegistration& r) const;
  void JoinCluster(const BrokerRegistration& r);
  void ApplyTopics(const BrokerRegistration& r, bool first, bool clear_write);
  RegistrationAnswer AnswerFor(const BrokerRegistration& r) const;
  void RemoveAddress(const std::string& broker_name, const std::string& address);
  void RemoveBroker(const std::string& broker_name);
  template <typename Predicate>
  void RemoveQueues(const std::string& broker_name, Predicate of_topic);
  template <typename Predicate>
  std::vector<RemovedBroker> RemoveLive(Predicate predicate);

  const RouteLimits limits_;
  std::map<std::string, std::set<std::string>> clusters_;  // broker names by cluster
  std::map<std::string, remoting::BrokerData> brokers_;    // by name; never without an address
  std::map<std::string, QueuesOfTopic> topics_;            // never without a queue
  std::map<std::string, Live> live_;                       // every address in brokers_ is here
};

}  // namespace triad::nameserver
