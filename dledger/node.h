// Node: one peer of a replicated log: the thin shell that gives the Raft core a thread, a clock, a
// disk and a network.
//
// Threads owned: log thread (core, ticks, peer sockets, log tail), disk thread, two reader threads,
// apply thread, background thread. See docs/architecture.md, "Threads". Errors after start are
// fatal (a failed write or sync ends the process with file, offset and way out).

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/file_system.h"
#include "common/ids.h"
#include "common/latency_window.h"
#include "common/status.h"
#include "dledger/log/raw_log.h"
#include "dledger/peer/peer_address.h"
#include "dledger/raft/types.h"
#include "dledger/retention.h"
#include "dledger/snapshot/snapshot_types.h"

namespace triad::dledger {

// Where the payload under construction will stand. Everything inside is final when it is built.
struct BuildContext {
  Term term;
  LogIndex index;
  PhysicalOffset payload_position;  // absolute, of the payload's first byte, if it goes into the
                                    // current segment
  std::size_t room_bytes = 0;  // for the payload in the current segment; at a segment's start: the
                               // largest payload allowed
  bool at_segment_start = false;
  std::int64_t store_time_ms = 0;  // log time
  std::size_t head_bytes = 0;      // the first ones of what Build appends to: the node's own
};
enum class BuildResult {
  kNothing,     // nothing waits
  kBuilt,       // *payload is the next entry
  kDoesNotFit,  // the first thing waiting needs a new segment; the node rolls and asks again
};

struct LeaderInfo {
  Role role = Role::kFollower;
  Term term;
  PeerId leader;                      // empty = unknown
  std::string leader_client_address;  // "ip:port" that its clients dial, as its handshake said;
                                      // empty = unknown
  bool ready = false;                 // this peer leads and has applied its own no-op: it may serve
  bool recovering = false;
  bool operator==(const LeaderInfo&) const = default;
};

// What a peer gets that needs entries which were dropped.
struct StateImage {
  LogIndex applied;  // the state ends here
  std::unique_ptr<StatePieces> pieces;
};

// The replicated application (the broker). Each call names its thread.
class Application {
 public:
  virtual ~Application() = default;

  // Log thread, or another one in its place ("log thread" below means both: one at a time), only
  // while ready. Append what waits to `entry` (which holds head_bytes already), at
  // most room_bytes and about 1 MiB.
  virtual BuildResult Build(const BuildContext& context, std::string* entry) = 0;
  // Log thread. Every change of LeaderInfo. With ready = true: everything before is applied and no
  // own entry is in flight.
  virtual void OnLeaderChange(const LeaderInfo& info) = 0;
  // Apply thread. Committed entries in order, each index exactly once per start (from
  // NodeOptions::applied + 1 on): no-op and membership entries too.
  virtual void Apply(std::span<const EntryRef> entries) = 0;
  // Apply thread, when idle and at least every 100 ms: flush timers.
  virtual void OnApplyIdle() {}
  // Any thread. The application holds everything up to here durably and never asks for an entry in
  // front of it again, not even to rebuild what it derives: the log may forget it. 0: nothing.
  virtual LogIndex DurableIndex() const { return LogIndex(0); }
  // Apply thread. The durable state, consistent, whatever is applied later. Its pieces are read on
  // another thread, one at a time, and dropped before the node stops.
  virtual Result<StateImage> TakeImage() {
    return Status::Unsupported("this application has no state to send");
  }
  // Apply thread. Another peer's image takes the place of the state, durably. The log then begins
  // at `first`; entries from there up to `applied` are in the state already and are not handed to
  // Apply: they can be read when they arrive. An error ends the process, and what stands half-way
  // then is not looked at: a start gets the pieces anew (FindReadySnapshot) and installs all of it.
  virtual Status InstallImage(StoredPieces* /*pieces*/, LogIndex /*applied*/, LogIndex /*first*/) {
    return Status::Unsupported("this application takes no state");
  }
};

struct NodeOptions {
  std::string group;
  PeerId self;
  // With self. Members of a group that begins; later the log says who is one. Exactly one, with
  // port 0: a group of one voter without a peer port.
  std::vector<PeerAddress> peers;
  std::string dir;             // of the log
  std::string client_address;  // told to peers: "brokerIP1:listenPort"
  std::string bind_address = "0.0.0.0";
  std::uint64_t segment_bytes = 1u << 30;
  std::size_t cache_bytes = 64u << 20;
  std::uint64_t prepare_bytes = 64u << 20;  // of the log, written ahead of its tail
  bool sync_flush = true;
  std::chrono::milliseconds heartbeat{50};
  std::chrono::milliseconds election_min{300};
  std::chrono::milliseconds election_max{600};
  PeerId preferred_leader;  // leadership goes to it when it is well and caught up; empty: nobody
  std::vector<PeerId> bootstrap_without;  // the operator's override of the first-start rule
  LogIndex applied;                       // the application's synced state ends here
  RetentionOptions retention;
  std::uint64_t snapshot_bytes_per_second = 32u << 20;  // of state sent to other peers, in all
};

struct NodeStatus {
  LeaderInfo leader;
  LogIndex first_index, last_index, commit_index, applied_index;
  bool log_behind_state = false;  // a state was installed; the log that led to it still comes
  PhysicalOffset begin_position, end_position;
  std::uint64_t group_id = 0;
  std::vector<PeerId> voters;
  std::vector<PeerId> learners;
  struct Peer {
    PeerId id;
    std::string peer_address;    // "host:port" of its peer port
    std::string client_address;  // as its handshake said; empty = unknown
    bool connected = false;
    std::optional<std::chrono::milliseconds> heard_ago;  // nothing: not since this peer's start
    // Leader only.
    LogIndex match;
    bool recovering = false;
  };
  std::vector<Peer> peers;           // without self
  std::string not_ready_reason;      // empty when serving
  std::uint64_t unsynced_bytes = 0;  // of entries, on their way to this peer's disk
  LatencySummary sync;               // fdatasync of the log, lately
  LatencySummary loop_delay;         // how late the log thread's ticks come, lately
};

// A received snapshot whose installation a crash stopped. The application installs it before
// Node::Open, which gives the log its part and forgets it.
struct ReadySnapshot {
  LogIndex applied;
  std::unique_ptr<StoredPieces> pieces;
};

class Node {
 public:
  // `dir` of the log. Errors: kCorruption, kIoError.
  static Result<std::optional<ReadySnapshot>> FindReadySnapshot(FileSystem& fs,
                                                                const std::string& dir);
  // Opens the log (may take as long as recovery takes) and starts nothing. Errors as
  // LogStore::Open, plus a peer port in use.
  static Result<std::unique_ptr<Node>> Open(FileSystem& fs, const Clock& clock, NodeOptions options,
                                            Application* application);
  virtual ~Node() = default;
  virtual Status Start() = 0;

  // ---- any thread ----
  virtual void WakeProposer() = 0;  // something waits for Build; cheap when already awake
  // As WakeProposer; may run Build before it returns. The caller holds no lock.
  virtual void ProposeNow() { WakeProposer(); }
  virtual LeaderInfo leader_info() const = 0;
  virtual NodeStatus status() const = 0;
  // Confirms leadership after this call and waits until everything committed before it is applied;
  // then `done` (apply or log thread). Errors: kNotLeader (message: leader id), kTimedOut,
  // kUnavailable.
  virtual void ReadIndex(std::chrono::milliseconds timeout, std::function<void(Status)> done) = 0;
  // `to` empty: the most up-to-date voter. Done when another peer leads, or kTimedOut.
  virtual void TransferLeadership(PeerId to, std::chrono::milliseconds timeout,
                                  std::function<void(Status)> done) = 0;
  // Leader only, one change at a time: adds a learner at an address, makes a learner a voter, or
  // removes a member. `done` when it is committed. Errors: kNotLeader, kInvalidArgument or
  // kUnavailable (refused; why), kTimedOut (unknown: look at the status).
  virtual void ChangeMembership(MembershipOp op, PeerAddress peer,
                                std::chrono::milliseconds timeout,
                                std::function<void(Status)> done) = 0;
  // status().begin_position and end_position, cheaply.
  virtual PhysicalOffset begin_position() const = 0;
  virtual PhysicalOffset end_position() const = 0;
  virtual std::int64_t LogTimeMs()
      const = 0;  // a tick old: never ahead of the next entry's; 0: not known

  // Entries by a position inside them. Cached: memory only, any thread, null when absent.
  virtual EntryRef CachedAt(PhysicalOffset inside) const = 0;
  // Loads on a reader thread and calls `done` there. kBusy when too many wait. Blocking form: never
  // on the log thread.
  virtual void LoadAt(PhysicalOffset inside, std::function<void(Result<EntryRef>)> done) = 0;
  virtual Result<EntryRef> ReadAt(PhysicalOffset inside) = 0;
  // Runs `task` on a reader thread (file reads for pulls). False when too many wait.
  virtual bool PostReader(std::function<void()> task) = 0;
  // Blocking, for rebuilding derived stores at start: entries [from, ..) of the log, in order, at
  // most ~4 MiB.
  virtual Result<std::vector<EntryRef>> ReadRange(LogIndex from, LogIndex to,
                                                  std::size_t max_bytes) = 0;

  // Other rules for old segments, from the next look at them on; the interval stays.
  virtual void SetRetention(RetentionOptions retention) = 0;
  // A look at the old segments at once, in which what is past its age goes whatever the hour; all
  // other rules hold. Any thread; does not wait for it.
  virtual void CleanNow() = 0;

  // The log as it stands on this disk. Blocking: reader threads only.
  virtual const RawLog& raw_log() const = 0;
  // Writes a good entry over damaged bytes, as RawLog::Replace; `done` on the disk thread.
  virtual void Replace(EntryRef entry, std::function<void(Status)> done) = 0;

  // Joins all threads, flushes, closes. Idempotent.
  virtual void Stop() = 0;
};

}  // namespace triad::dledger
