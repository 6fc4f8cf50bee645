// The coming and going of brokers. Rule numbers are those of wire.md §3.2.

#include <glog/logging.h>

#include <algorithm>
#include <iterator>

#include "nameserver/route_table.h"

namespace triad::nameserver {

using remoting::BrokerData;
using remoting::QueueData;

RouteTable::RouteTable(RouteLimits limits) : limits_(limits) {
  CHECK_GT(limits_.brokers, 0u);
  CHECK_GT(limits_.topics, 0u);
}

Status RouteTable::Check(const BrokerRegistration& r) const {
  if (r.cluster.empty()) return Status::InvalidArgument("clusterName is empty");
  if (r.broker_name.empty()) return Status::InvalidArgument("brokerName is empty");
  if (r.address.empty()) return Status::InvalidArgument("brokerAddr is empty");
  if (r.broker_id < 0) {
    return Status::InvalidArgument("register broker failed: brokerId " +
                                   std::to_string(r.broker_id) + " must not be negative");
  }
  const BrokerData* broker = Broker(r.broker_name);
  const bool known_id = broker != nullptr && broker->broker_addrs.contains(r.broker_id);
  if (!known_id && r.topics.size() == 1) {  // rule 4
    return Status::InvalidArgument("register broker failed: the first registration of brokerId " +
                                   std::to_string(r.broker_id) + " of " + r.broker_name +
                                   " carries one topic only");
  }
  if (broker == nullptr && brokers_.size() >= limits_.brokers) {
    return Status::Busy("register broker failed: too many broker names");
  }
  if (!live_.contains(r.address) && live_.size() >= limits_.addresses) {
    return Status::Busy("register broker failed: too many broker addresses");
  }
  const auto fresh = std::count_if(r.topics.begin(), r.topics.end(), [this](const auto& topic) {
    return !topics_.contains(topic.first);
  });
  if (topics_.size() + static_cast<std::size_t>(fresh) > limits_.topics) {
    return Status::Busy("register broker failed: too many topics");
  }
  return Status::Ok();
}

// Rule 3: the holder of this id was registered by a later leader. The leaders of a group may share
// one address (leaderIP): then the connection says whether it is the same one.
bool RouteTable::IsDeposed(const BrokerRegistration& r) const {
  const BrokerData* broker = Broker(r.broker_name);
  if (broker == nullptr) return false;
  const auto holder = broker->broker_addrs.find(r.broker_id);
  if (holder == broker->broker_addrs.end()) return false;
  const auto live = live_.find(holder->second);
  CHECK(live != live_.end()) << holder->second << " is routed but not alive";
  if (holder->second == r.address && live->second.connection == r.connection) return false;
  return live->second.version.state_version > r.version.state_version;
}

Result<RegistrationAnswer> RouteTable::Register(const BrokerRegistration& r, TimePoint now) {
  TRIAD_RETURN_IF_ERROR(Check(r));

  // An address that served another group before belongs to this one now.
  const auto before = live_.find(r.address);
  if (before != live_.end() && before->second.broker_name != r.broker_name) {
    const std::string old_name = before->second.broker_name;
    Unregister(old_name, r.address);
  }
  const bool deposed = IsDeposed(r);
  BrokerData& broker = brokers_[r.broker_name];
  std::erase_if(broker.broker_addrs, [&r](const auto& entry) {  // rule 2
    return entry.second == r.address && entry.first != r.broker_id;
  });
  if (deposed) {
    const auto holder = broker.broker_addrs.find(r.broker_id);
    CHECK(holder != broker.broker_addrs.end());
    if (holder->second != r.address) live_.erase(r.address);
    return RegistrationAnswer{};
  }

  JoinCluster(r);  // rule 1
  const bool first = !broker.broker_addrs.contains(r.broker_id);
  broker.broker_addrs[r.broker_id] = r.address;  // rule 5

  // Rule 6: the leader's topics count; without any leader, those of the smallest id.
  const bool is_leader = r.broker_id == kLeaderBrokerId;
  const bool stands_in = !is_leader && r.enable_acting_master.has_value() &&
                         broker.broker_addrs.begin()->first == r.broker_id;
  if (is_leader || stands_in) {
    ApplyTopics(r, first, stands_in && broker.enable_acting_master);
  }

  live_[r.address] = Live{.broker_name = r.broker_name,  // rule 7
                          .ha_address = r.ha_address,
                          .version = r.version,
                          .last_seen = now,
                          .timeout = r.timeout.value_or(kDefaultBrokerTimeout),
                          .connection = r.connection};
  return AnswerFor(r);
}

void RouteTable::JoinCluster(const BrokerRegistration& r) {
  BrokerData& broker = brokers_[r.broker_name];
  if (!broker.cluster.empty() && broker.cluster != r.cluster) {
    const auto old = clusters_.find(broker.cluster);
    CHECK(old != clusters_.end());
    old->second.erase(r.broker_name);
    if (old->second.empty()) clusters_.erase(old);
  }
  broker.broker_name = r.broker_name;
  broker.cluster = r.cluster;
  broker.enable_acting_master = r.enable_acting_master.value_or(false);
  clusters_[r.cluster].insert(r.broker_name);
}

template <typename Predicate>
void RouteTable::RemoveQueues(const std::string& broker_name, Predicate of_topic) {
  for (auto topic = topics_.begin(); topic != topics_.end();) {
    if (of_topic(topic->first)) topic->second.erase(broker_name);
    topic = topic->second.empty() ? topics_.erase(topic) : std::next(topic);
  }
}

bool RouteTable::TopicsChanged(const BrokerRegistration& r) const {
  const auto live = live_.find(r.address);
  return live == live_.end() || !(live->second.version == r.version);
}

void RouteTable::ApplyTopics(const BrokerRegistration& r, bool first, bool clear_write) {
  const bool changed = first || TopicsChanged(r);
  if (r.delete_missing_topics && changed) {
    RemoveQueues(r.broker_name,
                 [&r](const std::string& topic) { return !r.topics.contains(topic); });
  }
  for (const auto& [name, config] : r.topics) {
    const auto found = topics_.find(name);
    const bool unknown = found == topics_.end() || !found->second.contains(r.broker_name);
    if (!changed && !unknown) continue;
    QueueData queues;
    queues.broker_name = r.broker_name;
    queues.read_queue_nums = config.read_queue_nums;
    queues.write_queue_nums = config.write_queue_nums;
    queues.perm = clear_write ? config.perm & ~kPermWrite : config.perm;
    queues.topic_sys_flag = config.topic_sys_flag;
    topics_[name][r.broker_name] = std::move(queues);
  }
}

// Rule 8.
RegistrationAnswer RouteTable::AnswerFor(const BrokerRegistration& r) const {
  if (r.broker_id == kLeaderBrokerId) return {};
  const BrokerData* broker = Broker(r.broker_name);
  CHECK(broker != nullptr);
  const auto leader = broker->broker_addrs.find(kLeaderBrokerId);
  if (leader == broker->broker_addrs.end()) return {};
  const auto live = live_.find(leader->second);
  CHECK(live != live_.end()) << leader->second << " is routed but not alive";
  return {.leader_address = leader->second, .leader_ha_address = live->second.ha_address};
}

void RouteTable::Unregister(const std::string& broker_name, const std::string& address) {
  const auto live = live_.find(address);
  if (live != live_.end()) {
    const std::string registered_name = live->second.broker_name;
    live_.erase(live);
    RemoveAddress(registered_name, address);
  }
  RemoveAddress(broker_name, address);
}

void RouteTable::RemoveAddress(const std::string& broker_name, const std::string& address) {
  const auto found = brokers_.find(broker_name);
  if (found == brokers_.end()) return;
  BrokerData& broker = found->second;
  std::erase_if(broker.broker_addrs,
                [&address](const auto& entry) { return entry.second == address; });
  if (broker.broker_addrs.empty()) return RemoveBroker(broker_name);
  if (!broker.enable_acting_master || broker.broker_addrs.contains(kLeaderBrokerId)) return;
  for (auto& [topic, queues] : topics_) {
    const auto mine = queues.find(broker_name);
    if (mine != queues.end()) mine->second.perm &= ~kPermWrite;
  }
}

void RouteTable::RemoveBroker(const std::string& broker_name) {
  RemoveQueues(broker_name, [](const std::string& /*topic*/) { return true; });
  const auto cluster = clusters_.find(brokers_[broker_name].cluster);
  if (cluster != clusters_.end()) {
    cluster->second.erase(broker_name);
    if (cluster->second.empty()) clusters_.erase(cluster);
  }
  brokers_.erase(broker_name);
}

template <typename Predicate>
std::vector<RemovedBroker> RouteTable::RemoveLive(Predicate predicate) {
  std::vector<RemovedBroker> removed;
  for (const auto& [address, live] : live_) {
    if (predicate(live)) removed.push_back({live.broker_name, address, live.connection});
  }
  for (const RemovedBroker& broker : removed) Unregister(broker.broker_name, broker.address);
  return removed;
}

std::vector<RemovedBroker> RouteTable::ConnectionClosed(ConnectionId connection) {
  return RemoveLive([connection](const Live& live) { return live.connection == connection; });
}

std::vector<RemovedBroker> RouteTable::Expire(TimePoint now) {
  return RemoveLive([now](const Live& live) { return live.last_seen + live.timeout <= now; });
}

bool RouteTable::Heartbeat(const std::string& address, ConnectionId connection, TimePoint now,
                           std::optional<std::int64_t> term) {
  const auto live = live_.find(address);
  if (live == live_.end()) return false;
  if (term && *term < live->second.version.state_version) return false;
  live->second.last_seen = now;
  live->second.connection = connection;
  return true;
}

}  // namespace triad::nameserver
