// RouteCache: the routes of the topics in use, fetched on demand and polled.
//
// Thread: safe on every thread (leaf mutex); callbacks on the remoting client's thread. Bounds: one
// fetch per topic at a time; whoever asks meanwhile joins it. A route that was found is kept when
// the name server later has none (wire.md §3.3).

#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "client/address_book.h"
#include "client/name_servers.h"
#include "client/route.h"

namespace triad::client {

class RouteCache {
 public:
  using Done = std::function<void(Result<RoutePtr>)>;
  // Called when a route changed: the topic, and whether it names an address for the first time.
  using OnChange = std::function<void(const std::string& topic, bool new_address)>;

  // Both pointers outlive this object.
  RouteCache(NameServers* name_servers, AddressBook* book, OnChange on_change);

  RoutePtr Find(const std::string& topic) const;  // null when not known
  // From a name server, always. `for_publish`: a topic that does not exist is looked up as the
  // template from which the broker will create it. Errors: kNotFound, kUnavailable.
  void Fetch(const std::string& topic, bool for_publish, Done done);
  // Cached or fetched. Blocks.
  Result<RoutePtr> Get(const std::string& topic, bool for_publish);
  // Fetches without waiting, at most once per kRefreshGap and topic.
  void RefreshSoon(const std::string& topic);
  void RefreshAll();

 private:
  static constexpr std::chrono::milliseconds kRefreshGap{50};
  struct Entry {
    RoutePtr route;
    bool for_publish = false;  // someone sends to it
    bool fetching = false;
    TimePoint fetched_at{};
    std::vector<Done> waiting;
  };
  void Ask(const std::string& topic, bool for_publish);
  void AskForTemplate(const std::string& topic);
  void OnAnswer(const std::string& topic, Result<RoutePtr> route);

  NameServers* const name_servers_;
  AddressBook* const book_;
  const OnChange on_change_;
  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;
};

}  // namespace triad::client
