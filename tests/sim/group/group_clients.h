// GroupClients: producers, consumers and lockers of one schedule.
//
// Each has at most one request in flight and knows what it may believe; every answer goes to the
// oracle. Source of the behaviour: wire.md §4..§7. Thread: the simulator's only one.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/state/replicated_state.h"
#include "tests/sim/group/event_loop.h"
#include "tests/sim/group/group_net.h"
#include "tests/sim/group/group_options.h"
#include "tests/sim/group/group_oracle.h"
#include "tests/sim/group/journal.h"
#include "tests/sim/random.h"

namespace triad::sim {

inline constexpr Micros kRetryPause = 30 * kMs;
inline constexpr char kTopic[] = "T0";
inline constexpr char kDedupTopic[] = "TD";  // stores nothing twice

struct ClientWorld {
  const GroupOptions& options;
  EventLoop& loop;
  GroupNet& net;
  GroupOracle& oracle;
  Journal& journal;
  Random& dice;
  bool& has_dedup_topic;  // it was created, and that was acknowledged
};

// What all clients do: ask a peer, another one after a failure.
class GroupClient {
 public:
  GroupClient(const ClientWorld& world, int node) : world_(world), node_(node) {}
  virtual ~GroupClient() = default;
  virtual void Begin() = 0;
  // From now on it finishes what it is about, and nothing new.
  void Finish() { finishing_ = true; }

 protected:
  void Ask(remoting::Command request, GroupNet::Done done);
  void Later(Micros gap, std::function<void()> task);
  // The next one: whoever may ask only so often meets a member soon, however many have left.
  void AnotherPeer() { target_ = (target_ + 1) % world_.options.machines(); }
  TopicQueue AnyQueue();

  const ClientWorld world_;
  const int node_;
  bool finishing_ = false;
  int target_ = 0;
};

class Producer final : public GroupClient {
 public:
  using GroupClient::GroupClient;
  void Begin() override { Next(); }
  // Sends one more, until it is acknowledged, to every queue; then `done`.
  void SendLast(std::function<void()> done);

 private:
  struct Send {
    std::vector<std::string> values;  // more than one: a batch
    TopicQueue queue;
    int delay_level = 0;
    int tries = 0;
    bool one_way = false;  // nobody answers
    bool again = false;    // was acknowledged, and sent once more
    bool must = false;     // tried until it is acknowledged
    std::function<void()> done;
  };
  void Next();
  Send MakeSend();
  std::string NextValue() {
    return "p" + std::to_string(node_) + "-" + std::to_string(++sequence_);
  }
  void Try(const std::shared_ptr<Send>& send);
  void OnAnswer(const std::shared_ptr<Send>& send, const Result<remoting::Command>& answer);
  remoting::Command CommandOf(const Send& send);

  std::uint64_t sequence_ = 0;
  std::map<TopicQueue, std::int64_t> last_offset_;
};

class Consumer final : public GroupClient {
 public:
  using GroupClient::GroupClient;
  void Begin() override { Register(); }

 private:
  void Register();  // the heartbeat that creates the group
  void Next();
  void Pull(const TopicQueue& queue);
  void Commit(const TopicQueue& queue);
  void Query(const TopicQueue& queue);
  void QueryMax(const TopicQueue& queue);
  // The first of the pulled records is to be sent back.
  void Choose(std::string_view records);
  void SendBack();
  broker::GroupQueue KeyOf(const TopicQueue& queue) const;

  struct Chosen {
    PhysicalOffset at;
    std::string value;
  };
  std::map<TopicQueue, std::int64_t> next_;
  std::optional<Chosen> chosen_;
};

// Creates the topic that stores nothing twice; then lets topics come and go.
class TopicKeeper final : public GroupClient {
 public:
  using GroupClient::GroupClient;
  void Begin() override { world_.options.dedup ? MakeDedupTopic() : Next(); }

 private:
  void Next();
  void MakeDedupTopic();
  void Create(const std::string& topic, const std::string& attributes, GroupNet::Done done);
  void Delete(const std::string& topic);
};

// The group's operator: adds, promotes and removes peers, as docs/operations.md says.
class MemberKeeper final : public GroupClient {
 public:
  struct Ground {
    const std::vector<std::unique_ptr<SimPeer>>& peers;
    std::function<void(int machine)> start;  // a new peer, on a machine that is free
  };
  MemberKeeper(const ClientWorld& world, int node, Ground ground)
      : GroupClient(world, node), ground_(std::move(ground)) {}
  void Begin() override { Next(); }
  std::uint64_t refused() const { return refused_; }
  std::uint64_t unknown() const { return unknown_; }
  std::uint64_t dead_removed() const { return CountRemoved(dead_); }
  std::uint64_t leaders_removed() const { return CountRemoved(leaders_); }

 private:
  void Next();
  std::optional<GroupOracle::Change> Pick();
  std::optional<GroupOracle::Change> PickNew();
  std::optional<GroupOracle::Change> PickRemoval();
  std::size_t VotersLeft() const;  // when all removals that may come true do
  void Demand(const GroupOracle::Change& change);
  void OnAnswer(const GroupOracle::Change& change, const Result<remoting::Command>& answer);
  std::uint64_t CountRemoved(const std::set<PeerId>& ids) const;
  const SimPeer& peer(const PeerId& id) const;
  bool IsHere(const PeerId& id) const;  // its machine is not another peer's by now

  const Ground ground_;
  std::set<PeerId> dead_;     // when their removal was asked for
  std::set<PeerId> leaders_;  // the same
  std::uint64_t refused_ = 0;
  std::uint64_t unknown_ = 0;
};

class Locker final : public GroupClient {
 public:
  using GroupClient::GroupClient;
  void Begin() override { Next(); }

 private:
  void Next();
  void Lock();
  void Unlock();
  std::string Body() const;
  std::vector<TopicQueue> Queues() const;
};

// Reads every queue of one peer from its beginning to where the oracle says it ends.
class Drainer final : public GroupClient {
 public:
  // `on_damaged`: the peer says again and again that it cannot read what it should have.
  Drainer(const ClientWorld& world, int node, int peer, std::function<void()> on_damaged)
      : GroupClient(world, node), peer_(peer), on_damaged_(std::move(on_damaged)) {}
  void Begin() override;
  bool done() const { return done_; }
  std::string ToString() const;  // how far it is, for a report

 private:
  void Next();
  void OnRefused(const Result<remoting::Command>& answer);

  const int peer_;
  const std::function<void()> on_damaged_;
  std::vector<TopicQueue> queues_;
  std::size_t at_ = 0;
  std::int64_t offset_ = 0;
  bool done_ = false;
  int read_errors_ = 0;  // in a row
  std::string last_refusal_;
};

}  // namespace triad::sim
