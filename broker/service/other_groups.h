// OtherGroups: which other broker groups hold a topic, as the name servers and they themselves say.
//
// A group knows nothing of another one, but a topic's queues are those of all its groups. Bounds:
// two rounds of kAskBudget, however many topics; kTopicsMax of them. Thread: safe on every thread;
// `done` runs on the remoting client's thread or the caller's. Source: wire.md §3.3 (105), admin.md
// §2.5 (351).

#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "broker/service/registration.h"
#include "common/ids.h"
#include "common/status.h"
#include "remoting/client.h"
#include "remoting/route_bodies.h"

namespace triad::broker {

class OtherGroups {
 public:
  static constexpr std::chrono::milliseconds kAskBudget{500};
  static constexpr std::size_t kTopicsMax = 1000;

  struct Holder {
    std::string broker_name;
    bool answered = false;                           // at least one of its peers
    std::optional<remoting::TopicConfigBody> topic;  // nothing: it did not say
  };
  // kUnavailable: there are name servers and none of them answered.
  using Found = Result<std::vector<Holder>>;

  // All outlive it and every answer. `own` is this group's brokerName.
  OtherGroups(std::string own, const Registration& registration, remoting::Client& client)
      : own_(std::move(own)), registration_(registration), client_(client) {}

  // The other groups in which messages can be sent to each of the topics now, in their order. All
  // are asked about at the same time.
  void WhoTakes(const std::vector<Topic>& topics, std::function<void(std::vector<Found>)> done);

 private:
  using Done = std::function<void(Found)>;
  void WhoTakesOne(const Topic& topic, Done done);
  // By broker name: the addresses of its peers.
  using Takers = std::map<std::string, std::set<std::string>>;
  static void AddTakers(const remoting::TopicRouteData& route, const std::string& own,
                        Takers* takers);
  void AskHolders(const Topic& topic, Takers takers, Done done);

  const std::string own_;
  const Registration& registration_;
  remoting::Client& client_;
};

}  // namespace triad::broker
