// What goes into and comes out of the Raft core. Plain values, no behaviour.
//
// Source: Ongaro's dissertation (sections named below); testing.md §1.1 is copied into
// docs/dledger.md.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/ids.h"
#include "dledger/raft/entry.h"

namespace triad::dledger {

using Token = std::uint64_t;  // of a storage operation: +1 per operation, per incarnation

// Durable before anything that rests on it leaves (dissertation 3.8).
struct HardState {
  Term term;
  PeerId voted_for;  // empty = nobody
  bool operator==(const HardState&) const = default;
};

enum class Role { kFollower, kPreCandidate, kCandidate, kLeader };

// The group as one membership entry describes it. Sorted by id, no duplicates.
struct Membership {
  std::uint64_t group_id = 0;  // random, fixed by the first entry; 0 = none yet
  std::vector<PeerId> voters;
  std::vector<PeerId> learners;
  bool operator==(const Membership&) const = default;
};

// ---- peer messages ----

struct VoteRequest {  // also the pre-vote (9.6): then `term` is the one it would campaign in, and
                      // nobody's term moves
  Term term;
  bool pre_vote = false;
  bool transfer = false;  // the leader asked for it: voters do not refuse for having a live leader
  LogIndex last_index;
  Term last_term;
};
struct VoteResponse {
  Term term;
  bool pre_vote = false;
  bool granted = false;
};
struct AppendRequest {  // heartbeat when `entries` is empty
  Term term;
  LogIndex prev_index;
  Term prev_term;
  LogIndex commit_index;
  std::vector<EntryRef> entries;
  std::uint64_t read_round = 0;      // echoed; confirms leadership for ReadIndex and check-quorum
  std::uint64_t recovery_nonce = 0;  // echo of the recovering peer's nonce, 0 = none
  LogIndex
      recovery_target;  // with it: reach this index and you are a voter again (testing.md rule H)
};
struct AppendResponse {
  Term term;
  bool ok = false;
  LogIndex match_index;     // ok: durable here up to it. Not ok: unused
  LogIndex conflict_index;  // not ok: where the leader should look next (first index of
                            // conflict_term, or end + 1)
  Term conflict_term;       // not ok: 0 = this log is shorter
  LogIndex rejected_prev;   // not ok: the prev_index that was refused, so a stale answer is told
                            // from a fresh one
  std::uint64_t read_round = 0;
  bool recovering = false;  // counts for nothing
  std::uint64_t recovery_nonce = 0;
};
struct TimeoutNow {  // leader transfer (3.10): campaign at once, skipping the pre-vote
  Term term;
};

struct Message {
  std::variant<VoteRequest, VoteResponse, AppendRequest, AppendResponse, TimeoutNow> body;
};
struct Envelope {
  PeerId to;
  Message message;
};

// ---- inputs ----

struct MessageIn {
  PeerId from;
  Message message;
};
struct Tick {};  // kTickMs of the monotonic clock in production, an event in the simulator
struct StorageDone {
  Token token = 0;  // everything up to and including it is DURABLE
};
struct Propose {  // leader only: entry.term and .index must be Core's current term and last_index()
                  // + 1
  EntryRef entry;
};
struct ReadIndexRequest {
  std::uint64_t context = 0;  // chosen by the caller, increasing
};
struct TransferLeadership {
  PeerId to;  // empty: the core picks the most up-to-date voter
};
struct Disconnected {  // its connection closed: forget having heard from it
  PeerId peer;
};
struct Loaded {  // answers a LoadRequest; `entries` may be fewer than asked, at least one, or empty
                 // when reading failed
  PeerId peer;
  Term term;  // of the request
  LogIndex from;
  std::vector<EntryRef> entries;
};
using Input = std::variant<MessageIn, Tick, StorageDone, Propose, ReadIndexRequest,
                           TransferLeadership, Disconnected, Loaded>;

// ---- outputs ----

// Executed strictly in token order by one disk thread; StorageDone only after fdatasync returned 0
// for all of it.
struct StorageOp {
  Token token = 0;
  std::optional<HardState> hard_state;
  std::optional<LogIndex> truncate_from;  // first drop entries >= this (a recorded cut)
  std::vector<EntryRef> append;
  std::optional<bool> recovering;  // set or clear the persisted mark
};
// Entries the core no longer holds; read them away from the log thread and answer with Loaded,
// always, once (empty when it cannot be done now).
struct LoadRequest {
  PeerId peer;
  Term term;
  LogIndex from;
  LogIndex to;  // exclusive
  std::size_t max_bytes = 0;
};
struct ReadReady {  // serve `context` once `index` is applied
  std::uint64_t context = 0;
  LogIndex index;
};
struct SoftState {
  Role role = Role::kFollower;
  Term term;
  PeerId leader;  // empty = unknown
  bool recovering = false;
  bool operator==(const SoftState&) const = default;
};
struct Output {
  // May leave NOW: the core itself withholds what rests on an undone write.
  std::vector<Envelope> messages;
  std::vector<StorageOp> storage;
  std::vector<LoadRequest> loads;
  // Grew to this; apply in order. Never beyond what is durable on this peer: applied state that
  // gets ahead of the log on disk would leave a gap after a crash.
  std::optional<LogIndex> committed;
  std::vector<ReadReady> reads;
  std::vector<std::uint64_t> reads_failed;  // contexts: leadership was lost before they were
                                            // confirmed, or too many wait
  std::optional<SoftState> soft;            // when it changed
  bool want_noop = false;  // just elected: propose a no-op (or the first membership) entry now

  void Clear() {
    messages.clear();
    storage.clear();
    loads.clear();
    committed.reset();
    reads.clear();
    reads_failed.clear();
    soft.reset();
    want_noop = false;
  }
};

}  // namespace triad::dledger
