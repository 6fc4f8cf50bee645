// Replication: what the leader knows of each peer's log, and what to send next.
//
// A peer is PROBED (one message at a time) until its log is known to match, then entries are
// pipelined up to `max_inflight_bytes` un-acknowledged. A refused append goes back a whole term at
// a time. Entries that the window no longer holds are asked for with a LoadRequest, one per peer.
// Pure. Owner: the core, while it leads. Bounds: as above; one Progress per peer.
// Source: Ongaro's dissertation 3.5, 10.2.1; the conflict-term hint is 5.3 of the Raft paper.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "dledger/raft/core.h"
#include "dledger/raft/log_view.h"
#include "dledger/raft/membership.h"

namespace triad::dledger {

struct Progress {
  PeerId peer;
  bool learner = false;
  LogIndex match;            // durable at the peer, as it said
  LogIndex next;             // first index to send
  bool replicating = false;  // pipelined; false = probing
  bool probe_sent = false;   // probing: wait for the answer or the next heartbeat
  LogIndex commit_sent;      // the peer has been told of this commit index
  bool load_pending = false;
  bool load_failed = false;  // try again with the next heartbeat
  LogIndex load_from;
  std::int64_t heard_at = 0;    // tick
  bool active = false;          // heard since its last disconnection
  std::uint64_t round = 0;      // newest read round it echoed
  std::uint64_t round_min = 0;  // answers to older rounds are from before it forgot its log
  bool recovering = false;      // counts for nothing (rule H)
  std::uint64_t recovery_nonce = 0;
  LogIndex recovery_target;
  struct InFlight {
    LogIndex last;
    std::size_t bytes;
  };
  std::deque<InFlight> inflight;
  std::size_t inflight_bytes = 0;
  std::size_t inflight_limit = 0;  // one message after a probe, doubled by each acknowledgement

  bool Counts() const { return !learner && !recovering; }
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
  // The membership changed while leading.
  void Update(const Membership& membership, LogIndex last_index);

  Progress* Find(const PeerId& peer);
  std::vector<Progress>& peers() { return peers_; }
  const std::vector<Progress>& peers() const { return peers_; }

  // ---- time ----
  void Tick() { ++now_; }
  void Heard(Progress& peer);
  bool IsActive(const Progress& peer) const;
  // Self and the peers heard within one minimum election timeout are a majority.
  bool HeardMajority(const Membership& membership) const;

  // ---- sending ----
  void SendHeartbeat(Progress& peer, const LeaderState& leader, Output* output);
  // All that flow control allows.
  void SendEntries(Progress& peer, const LeaderState& leader, Output* output);
  // Tells of a grown commit index, unless entries are on their way: under load the next append
  // carries it.
  void SendCommit(Progress& peer, const LeaderState& leader, Output* output);
  void SendLoaded(Progress& peer, const Loaded& loaded, const LeaderState& leader, Output* output);

  // ---- answers ----
  void Acknowledged(Progress& peer, LogIndex match);
  // False when the refusal is stale.
  bool Refused(Progress& peer, const AppendResponse& response, const LogView& log);
  void Disconnected(Progress& peer);
  // It reports a forgotten log: nothing it said before counts.
  void ReportedRecovering(Progress& peer, std::uint64_t nonce, std::uint64_t round,
                          LogIndex last_index);

  // ---- majorities; self counts with the value given ----
  LogIndex MajorityMatch(const Membership& membership, LogIndex own_durable) const;
  std::uint64_t MajorityRound(const Membership& membership, std::uint64_t own_round) const;
  // Every peer that counts has confirmed leadership since `peer` reported in, and they are a
  // majority without it.
  bool ConfirmedSinceReport(const Progress& peer, const Membership& membership) const;

 private:
  Progress NewProgress(const PeerId& peer, bool learner, LogIndex last_index) const;
  AppendRequest MakeRequest(const Progress& peer, LogIndex prev, const LeaderState& leader) const;
  bool SendSome(Progress& peer, const LeaderState& leader, Output* output);
  void Emit(Progress& peer, AppendRequest request, std::size_t bytes, Output* output);
  void RequestLoad(Progress& peer, const LeaderState& leader, Output* output);
  void Probe(Progress& peer, LogIndex next);

  const PeerId self_;
  const std::int64_t active_ticks_;
  const std::size_t max_inflight_bytes_;
  const std::size_t max_append_bytes_;
  std::int64_t now_ = 0;
  std::vector<Progress> peers_;  // sorted by id, without self
};

}  // namespace triad::dledger
