// Replication: what the leader knows of each peer's log, and what to send next.
//
// A peer is PROBED (one message at a time) until its log is known to match, then entries are
// pipelined up to `max_inflight_bytes` un-acknowledged. A refused append goes back a whole term at
// a time. Entries that the window no longer holds are asked for with a LoadRequest, one per peer;
// a peer that needs what the log no longer has gets heartbeats until a snapshot is there.
// Pure. Owner: the core, while it leads. Bounds: as above; one Progress per peer.
// Source: Ongaro's dissertation 3.5, 10.2.1; the conflict-term hint is 5.3 of the Raft paper.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "common/mutant.h"
#include "dledger/raft/core.h"
#include "dledger/raft/log_view.h"
#include "dledger/raft/membership.h"

namespace triad::dledger {

struct Progress {
  static constexpr std::int64_t kLagUnknown = 1'000'000;

  PeerId peer;
  bool learner = false;
  bool leaving = false;      // removed, by an entry that is not committed yet
  LogIndex match;            // durable at the peer, as it said
  LogIndex next;             // first index to send
  bool replicating = false;  // pipelined; false = probing
  bool probe_sent = false;   // probing: wait for the answer or the next heartbeat
  LogIndex commit_sent;      // the peer has been told of this commit index
  bool load_pending = false;
  bool load_failed = false;  // try again with the next heartbeat
  LogIndex load_from;
  bool snapshot_pending = false;
  bool snapshot_failed = false;  // as load_failed
  LogIndex goal;  // the log's end at goal_at: how long the peer takes to get there...
  std::int64_t goal_at = 0;
  std::int64_t lag = kLagUnknown;  // ...took the last time
  std::int64_t heard_at = 0;       // tick
  bool active = false;             // heard since its last disconnection
  std::uint64_t round = 0;         // newest read round it echoed
  std::uint64_t round_min = 0;     // answers to older rounds are from before it forgot its log
  bool recovering = false;         // counts for nothing (rule H)
  std::uint64_t recovery_nonce = 0;
  LogIndex recovery_target;
  struct InFlight {
    LogIndex last;
    std::size_t bytes;
  };
  std::deque<InFlight> inflight;
  std::size_t inflight_bytes = 0;
  std::size_t inflight_limit = 0;  // one message after a probe, doubled by each acknowledgement

  bool Counts() const { return !learner && !recovering && (!leaving || TRIAD_MUTANT(13)); }
};

// What every append of this leader carries.
struct LeaderState {
  const LogView& log;
  const Membership& membership;
  Term term;
  LogIndex commit_index;
  std::uint64_t read_round;
};

class Replication {
 public:
  explicit Replication(const CoreConfig& config);

  // A new leadership: everybody but self is probed from the end of the log.
  void Start(const Membership& membership, LogIndex last_index);
  void Stop() { peers_.clear(); }
  // The membership changed while leading. Who is no longer in it is leaving until DropLeaving.
  void Update(const Membership& membership, LogIndex last_index);
  void DropLeaving();

  Progress* Find(const PeerId& peer);
  const Progress* Find(const PeerId& peer) const;
  std::vector<Progress>& peers() { return peers_; }
  const std::vector<Progress>& peers() const { return peers_; }

  // ---- time ----
  void Tick(LogIndex last_index);
  void Heard(Progress& peer);
  bool IsActive(const Progress& peer) const;
  // Self and the peers heard within one minimum election timeout are a majority.
  bool HeardMajority(const Membership& membership) const;
  // How long ago the leader's log ended where the peer's does; kLagUnknown before it is known.
  std::int64_t LagTicks(const Progress& peer) const;
  std::int64_t SilentTicks(const Progress& peer) const { return now_ - peer.heard_at; }
  // Answers, and holds what the leader held one minimum election timeout ago (4.2.1).
  bool IsCaughtUp(const Progress& peer) const;

  // ---- sending ----
  void SendHeartbeat(Progress& peer, const LeaderState& leader, Output* output);
  // All that flow control allows.
  void SendEntries(Progress& peer, const LeaderState& leader, Output* output);
  // Tells of a grown commit index, unless entries are on their way: under load the next append
  // carries it.
  void SendCommit(Progress& peer, const LeaderState& leader, Output* output);
  void SendLoaded(Progress& peer, const Loaded& loaded, const LeaderState& leader, Output* output);
  // A snapshot was taken, or failed.
  void SnapshotDone(Progress& peer, const SnapshotSent& sent, const LogView& log);
  // Loads and snapshots that failed may be asked for again.
  void AllowRetries();

  // ---- answers ----
  void Acknowledged(Progress& peer, LogIndex match);
  // False when the refusal is stale.
  bool Refused(Progress& peer, const AppendResponse& response, const LogView& log);
  void Disconnected(Progress& peer);
  // It reports a forgotten log: nothing it said before counts.
  // It will count again when it holds `target`.
  void ReportedRecovering(Progress& peer, std::uint64_t nonce, std::uint64_t round, LogIndex target,
                          LogIndex last_index);

  // ---- majorities; self counts with the value given ----
  LogIndex MajorityMatch(const Membership& membership, LogIndex own_durable) const;
  std::uint64_t MajorityRound(const Membership& membership, std::uint64_t own_round) const;
  // Every peer that counts, and every one that is leaving, has confirmed leadership since `peer`
  // reported in, and those that count are a majority without it.
  bool ConfirmedSinceReport(const Progress& peer, const Membership& membership) const;

 private:
  Progress NewProgress(const PeerId& peer, bool learner, LogIndex last_index) const;
  AppendRequest MakeRequest(const Progress& peer, LogIndex prev, const LeaderState& leader) const;
  bool SendSome(Progress& peer, const LeaderState& leader, Output* output);
  void Emit(Progress& peer, AppendRequest request, std::size_t bytes, Output* output);
  void RequestLoad(Progress& peer, const LeaderState& leader, Output* output);
  void RequestSnapshot(Progress& peer, const LeaderState& leader, Output* output);
  void Probe(Progress& peer, LogIndex next);

  const PeerId self_;
  const std::int64_t active_ticks_;
  const std::size_t max_inflight_bytes_;
  const std::size_t max_append_bytes_;
  std::int64_t now_ = 0;
  std::vector<Progress> peers_;  // without self
};

}  // namespace triad::dledger
