// Who is connected: consumer groups with their members and subscriptions, and producer groups.
//
// The key of a membership is the CONNECTION; a client that heartbeats on a second connection is a
// second member until the first one closes. A member leaves by unregistering, by its connection's
// end, or after 120 s without a heartbeat (then its connection is closed). Every peer keeps its own
// tables: clients heartbeat all of them. Bounds: max_members in all groups together; newcomers
// beyond it are refused (kBusy). Thread: safe everywhere; a leaf mutex, nothing is sent under it.
// Source: wire.md §4.1, §4.2, §7.1-7.3.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/ids.h"
#include "common/log_rate_limiter.h"
#include "common/status.h"
#include "remoting/client_bodies.h"
#include "remoting/server.h"

namespace triad::broker {

using SubscriptionPtr = std::shared_ptr<const remoting::SubscriptionData>;

struct ClientInfo {
  ClientId id;
  std::string language;
  std::int32_t version = 0;
};
struct Member {
  remoting::ConnectionPtr connection;
  ClientInfo client;
  TimePoint last_heartbeat;
};

// A group's state, copied.
struct ConsumerGroupView {
  remoting::ConsumeType consume_type = remoting::ConsumeType::kPassively;
  remoting::MessageModel message_model = remoting::MessageModel::kClustering;
  remoting::ConsumeFromWhere consume_from_where = remoting::ConsumeFromWhere::kLastOffset;
  std::vector<Member> members;
  std::map<Topic, SubscriptionPtr> subscriptions;
};

// Members of one group that are alike.
struct MemberCount {
  std::string group;
  std::string language;
  std::int32_t version = 0;
  remoting::ConsumeType consume_type = remoting::ConsumeType::kPassively;  // of consumers
  std::size_t members = 0;
};

class ConsumerRegistry {
 public:
  // Called for each group whose membership or topics changed, with its members; outside the lock.
  using OnChange = std::function<void(const GroupName&, const std::vector<Member>&)>;
  ConsumerRegistry(std::size_t max_members, OnChange on_change);

  // Adds or renews; `without_subscriptions` keeps the stored ones. Errors: kBusy when full.
  struct Renewed {
    bool is_new = false;           // a new connection in the group
    bool topics_changed = false;   // a topic was added or removed
    bool group_was_known = false;  // it had members and subscriptions before
  };
  Result<Renewed> Heartbeat(const remoting::ConnectionPtr& connection, const ClientInfo& client,
                            const remoting::ConsumerData& group, bool without_subscriptions,
                            TimePoint now);
  void Unregister(const remoting::ConnectionPtr& connection, const GroupName& group);
  void OnConnectionClosed(const remoting::ConnectionPtr& connection);
  // Drops members without a heartbeat since `now` - 120 s and closes their connections.
  void Expire(TimePoint now);

  std::optional<ConsumerGroupView> Find(const GroupName& group) const;
  // Null when the group is offline or not subscribed to the topic.
  SubscriptionPtr FindSubscription(const GroupName& group, const Topic& topic) const;
  bool Online(const GroupName& group) const;
  std::vector<ClientId> ClientIds(const GroupName& group) const;
  std::vector<GroupName> GroupsOf(const Topic& topic) const;  // online, subscribed
  // The connection of one client in a group; null when not there.
  remoting::ConnectionPtr FindClient(const GroupName& group, const ClientId& client) const;
  std::vector<MemberCount> Counts() const;
  std::size_t subscription_conflicts() const;  // members of one group that differ (cases OFS-5)

 private:
  struct Group {
    remoting::ConsumeType consume_type = remoting::ConsumeType::kPassively;
    remoting::MessageModel message_model = remoting::MessageModel::kClustering;
    remoting::ConsumeFromWhere consume_from_where = remoting::ConsumeFromWhere::kLastOffset;
    std::map<std::uint64_t, Member> members;  // by connection id
    std::map<Topic, SubscriptionPtr> subscriptions;
  };
  bool MergeSubscriptions(const remoting::ConsumerData& heartbeat, const ClientInfo& client,
                          TimePoint now, Group* group);
  std::vector<Member> MembersOf(const Group& group) const;
  void WarnOfConflict(const GroupName& name, const Group& group, const ClientInfo& client,
                      const remoting::SubscriptionData& old_one,
                      const remoting::SubscriptionData& new_one, TimePoint now);

  const std::size_t max_members_;
  const OnChange on_change_;
  mutable std::mutex mutex_;
  std::map<GroupName, Group> groups_;
  std::map<std::uint64_t, std::vector<GroupName>> groups_of_connection_;
  std::size_t members_ = 0;
  std::size_t conflicts_ = 0;
  LogRateLimiter conflict_warnings_{std::chrono::seconds(10)};
};

class ProducerRegistry {
 public:
  explicit ProducerRegistry(std::size_t max_members);

  Status Heartbeat(const remoting::ConnectionPtr& connection, const ClientInfo& client,
                   const std::string& group, TimePoint now);
  void Unregister(const remoting::ConnectionPtr& connection, const std::string& group);
  void OnConnectionClosed(const remoting::ConnectionPtr& connection);
  void Expire(TimePoint now);

  std::vector<Member> Find(const std::string& group) const;  // empty: unknown
  std::map<std::string, std::vector<Member>> All() const;
  std::vector<MemberCount> Counts() const;  // group: empty, all groups together
  // A connection of the producer with this client id; null: there is none. O(producers).
  remoting::ConnectionPtr FindClient(const ClientId& client) const;

 private:
  const std::size_t max_members_;
  mutable std::mutex mutex_;
  std::map<std::string, std::map<std::uint64_t, Member>> groups_;
  std::size_t members_ = 0;
};

}  // namespace triad::broker
