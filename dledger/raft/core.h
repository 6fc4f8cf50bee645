// Core: the Raft state machine. Input in, Output out; everything else is somebody else's work.
//
// Pure: no clock, thread, socket, file, log line or random device (election jitter comes from
// `seed`). Owner: the log thread (or the one thread of a simulator). Built from one class each for
// election, replication, log view, membership and read index (this folder). Bounds: un-acknowledged
// bytes per peer, entries held in memory (config); beyond them it stops sending or asks for loads.
// Source: Ongaro's dissertation 3, 4.1, 6.4, 9.6, 10.2.1; rules 1..7 of docs/dledger.md.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "dledger/raft/types.h"

namespace triad::dledger {

inline constexpr int kTickMs = 10;

struct CoreConfig {
  PeerId self;
  Membership initial_membership;  // in force until the log holds a membership entry
  int heartbeat_ticks = 5;
  int election_ticks_min = 30;  // randomised per election in [min, max)
  int election_ticks_max = 60;
  std::size_t max_inflight_bytes = 16u << 20;  // per peer
  std::size_t max_append_bytes = 1u << 20;     // per message; one larger entry goes alone
  std::size_t max_window_bytes = 32u << 20;    // recent entries kept for followers
  // Leadership goes to it when it is a voter, has been well for `preferred_wait_ticks` and has
  // caught up; after each try the wait doubles. Empty: nobody is preferred.
  PeerId preferred_leader;
  int preferred_wait_ticks = 1000;
};

// What the disk held at start.
struct TermRun {  // entries [first, next run's first) have this term
  LogIndex first;
  Term term;
};
struct Recovered {
  HardState hard_state;
  LogIndex first_index{1};  // of the log on disk; at most applied + 1
  Term base_term;           // of entry first_index - 1; 0 when the log begins at 1
  // In force before first_index; nothing: the configured one.
  std::optional<Membership> base_membership;
  LogIndex last_index;             // 0 = empty log
  std::vector<TermRun> term_runs;  // covers [first_index, last_index]
  LogIndex applied;                // committed for sure: the state machine already holds it
  std::vector<std::pair<LogIndex, Membership>>
      memberships;                   // every membership entry on disk, ascending
  bool recovering = false;           // rule H: neither votes nor counts until caught up
  std::uint64_t recovery_nonce = 0;  // random, when recovering
};

struct PeerProgress {
  PeerId peer;
  LogIndex match;
  bool recently_active = false;
  bool recovering = false;
  bool learner = false;
  bool leaving = false;    // its removal is not committed yet
  bool snapshot = false;   // it is being sent one
  bool caught_up = false;  // fit for a promotion or for leadership
  int lag_ticks = 0;       // how long ago the leader's log ended where the peer's does
  int silent_ticks = 0;    // since its last answer
};

class Core {
 public:
  // `seed`: random, another one in each life of the peer.
  Core(CoreConfig config, Recovered recovered, std::uint64_t seed);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // Never blocks, never throws. `output` is appended to, not cleared. Input from peers is checked,
  // never CHECKed.
  void Step(const Input& input, Output* output);

  // Decodes a membership entry's payload; the core's only look at content. Set before the first
  // Step.
  using MembershipDecoder = bool (*)(const Entry& entry, Membership* membership);
  void set_membership_decoder(MembershipDecoder decoder);

  // ---- read-only view ----
  Role role() const;
  Term term() const;
  PeerId leader() const;
  LogIndex last_index() const;
  Term last_term() const;
  LogIndex commit_index() const;
  LogIndex durable_index() const;  // of this peer's own log
  bool recovering() const;
  bool leader_ready() const;  // leader, and an entry of its own term is committed
  bool transferring() const;  // leader handing over: do not propose
  const Membership& membership() const;
  bool membership_committed() const;  // no change is in flight
  LogIndex first_index() const;
  // What a log that begins at `first` must know; first - 1 inside the log or just before it.
  LogBase BaseAt(LogIndex first) const;
  Term TermAt(LogIndex index) const;           // 0 when outside [first - 1, last]
  std::vector<PeerProgress> progress() const;  // leader only
  HardState hard_state() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace triad::dledger
