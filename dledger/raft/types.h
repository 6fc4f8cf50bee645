// What goes into and comes out of the Raft core. Plain values, no behaviour.
//
// Source: Ongaro's dissertation (sections named below); testing.md §1.1 is copied into
// docs/dledger.md.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
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
  std::map<PeerId, std::string> addresses{};  // of members: for the shell to dial, for nobody else
  bool operator==(const Membership&) const = default;
};

inline constexpr std::size_t kMembersMax = 64;  // voters and learners
inline constexpr Term kTermMax{std::uint64_t{1}
                               << 62};      // of messages: beyond it they are no peer's
inline constexpr int kDamagedLoadsMax = 3;  // then somebody else is to lead, who can read its log

// Where a log begins. Everything before `first_index` is in the state machine's state only.
struct LogBase {
  LogIndex first_index{1};
  Term term;              // of entry first_index - 1; 0 when the log begins at 1
  Membership membership;  // in force before first_index
  bool operator==(const LogBase&) const = default;
};

// ---- peer messages ----

struct VoteRequest {  // also the pre-vote (9.6): then `term` is the one it would campaign in, and
                      // nobody's term moves
  Term term;
  bool pre_vote = false;
  bool transfer = false;  // the leader asked for it: voters do not refuse for having a live leader
  LogIndex last_index;
  Term last_term;
  std::uint64_t life = 0;  // of the candidate: random, drawn at its start
};
struct VoteResponse {
  Term term;
  bool pre_vote = false;
  bool granted = false;
  std::uint64_t life = 0;  // of the request: a vote counts in the life that asked for it
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
// Answered by a TransferFailed, or by another peer's leadership.
struct TransferLeadership {
  PeerId to;                  // empty: the core picks the most up-to-date voter
  std::uint64_t context = 0;  // chosen by the caller
};
enum class MembershipOp : std::uint8_t {
  kAddLearner,  // a new peer: receives everything, counts for nothing
  kPromote,     // a learner that has caught up becomes a voter
  kRemove,      // a voter or a learner, the leader itself too
};
// Leader only, one at a time. Its fate comes in Output::changes.
struct ChangeMembership {
  std::uint64_t context = 0;  // chosen by the caller, unique
  MembershipOp op = MembershipOp::kAddLearner;
  PeerId peer;
  std::string address{};  // of a learner to be added
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
  bool damaged = false;  // reading failed, and will again: the disk's fault
};
// Answers a SnapshotNeeded: always, once. `ok`: the peer has taken it (or had no use for it), its
// log goes on behind base_index.
struct SnapshotSent {
  PeerId peer;
  Term term;  // of the request
  bool ok = false;
  LogIndex base_index;  // the snapshot's base.first_index - 1
};
// A whole and checked snapshot from a leader of the group waits to be installed: the state up to
// `applied`, and the beginning of the log that follows. The core answers in the same step: a
// StorageOp with `reset` (install it there), or Output::snapshot_refused (drop it: it is older than
// what this peer has). applied >= base.first_index - 1.
struct InstallSnapshot {
  LogBase base;
  LogIndex applied;
};
// The log's oldest entries are gone from the disk, or about to be: it begins at `first_index`,
// which is at most the committed index + 1. The shell has made Core::BaseAt(first_index) durable.
struct Purged {
  LogIndex first_index;
};
using Input =
    std::variant<MessageIn, Tick, StorageDone, Propose, ReadIndexRequest, TransferLeadership,
                 Disconnected, Loaded, ChangeMembership, SnapshotSent, InstallSnapshot, Purged>;

// ---- outputs ----

// Executed strictly in token order by one disk thread; StorageDone only after fdatasync returned 0
// for all of it.
struct StorageOp {
  Token token = 0;
  std::optional<HardState> hard_state;
  std::optional<LogIndex> truncate_from;  // first drop entries >= this (a recorded cut)
  std::vector<EntryRef> append;
  std::optional<bool> recovering;  // set or clear the persisted mark
  // Installs the snapshot that waits: all entries go, the log begins anew and empty at this base,
  // the state is the snapshot's. A crash leaves either the old log and state or the new ones.
  std::optional<LogBase> reset;
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
// The peer needs entries that this log no longer has: send it a snapshot of the state and answer
// with SnapshotSent. Until then it gets heartbeats only. Asked for only while the peer answers.
struct SnapshotNeeded {
  PeerId peer;
  Term term;
};
enum class ChangeRefusal : std::uint8_t {
  kNone,
  kNotLeader,
  kNotReady,       // its own no-op is not committed yet: try again soon
  kTransferring,   // handing over
  kInFlight,       // another change is not committed yet
  kUnknownPeer,    // no such member (promote: no such learner)
  kAlreadyMember,  // add: a member already; promote: a voter already
  kNotCaughtUp,    // promote: the learner lags, is recovering or does not answer
  kLastVoter,      // would leave no voter
  kNoQuorum,       // the voters that answer would be no majority of what remains
  kTooMany,        // kMembersMax
};
struct ChangeFate {
  std::uint64_t context = 0;
  enum class Outcome : std::uint8_t {
    kCommitted,
    kRefused,  // certainly not done; `why` says why
    kUnknown,  // leadership was lost: it may still be committed. Look at the membership
  } outcome = Outcome::kRefused;
  ChangeRefusal why = ChangeRefusal::kNone;
};
enum class TransferFailure : std::uint8_t {
  kNotLeader,
  kInProgress,    // another transfer is under way
  kNotVoter,      // learner, recovering, removed, unknown, or this peer itself
  kNotReachable,  // not heard within an election timeout
  kNotCaughtUp,   // too far behind: the group would stand still
  kNobody,        // no voter fit to lead
  kTimedOut,      // it did not take over within an election timeout; this peer leads on
};
struct TransferFailed {
  std::uint64_t context = 0;
  TransferFailure why = TransferFailure::kNotLeader;
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
  std::vector<SnapshotNeeded> snapshots;
  bool snapshot_refused = false;
  // Propose a membership entry with exactly this content, now.
  std::optional<Membership> propose_membership;
  std::vector<ChangeFate> changes;
  std::vector<TransferFailed> transfers_failed;

  void Clear() {
    messages.clear();
    storage.clear();
    loads.clear();
    committed.reset();
    reads.clear();
    reads_failed.clear();
    soft.reset();
    want_noop = false;
    snapshots.clear();
    snapshot_refused = false;
    propose_membership.reset();
    changes.clear();
    transfers_failed.clear();
  }
};

}  // namespace triad::dledger
