#include "broker/service/client_registry.h"

#include <glog/logging.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/log_rate_limiter.h"

namespace triad::broker {
namespace {

constexpr std::chrono::seconds kExpiry{120};  // wire.md §7.1

constexpr std::size_t kNamesInAWarning = 5;

using ClientKind = std::pair<std::string, std::int32_t>;  // language, version

ClientKind KindOf(const Member& member) {
  return {member.client.language, member.client.version};
}

}  // namespace

ConsumerRegistry::ConsumerRegistry(std::size_t max_members, OnChange on_change)
    : max_members_(max_members), on_change_(std::move(on_change)) {
  CHECK_GT(max_members_, 0u);
}

std::vector<Member> ConsumerRegistry::MembersOf(const Group& group) const {
  std::vector<Member> members;
  members.reserve(group.members.size());
  for (const auto& [id, member] : group.members) members.push_back(member);
  return members;
}

Result<ConsumerRegistry::Renewed> ConsumerRegistry::Heartbeat(
    const remoting::ConnectionPtr& connection, const ClientInfo& client,
    const remoting::ConsumerData& data, bool without_subscriptions, TimePoint now) {
  const GroupName name(data.group_name);
  Renewed renewed;
  std::vector<Member> to_tell;
  {
    const std::lock_guard lock(mutex_);
    const auto known = groups_.find(name);
    renewed.group_was_known = known != groups_.end();
    renewed.is_new = !renewed.group_was_known || !known->second.members.contains(connection->id());
    if (renewed.is_new && members_ >= max_members_) {
      return Status::Busy("too many consumers (" + std::to_string(max_members_) +
                          ") are connected to this broker");
    }
    Group& group = groups_[name];
    group.members[connection->id()] = Member{connection, client, now};
    if (renewed.is_new) {
      ++members_;
      groups_of_connection_[connection->id()].push_back(name);
    }
    group.consume_type = data.consume_type;
    group.message_model = data.message_model;
    group.consume_from_where = data.consume_from_where;
    if (!without_subscriptions) {
      renewed.topics_changed = MergeSubscriptions(data, client, now, &group);
    }
    const bool clustering = data.message_model != remoting::MessageModel::kBroadcasting;
    if ((renewed.is_new || renewed.topics_changed) && clustering) to_tell = MembersOf(group);
  }
  // The connection may have ended before it was in the table: nobody would take it out again.
  if (renewed.is_new && connection->closed()) {
    OnConnectionClosed(connection);
  } else if (!to_tell.empty()) {
    on_change_(name, to_tell);
  }
  return renewed;
}

// Members of one group that subscribe differently make messages vanish; nobody else would say so.
void ConsumerRegistry::WarnOfConflict(const GroupName& name, const Group& group,
                                      const ClientInfo& client,
                                      const remoting::SubscriptionData& old_one,
                                      const remoting::SubscriptionData& new_one, TimePoint now) {
  const auto suppressed = conflict_warnings_.Allow(now);
  if (!suppressed) return;
  std::string others;
  std::size_t named = 0;
  for (const auto& [id, member] : group.members) {
    if (member.client.id == client.id || ++named > kNamesInAWarning) continue;
    others += (others.empty() ? "" : ", ") + member.client.id.value();
  }
  if (named > kNamesInAWarning) others += ", ...";
  LOG(WARNING) << "members of consumer group " << name << " subscribe to " << new_one.topic
               << " differently: \"" << old_one.sub_string << "\" so far (" << others << "), \""
               << new_one.sub_string << "\" by " << client.id
               << "; the latest wins, messages may vanish" << SuppressedNote(*suppressed);
}

bool ConsumerRegistry::MergeSubscriptions(const remoting::ConsumerData& heartbeat,
                                          const ClientInfo& client, TimePoint now, Group* group) {
  bool topics_changed = false;
  std::map<Topic, SubscriptionPtr> merged;
  for (const remoting::SubscriptionData& data : heartbeat.subscriptions) {
    const Topic topic(data.topic);
    const auto old = group->subscriptions.find(topic);
    if (old == group->subscriptions.end()) {
      topics_changed = true;
      merged[topic] = std::make_shared<const remoting::SubscriptionData>(data);
      continue;
    }
    const bool differs = old->second->sub_string != data.sub_string ||
                         old->second->expression_type != data.expression_type;
    if (differs && group->members.size() > 1) {
      ++conflicts_;
      WarnOfConflict(GroupName(heartbeat.group_name), *group, client, *old->second, data, now);
    }
    merged[topic] = data.sub_version > old->second->sub_version
                        ? std::make_shared<const remoting::SubscriptionData>(data)
                        : old->second;
  }
  for (const auto& [topic, data] : group->subscriptions) {
    if (!merged.contains(topic)) topics_changed = true;
  }
  group->subscriptions = std::move(merged);
  return topics_changed;
}

void ConsumerRegistry::Unregister(const remoting::ConnectionPtr& connection,
                                  const GroupName& name) {
  std::vector<Member> to_tell;
  {
    const std::lock_guard lock(mutex_);
    const auto found = groups_.find(name);
    if (found == groups_.end() || found->second.members.erase(connection->id()) == 0) return;
    --members_;
    auto& groups = groups_of_connection_[connection->id()];
    std::erase(groups, name);
    if (groups.empty()) groups_of_connection_.erase(connection->id());
    if (found->second.members.empty()) {
      groups_.erase(found);
    } else if (found->second.message_model != remoting::MessageModel::kBroadcasting) {
      to_tell = MembersOf(found->second);
    }
  }
  if (!to_tell.empty()) on_change_(name, to_tell);
}

void ConsumerRegistry::OnConnectionClosed(const remoting::ConnectionPtr& connection) {
  std::vector<GroupName> groups;
  {
    const std::lock_guard lock(mutex_);
    const auto found = groups_of_connection_.find(connection->id());
    if (found == groups_of_connection_.end()) return;
    groups = found->second;
  }
  for (const GroupName& group : groups) Unregister(connection, group);
}

void ConsumerRegistry::Expire(TimePoint now) {
  std::vector<std::pair<GroupName, remoting::ConnectionPtr>> gone;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, group] : groups_) {
      for (const auto& [id, member] : group.members) {
        if (now - member.last_heartbeat >= kExpiry) gone.emplace_back(name, member.connection);
      }
    }
  }
  for (const auto& [name, connection] : gone) {
    LOG(WARNING) << "consumer at " << connection->remote_address() << " in group " << name
                 << " sent no heartbeat for " << kExpiry.count() << " s: dropped";
    Unregister(connection, name);
    connection->Close();
  }
}

std::optional<ConsumerGroupView> ConsumerRegistry::Find(const GroupName& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = groups_.find(name);
  if (found == groups_.end()) return std::nullopt;
  const Group& group = found->second;
  return ConsumerGroupView{group.consume_type, group.message_model, group.consume_from_where,
                           MembersOf(group), group.subscriptions};
}

std::vector<MemberCount> ConsumerRegistry::Counts() const {
  std::vector<MemberCount> counts;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, group] : groups_) {
    std::map<ClientKind, std::size_t> kinds;
    for (const auto& [id, member] : group.members) ++kinds[KindOf(member)];
    for (const auto& [kind, members] : kinds) {
      counts.push_back({name.value(), kind.first, kind.second, group.consume_type, members});
    }
  }
  return counts;
}

SubscriptionPtr ConsumerRegistry::FindSubscription(const GroupName& name,
                                                   const Topic& topic) const {
  const std::lock_guard lock(mutex_);
  const auto found = groups_.find(name);
  if (found == groups_.end()) return nullptr;
  const auto subscription = found->second.subscriptions.find(topic);
  return subscription == found->second.subscriptions.end() ? nullptr : subscription->second;
}

bool ConsumerRegistry::Online(const GroupName& name) const {
  const std::lock_guard lock(mutex_);
  return groups_.contains(name);
}

std::vector<ClientId> ConsumerRegistry::ClientIds(const GroupName& name) const {
  std::vector<ClientId> ids;
  const std::lock_guard lock(mutex_);
  const auto found = groups_.find(name);
  if (found == groups_.end()) return ids;
  for (const auto& [id, member] : found->second.members) ids.push_back(member.client.id);
  return ids;
}

std::vector<GroupName> ConsumerRegistry::GroupsOf(const Topic& topic) const {
  std::vector<GroupName> names;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, group] : groups_) {
    if (group.subscriptions.contains(topic)) names.push_back(name);
  }
  return names;
}

remoting::ConnectionPtr ConsumerRegistry::FindClient(const GroupName& name,
                                                     const ClientId& client) const {
  const std::lock_guard lock(mutex_);
  const auto found = groups_.find(name);
  if (found == groups_.end()) return nullptr;
  for (const auto& [id, member] : found->second.members) {
    if (member.client.id == client) return member.connection;
  }
  return nullptr;
}

std::size_t ConsumerRegistry::subscription_conflicts() const {
  const std::lock_guard lock(mutex_);
  return conflicts_;
}

ProducerRegistry::ProducerRegistry(std::size_t max_members) : max_members_(max_members) {
  CHECK_GT(max_members_, 0u);
}

Status ProducerRegistry::Heartbeat(const remoting::ConnectionPtr& connection,
                                   const ClientInfo& client, const std::string& group,
                                   TimePoint now) {
  bool is_new = false;
  {
    const std::lock_guard lock(mutex_);
    const auto known = groups_.find(group);
    is_new = known == groups_.end() || !known->second.contains(connection->id());
    if (is_new && members_ >= max_members_) {
      return Status::Busy("too many producers (" + std::to_string(max_members_) +
                          ") are connected to this broker");
    }
    groups_[group][connection->id()] = Member{connection, client, now};
    if (is_new) ++members_;
  }
  if (is_new && connection->closed()) OnConnectionClosed(connection);
  return Status::Ok();
}

void ProducerRegistry::Unregister(const remoting::ConnectionPtr& connection,
                                  const std::string& group) {
  const std::lock_guard lock(mutex_);
  const auto found = groups_.find(group);
  if (found == groups_.end()) return;
  members_ -= found->second.erase(connection->id());
  if (found->second.empty()) groups_.erase(found);
}

void ProducerRegistry::OnConnectionClosed(const remoting::ConnectionPtr& connection) {
  const std::lock_guard lock(mutex_);
  for (auto& [name, members] : groups_) members_ -= members.erase(connection->id());
  std::erase_if(groups_, [](const auto& group) { return group.second.empty(); });
}

void ProducerRegistry::Expire(TimePoint now) {
  const std::lock_guard lock(mutex_);
  for (auto& [name, members] : groups_) {
    members_ -= std::erase_if(
        members, [now](const auto& m) { return now - m.second.last_heartbeat >= kExpiry; });
  }
  std::erase_if(groups_, [](const auto& group) { return group.second.empty(); });
}

std::vector<Member> ProducerRegistry::Find(const std::string& group) const {
  std::vector<Member> members;
  const std::lock_guard lock(mutex_);
  const auto found = groups_.find(group);
  if (found == groups_.end()) return members;
  for (const auto& [id, member] : found->second) members.push_back(member);
  return members;
}

std::vector<MemberCount> ProducerRegistry::Counts() const {
  std::map<ClientKind, std::size_t> kinds;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, members] : groups_) {
      for (const auto& [id, member] : members) ++kinds[KindOf(member)];
    }
  }
  std::vector<MemberCount> counts;
  for (const auto& [kind, members] : kinds) {
    MemberCount& count = counts.emplace_back();
    count.language = kind.first;
    count.version = kind.second;
    count.members = members;
  }
  return counts;
}

std::map<std::string, std::vector<Member>> ProducerRegistry::All() const {
  std::map<std::string, std::vector<Member>> all;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, members] : groups_) {
    for (const auto& [id, member] : members) all[name].push_back(member);
  }
  return all;
}

remoting::ConnectionPtr ProducerRegistry::FindClient(const ClientId& client) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, members] : groups_) {
    for (const auto& [id, member] : members) {
      if (member.client.id == client) return member.connection;
    }
  }
  return nullptr;
}

}  // namespace triad::broker
