// GroupOracle: what must hold of a whole broker group, and whether it did.
//
// Looks at the bytes on the simulated disks, at what the peers apply, and at what clients are told;
// what a peer believes of itself is not used. The first violation is kept. Invariants as in
// tests/sim/README.md. Thread: the simulator's only one. Bounds: one schedule's entries.

#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "broker/state/replicated_state.h"
#include "broker/store/message.h"
#include "common/ids.h"
#include "dledger/raft/types.h"
#include "remoting/command.h"
#include "tests/sim/group/group_options.h"

namespace triad::sim {

class SimPeer;

struct GroupViolation {
  std::string invariant;
  std::string detail;
};

class GroupOracle {
 public:
  explicit GroupOracle(const GroupOptions& options) : options_(options) {}
  void SetPeers(std::vector<SimPeer*> peers) { peers_ = std::move(peers); }

  void Fail(const std::string& invariant, const std::string& detail);
  const std::optional<GroupViolation>& violation() const { return violation_; }

  // ---- peers ----
  void OnPeerStarts(int peer);
  // What a start found on the disk; a peer that lost or never had a log may go on recovering.
  void OnRecovered(int peer, bool recovering, bool empty);
  void OnRaftSend(int peer, const PeerId& to, const dledger::Message& message);
  void OnApply(int peer, const dledger::EntryRef& entry);
  void OnLogBegins(int peer, LogIndex first);    // what is older is in the state only
  void OnInstalled(int peer, LogIndex applied);  // another peer's state took its state's place
  void OnAnswerLeaves(int peer, std::int32_t code, const remoting::Command& response);

  // ---- clients: a value is the first word of a body, and sent by one producer ----
  void OnAttempt(const std::string& value, bool delayed);
  void OnNotSent(const std::string& value);  // that attempt certainly was not stored
  void OnAcked(const std::string& value, const TopicQueue& queue, std::int64_t offset);
  // Records that a pull of `queue` from `offset` returned.
  void OnPulled(int peer, const TopicQueue& queue, std::int64_t offset, std::string_view records,
                std::int64_t next);
  // A pull from `from` was told to go on at `to`.
  void OnMoved(const TopicQueue& queue, std::int64_t from, std::int64_t to);
  // A consumer's register: what was acknowledged, and what may come true still.
  void OnCommitSent(const broker::GroupQueue& key, std::int64_t offset, Micros now);
  void OnCommitAcked(const broker::GroupQueue& key, std::int64_t offset, Micros now);
  void OnQueried(const broker::GroupQueue& key, std::optional<std::int64_t> offset);
  // What a locker believes: it holds the queue until then.
  void OnBelieves(const TopicQueue& queue, int client, Micros now, Micros until);
  void OnGivesUp(const TopicQueue& queue, int client);

  // ---- at the end ----
  std::int64_t MaxOffset(const TopicQueue& queue) const;
  std::vector<TopicQueue> Queues() const;  // that hold messages of clients
  bool AllDelivered() const;               // what was parked has come
  // Everything committed that a majority of disks must hold.
  void CheckMajorities();

  std::uint64_t applied() const { return entries_.size(); }
  std::uint64_t acked() const { return acked_; }
  std::uint64_t drops() const { return drops_; }
  std::uint64_t installs() const { return installs_; }
  // Whether disks other than `peer`'s hold all that is committed on a majority.
  bool MayDamage(int peer) const;

 private:
  struct Value {
    int attempts = 0;
    int not_sent = 0;
    int stored = 0;
    int parked = 0;
    std::vector<LogIndex> parked_at{};  // may be taken by retention before it is due
    int delivered = 0;
    std::int64_t due_ms = 0;
    bool delayed = false;
  };
  struct Place {
    PhysicalOffset position;
    std::string_view record;  // in the entry
    LogIndex index;           // of the entry
    std::string value;
  };
  struct Register {
    std::set<std::int64_t> possible;      // values a query may return; nothing stored: -1
    std::map<std::int64_t, Micros> open;  // sent, no answer yet, by value
  };
  struct Belief {
    int client = -1;
    Micros until = 0;
  };

  bool IsDelivered(const Value& value) const;
  LogIndex FirstKept() const;  // entries before it are gone from a log
  void CheckEntry(const dledger::EntryRef& entry);
  void CheckRecord(const dledger::EntryRef& entry, const broker::MessageView& message);
  void CountStored(const broker::MessageView& message, const dledger::Entry& entry);
  int DurableCopies(const dledger::Entry& entry) const;
  bool HoldsDurably(int peer, const dledger::Entry& entry) const;
  void CheckVoteDurable(int peer, const PeerId& to, const dledger::VoteResponse& vote);
  void CheckAckDurable(int peer, const dledger::AppendResponse& answer);
  const dledger::EntryRef& EntryAt(PhysicalOffset position) const;
  SimPeer& peer(int index) const { return *peers_[static_cast<std::size_t>(index)]; }

  const GroupOptions& options_;
  std::vector<SimPeer*> peers_;
  std::optional<GroupViolation> violation_;
  std::vector<dledger::EntryRef> entries_;  // committed; [0] is index 1
  std::map<TopicQueue, std::vector<Place>> queues_;
  std::map<std::string, Value, std::less<>> values_;
  std::map<broker::GroupQueue, Register> registers_;
  std::map<TopicQueue, Belief> beliefs_;
  std::array<LogIndex, kPeers> applied_by_{};  // 0: nothing in this life
  std::array<LogIndex, kPeers> acked_through_{};
  std::array<LogIndex, kPeers> begins_{};  // of the logs
  std::array<bool, kPeers> was_empty_{};
  std::uint64_t acked_ = 0;
  std::uint64_t drops_ = 0;     // segments that retention took
  std::uint64_t installs_ = 0;  // snapshots
};

}  // namespace triad::sim
