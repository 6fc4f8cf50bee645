#include "client/address_book.h"

#include <algorithm>
#include <set>

namespace triad::client {

bool AddressBook::Update(const remoting::TopicRouteData& route) {
  std::lock_guard hold(mutex_);
  bool news = false;
  for (const remoting::BrokerData& broker : route.broker_datas) {
    std::map<std::int64_t, std::string>& known = groups_[broker.broker_name];
    if (known == broker.broker_addrs) continue;
    for (const auto& [id, address] : broker.broker_addrs) {
      const auto before =
          std::find_if(known.begin(), known.end(),
                       [&address = address](const auto& item) { return item.second == address; });
      if (before == known.end()) news = true;
      // It leads now: what failed before it did says nothing.
      if (id == 0 && (before == known.end() || before->first != 0)) failed_at_.erase(address);
    }
    known = broker.broker_addrs;
  }
  return news;
}

std::string AddressBook::Pick(const std::string& broker_name, TimePoint now) const {
  std::lock_guard hold(mutex_);
  const auto group = groups_.find(broker_name);
  if (group == groups_.end()) return {};
  std::string oldest;
  TimePoint oldest_failure = TimePoint::max();
  for (const auto& [id, address] : group->second) {
    const auto failed = failed_at_.find(address);
    if (failed == failed_at_.end() || now - failed->second >= kSuspectTime) return address;
    if (failed->second < oldest_failure) {
      oldest_failure = failed->second;
      oldest = address;
    }
  }
  return oldest;
}

std::string AddressBook::PickId(const std::string& broker_name, std::int64_t broker_id,
                                TimePoint now) const {
  if (broker_id != 0) {
    std::lock_guard hold(mutex_);
    const auto group = groups_.find(broker_name);
    if (group != groups_.end()) {
      const auto peer = group->second.find(broker_id);
      if (peer != group->second.end() && !failed_at_.contains(peer->second)) return peer->second;
    }
  }
  return Pick(broker_name, now);
}

void AddressBook::NoteFailure(const std::string& address, TimePoint now) {
  std::lock_guard hold(mutex_);
  failed_at_[address] = now;
}

void AddressBook::NoteSuccess(const std::string& address) {
  std::lock_guard hold(mutex_);
  if (!failed_at_.empty()) failed_at_.erase(address);
}

std::vector<std::string> AddressBook::All() const {
  std::lock_guard hold(mutex_);
  std::set<std::string> all;
  for (const auto& [name, peers] : groups_) {
    for (const auto& [id, address] : peers) all.insert(address);
  }
  return {all.begin(), all.end()};
}

std::vector<std::string> AddressBook::Leaders() const {
  std::lock_guard hold(mutex_);
  std::set<std::string> leaders;
  for (const auto& [name, peers] : groups_) {
    const auto leader = peers.find(0);
    if (leader != peers.end()) leaders.insert(leader->second);
  }
  return {leaders.begin(), leaders.end()};
}

bool AddressBook::Contains(const std::string& address) const {
  const std::vector<std::string> all = All();
  return std::find(all.begin(), all.end(), address) != all.end();
}

}  // namespace triad::client
