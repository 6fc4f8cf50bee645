// Lanes: the queues that a load works on, and where they live now.
//
// Asks the name server, creates absent topics. Blocking; main thread (Refresh also from a loop's).
// Works with the original's servers too. Errors: kNotFound, kUnavailable, in words.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/status.h"
#include "remoting/client.h"

namespace triad::bench {

struct Lane {
  std::string topic;
  std::string broker_name;
  std::size_t group = 0;  // index into Lanes::groups
  std::int32_t queue = 0;
};

struct BrokerGroupPlace {
  std::string broker_name;
  std::string leader;                       // "ip:port"
  std::map<std::int64_t, std::string> all;  // brokerId -> address, the leader's too
};

struct LaneOptions {
  std::string namesrv;
  std::string topic;  // with topics > 1: topic-0, topic-1, ...
  int topics = 1;
  int queues = 8;  // of a topic that is created
  bool may_create = true;
};

class Lanes {
 public:
  static Result<std::unique_ptr<Lanes>> Find(const LaneOptions& options);
  ~Lanes();
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  const std::vector<Lane>& lanes() const { return lanes_; }
  const std::vector<BrokerGroupPlace>& groups() const { return groups_; }
  // Asks again who leads which group. What cannot be learnt stays as it was.
  void Refresh();
  // The end of every lane, as its leader says.
  Result<std::vector<std::int64_t>> Ends();
  // Addresses of every peer of every group.
  std::vector<std::string> AllAddresses() const;

 private:
  explicit Lanes(const LaneOptions& options);
  Status FindTopic(const std::string& topic);
  Status CreateTopic(const std::string& topic);
  std::size_t GroupOf(const std::string& broker_name);
  std::vector<std::string> Topics() const;

  const LaneOptions options_;
  std::unique_ptr<remoting::Client> client_;
  std::vector<Lane> lanes_;
  std::vector<BrokerGroupPlace> groups_;
};

}  // namespace triad::bench
