// GroupOracle: what must hold of a whole broker group, and whether it did.
//
// Looks at the bytes on the simulated disks, at what the peers apply, and at what clients are told;
// what a peer believes of itself is not used. The first violation is kept. Invariants as in
// tests/sim/README.md. Thread: the simulator's only one. Bounds: one schedule's entries.

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/state/replicated_state.h"
#include "broker/store/message.h"
#include "common/ids.h"
#include "dledger/raft/types.h"
#include "remoting/command.h"
#include "tests/sim/group/event_loop.h"
#include "tests/sim/group/group_options.h"

namespace triad::sim {

class SimPeer;

// For a report: "n1", "T0@2".
std::string NameOfPeer(int peer);
std::string NameOf(const TopicQueue& queue);
std::string ValueOf(std::string_view body);
// What the message that stands at `at` is called when a group sent it back.
std::string SentBackValue(const std::string& group, const std::string& value, PhysicalOffset at);

struct GroupViolation {
  std::string invariant;
  std::string detail;
};

class GroupOracle {
 public:
  GroupOracle(const GroupOptions& options, const EventLoop& loop);
  void SetPeers(std::vector<SimPeer*> peers) { peers_ = std::move(peers); }

  void Fail(const std::string& invariant, const std::string& detail);
  const std::optional<GroupViolation>& violation() const { return violation_; }

  // ---- peers ----
  void OnPeerStarts(int peer);
  // What a start found on the disk; a peer that lost or never had a log may go on recovering.
  void OnRecovered(int peer, bool recovering, bool empty);
  void OnRaftSend(int peer, const PeerId& to, const dledger::Message& message);
  void OnApply(int peer, const dledger::EntryRef& entry);
  void OnMembership(const dledger::EntryRef& entry);  // the next one is committed
  void OnLogBegins(int peer, LogIndex first);         // what is older is in the state only
  void OnInstalled(int peer, LogIndex applied);       // another peer's state took its state's place
  // An empty one took its place. The lost one may have acknowledged entries up to `held`.
  void OnDiskLost(int peer, LogIndex held);
  void OnNewPeer(int peer);  // under a new id, with an empty disk
  // More was damaged than the group can survive. What is still whole somewhere must stay so, if one
  // peer `is_spared`: else each repairs itself with what the others have lost.
  void OnBeyond(bool is_spared);
  void OnAnswerLeaves(int peer, std::int32_t code, const remoting::Command& response);

  // ---- clients: a value is the first word of a body, and sent by one producer ----
  struct Kind {
    bool delayed = false;
    bool dedup = false;  // in a topic that stores nothing twice
  };
  void OnAttempt(const std::string& value, Kind kind);
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
  // The maximum offset: what was known when the question was asked, and the answer.
  std::int64_t OnMaxAsked(const TopicQueue& queue) const;
  void OnMaxTold(const TopicQueue& queue, std::int64_t known, std::int64_t told);
  // Fencing tokens: the newest one seen when a lock was asked for, and the one of the grant.
  std::uint64_t OnLockAsked(const TopicQueue& queue) const;
  void OnGranted(const TopicQueue& queue, int client, std::uint64_t known, std::uint64_t token);
  // What a locker believes: it holds the queue until then.
  void OnBelieves(const TopicQueue& queue, int client, Micros now, Micros until);
  void OnGivesUp(const TopicQueue& queue, int client);

  // ---- at the end ----
  std::int64_t MaxOffset(const TopicQueue& queue) const;
  std::vector<TopicQueue> Queues() const;  // that hold messages of clients
  bool AllDelivered() const;               // what was parked has come
  // Everything committed is on a majority of disks. `lenient`: also where a fault took it.
  void CheckMajorities(bool lenient);
  // Everything, as far as it must hold at any moment.
  void FullScan();
  void CheckIntact();  // of OnBeyond
  // Delayed messages have come within a second of when they were due, or of `served_since`.
  void CheckLate(Micros served_since);

  // The last one committed; before there is one, whoever founds the group.
  const dledger::Membership& membership() const { return membership_; }
  // Whether the peer that has `machine` now is one; of its last life, while it is down.
  bool IsMember(int machine) const;
  struct Changes {
    std::uint64_t added = 0;
    std::uint64_t promoted = 0;
    std::uint64_t removed = 0;
  };
  const Changes& changes() const { return changes_; }
  bool WasRemoved(const PeerId& id) const { return removed_.contains(id); }
  // Changes that were asked for and may come true still.
  using Change = std::pair<dledger::MembershipOp, PeerId>;
  void OnChangeAsked(const Change& change) { open_.push_back(change); }
  void OnChangeRefused(const Change& change) {  // the same may have been asked for before
    const auto found = std::find(open_.begin(), open_.end(), change);
    if (found != open_.end()) open_.erase(found);
  }
  bool IsOpen(const Change& change) const {
    return std::find(open_.begin(), open_.end(), change) != open_.end();
  }
  const std::set<PeerId>& removed() const { return removed_; }

  std::uint64_t applied() const { return entries_.size(); }
  std::uint64_t acked() const { return acked_; }
  std::uint64_t drops() const { return drops_; }
  std::uint64_t installs() const { return installs_; }
  // Whether disks other than `peer`'s hold all that is committed on a majority.
  bool MayDamage(int peer) const;
  // Whether `peer`'s disk holds a committed entry behind `last`.
  bool HoldsDurablyBehind(int peer, LogIndex last) const;

 private:
  struct Value {
    int attempts = 0;
    int not_sent = 0;
    int stored = 0;
    int parked = 0;
    std::vector<LogIndex> parked_at{};  // may be taken by retention before it is due
    int delivered = 0;
    std::int64_t first_ms = 0;  // log time, of the first one stored
    std::int64_t due_ms = 0;
    Micros due_at = 0;  // about, of the loop
    Kind kind{};
    std::optional<std::pair<TopicQueue, std::int64_t>> acked_at{};
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
  static std::string NameOfStored(const broker::MessageView& message);
  void CountStored(const broker::MessageView& message, const dledger::Entry& entry);
  std::vector<PeerId> VotersInPlay() const;
  void SettleChanges();
  int DurableCopies(const dledger::Entry& entry) const;  // on any disk
  // Every majority of the voters has one that holds it. `lenient`: or had, before a fault took it.
  bool IsOnMajority(const dledger::Entry& entry, bool lenient) const;
  bool HoldsDurably(int peer, const dledger::Entry& entry) const;
  // A fault took it, and the peer may not know yet.
  bool IsExcused(int peer, const dledger::Entry& entry) const;
  void CheckVoteDurable(int peer, const PeerId& to, const dledger::VoteResponse& vote);
  void CheckAckDurable(int peer, const dledger::AppendResponse& answer);
  const dledger::EntryRef& EntryAt(PhysicalOffset position) const;
  SimPeer& peer(int index) const { return *peers_[static_cast<std::size_t>(index)]; }

  const GroupOptions& options_;
  const EventLoop& loop_;
  std::vector<SimPeer*> peers_;
  std::optional<GroupViolation> violation_;
  std::vector<dledger::EntryRef> entries_;  // committed; [0] is index 1
  std::map<TopicQueue, std::vector<Place>> queues_;
  std::map<std::string, Value, std::less<>> values_;
  std::map<broker::GroupQueue, Register> registers_;
  std::map<TopicQueue, Belief> beliefs_;
  std::map<TopicQueue, std::int64_t> ends_told_;  // behind what was acknowledged or told
  std::map<TopicQueue, std::map<std::uint64_t, int>> tokens_;  // whose it is
  std::array<LogIndex, kPeersMax> applied_by_{};               // 0: nothing in this life
  std::array<LogIndex, kPeersMax> acked_through_{};
  std::array<LogIndex, kPeersMax> begins_{};        // of the logs
  std::array<LogIndex, kPeersMax> lost_through_{};  // what a lost disk may have acknowledged
  std::array<bool, kPeersMax> was_empty_{};
  std::vector<bool> intact_;  // of OnBeyond, by entry
  dledger::Membership membership_;
  std::set<PeerId> removed_;
  std::vector<Change> open_;
  Changes changes_;
  LogIndex kept_;  // some log began there once
  std::uint64_t acked_ = 0;
  std::uint64_t drops_ = 0;     // segments that retention took
  std::uint64_t installs_ = 0;  // snapshots
};

}  // namespace triad::sim
