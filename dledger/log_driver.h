// LogDriver: everything the log thread does, without the thread: steps the core, carries out what
// it says, builds entries as leader, answers reads and transfers, decides the first start.
//
// No socket, file, thread or lock: the world is behind Hands. Owner: the log thread; every call is
// there, and each public On... call is followed by EndTurn once the caller has no more at hand.
// Bounds: a leader builds while less than kUnsyncedBytesMax are un-synced, less than
// kUncommittedBytesMax and kUncommittedEntriesMax un-committed; kTransfersMax callers of a
// transfer, kChangesMax of a membership change; kMembersMax peers are remembered. Source:
// architecture.md §3..§6.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "dledger/entry_window.h"
#include "dledger/first_start.h"
#include "dledger/log/entry_codec.h"
#include "dledger/log_clock.h"
#include "dledger/node.h"
#include "dledger/peer/peer_codec.h"
#include "dledger/raft/core.h"
#include "dledger/read_queue.h"
#include "dledger/snapshot/snapshot_types.h"
#include "dledger/unsynced_start.h"

namespace triad::dledger {

inline constexpr std::size_t kUnsyncedBytesMax = 32u << 20;
inline constexpr std::size_t kUnsyncedWritesMax = 16;
inline constexpr std::size_t kUncommittedBytesMax = 32u << 20;
inline constexpr std::size_t kUncommittedEntriesMax = 256;
inline constexpr std::size_t kTransfersMax = 64;
inline constexpr std::size_t kChangesMax = 16;
inline constexpr std::chrono::seconds kCallerPatience{5};

// "a, b"
std::string JoinedIds(const std::vector<PeerId>& ids);

// What the driver may do to the world. Called on the log thread.
class Hands {
 public:
  virtual ~Hands() = default;
  virtual void Send(const PeerId& to, Message message) = 0;
  // Queues; EndTurn is followed by one hand-over.
  virtual void Store(StorageOp op) = 0;
  virtual void Load(LoadRequest request) = 0;                   // answered by OnLoaded
  virtual void LoadTail(LogIndex last_index) = 0;               // answered by OnTailLoaded
  virtual void SendSnapshot(const SnapshotNeeded& needed) = 0;  // answered by OnSnapshotSent
  virtual void RefuseSnapshot() = 0;  // what OnSnapshotReady brought is of no use
  virtual void Commit(LogIndex upto, std::vector<EntryRef> entries, LogIndex durable) = 0;
  virtual void Publish(const LeaderInfo& info) = 0;  // it changed; before the application hears
  virtual std::uint64_t Random() = 0;                // not 0; unpredictable
  virtual bool IsDiskFull() = 0;
  // What can still be appended to the log's last segment when the disk is full.
  virtual std::uint64_t PreparedBytes() { return std::numeric_limits<std::uint64_t>::max(); }
  virtual void SetPeers(const std::vector<PeerAddress>& peers) = 0;  // whom to dial from now on
};

class LogDriver {
 public:
  // What the disk held; `recovered` with applied filled in.
  struct Found {
    Recovered recovered;
    bool lost_unsynced = false;  // LogStore::lost_unsynced
    LogTail tail;
  };
  // All pointers outlive it.
  LogDriver(const NodeOptions& options, const Clock& clock, Found found, Application* application,
            Hands* hands);
  ~LogDriver();

  // First call: a peer with a log, or alone, goes on at once; an empty one, and one that lost
  // un-synced entries, asks around first.
  void Begin();
  void OnTicks(int count);
  void OnHello(const Hello& hello);
  void OnMessage(const PeerId& from, Message message, std::int64_t wall_ms);
  void OnDisconnected(const PeerId& peer);
  void OnStorageDone(Token token);
  void OnLoaded(Loaded loaded);
  void OnTailLoaded(EntryRef last);  // null: could not be read
  void OnApplied(LogIndex applied);
  // Somebody waits for the applied index to grow beyond applied().
  bool waits_for_apply() const { return (is_leader() && !info_.ready) || reads_.waits_for_apply(); }
  LogIndex applied() const { return applied_; }
  void OnSnapshotSent(const SnapshotSent& sent);
  // A whole and checked snapshot waits. Stored as a reset, or refused.
  void OnSnapshotReady(const SnapshotHead& head);
  void OnPurged(LogIndex first_index);  // the log on disk begins there now
  void OnWake() { is_awake_ = true; }
  bool is_idle() const { return window_.uncommitted() == 0; }  // all that was built is committed
  void OnRead(PendingRead read);
  void OnTransfer(const PeerId& to, TimePoint deadline, std::function<void(Status)> done);
  void OnChange(MembershipOp op, const PeerAddress& peer, TimePoint deadline,
                std::function<void(Status)> done);
  // Builds, starts reads. After any of the above.
  void EndTurn();
  // Answers everybody who waits.
  void Fail(const Status& why);

  // Committed and durable here: never cut again. 0 before the core runs.
  LogIndex settled_index() const;
  bool Follows(const PeerId& peer) const;
  Term term() const { return core_ == nullptr ? Term(0) : core_->term(); }
  Hello OwnState() const;
  std::uint64_t group_id() const;
  std::int64_t LogTimeMs();
  // All but what only the store and the transport know. `applied`: the state's, read now.
  void FillStatus(LogIndex applied, NodeStatus* status) const;

 private:
  struct PendingTransfer {
    std::uint64_t context;
    TimePoint deadline;
    std::function<void(Status)> done;
  };

  struct PendingChange {
    std::uint64_t context = 0;
    TimePoint deadline;
    std::function<void(Status)> done;
  };

  // Who said hello or spoke to this peer.
  struct Caller {
    std::string client_address;
    std::string peer_address;
    std::optional<TimePoint> heard_at;  // its last message
    bool IsHeard(TimePoint now) const { return heard_at && now - *heard_at <= kCallerPatience; }
  };

  // ---- log_driver_members.cc ----
  std::vector<PeerAddress> Members() const;
  std::vector<PeerAddress> WantedPeers() const;
  void UpdatePeers();
  void ExpireChanges();
  void OnChangeFate(const ChangeFate& fate);
  void ProposeMembership(const Membership& membership);
  void WarnOfOtherMembers() const;
  void FillPeers(NodeStatus* status) const;

  // ---- log_driver_start.cc ----
  bool IsVirgin() const;
  std::vector<PeerId> StartVoters() const;
  UnsyncedStart::Answer OwnEnd() const;
  void OnStartAnswer(const Hello& hello);
  void DecideStart();
  void DecideFirstStart();
  void RefuseVotesUpTo(Term term);
  void DecideUnsyncedStart();
  bool IsTimeToNameMissing();
  std::string StartReason() const;
  void StartCore();

  // ---- log_driver.cc ----
  void Step(Input input);
  void Execute();
  void Record(const StorageOp& op);
  void OnSoftState(const SoftState& soft);
  void ProposeFirst();
  EntryRef MakeFirst();
  void OnTransferFailed(const TransferFailed& failed);
  bool MayBuild() const;
  bool HasRoomFor(std::size_t bytes, bool is_rolling) const;
  bool Fits(const Message& message) const;
  Caller* CallerOf(const PeerId& peer, TimePoint now);
  bool BuildOne();
  BuildContext ContextAt(const LogTail& tail);
  void StartReads();
  void MaybeReady();
  void ExpireTransfers();
  void PublishInfo();
  std::string NotReadyReason(LogIndex applied) const;
  bool is_leader() const;

  const NodeOptions options_;
  const Clock& clock_;
  Recovered recovered_;
  Application* const application_;
  Hands* const hands_;
  std::unique_ptr<Core> core_;  // null until the first start is decided
  FirstStart first_start_;
  std::optional<UnsyncedStart> unsynced_start_;
  TimePoint begun_at_;
  TimePoint named_at_;  // last line about missing peers
  Output output_;

  LogTail tail_;
  LogTail ready_tail_;  // of the snapshot that waits: what an empty log begins with
  bool is_tail_known_ = true;
  bool is_tail_loading_ = false;
  EntryWindow window_;
  std::deque<std::pair<Token, std::size_t>> unsynced_;  // appends in flight
  std::size_t unsynced_bytes_ = 0;
  LogIndex applied_;

  bool wants_first_ = false;  // elected; the no-op is not proposed yet
  LogIndex first_index_;      // of this leadership's first entry; 0 = not proposed
  bool is_awake_ = false;     // something may wait for Build
  LogClock log_clock_;
  ReadQueue reads_;
  std::vector<PendingTransfer> transfers_;
  std::uint64_t next_transfer_ = 1;

  LeaderInfo info_;
  LeaderInfo published_;
  std::vector<PendingChange> changes_;
  std::uint64_t next_change_ = 1;
  std::vector<PeerAddress> dialled_;  // as last told to the hands
  std::map<PeerId, Caller> callers_;  // members or not: at most kMembersMax
};

}  // namespace triad::dledger
