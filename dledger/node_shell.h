// NodeShell: the threads of one peer and what they hand to each other. Private to dledger/.
//
// The log thread runs `io_`: ticks, peer sockets, LogDriver. All it does is done in turns, under
// `turn_mutex_`. Others post to it; two of them, a connection whose send finds the log idle and the
// disk thread behind a sync, take the turn themselves when nobody has it: the log thread need not
// wake up for it. "Log thread" below means: in a turn. What the driver wants stored in a turn goes
// to the disk thread in one piece at the end of the turn. Bounds: read
// and transfer callers as in read_queue.h and log_driver.h, reader tasks as in reader_pool.h.

#pragma once

#include <asio.hpp>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "common/latency_window.h"
#include "dledger/apply_thread.h"
#include "dledger/background_thread.h"
#include "dledger/disk_thread.h"
#include "dledger/log/log_store.h"
#include "dledger/log_driver.h"
#include "dledger/node.h"
#include "dledger/peer/transport.h"
#include "dledger/reader_pool.h"
#include "dledger/snapshot_desk.h"

namespace triad::dledger {

class NodeShell final : public Node, private Hands, private PeerEvents {
 public:
  NodeShell(FileSystem& fs, const Clock& clock, NodeOptions options, std::unique_ptr<LogStore> log,
            Recovered recovered, Application* application);
  ~NodeShell() override;

  // Binds the peer port; nothing to do for a group of one. Errors as PeerTransport::Listen.
  Status Listen();

  // ---- Node ----
  Status Start() override;
  void WakeProposer() override;
  void ProposeNow() override;
  LeaderInfo leader_info() const override;
  NodeStatus status() const override;
  void ReadIndex(std::chrono::milliseconds timeout, std::function<void(Status)> done) override;
  void TransferLeadership(PeerId to, std::chrono::milliseconds timeout,
                          std::function<void(Status)> done) override;
  void ChangeMembership(MembershipOp op, PeerAddress peer, std::chrono::milliseconds timeout,
                        std::function<void(Status)> done) override;
  PhysicalOffset begin_position() const override;
  PhysicalOffset end_position() const override;
  std::int64_t LogTimeMs() const override;
  EntryRef CachedAt(PhysicalOffset inside) const override;
  void LoadAt(PhysicalOffset inside, std::function<void(Result<EntryRef>)> done) override;
  Result<EntryRef> ReadAt(PhysicalOffset inside) override;
  bool PostReader(std::function<void()> task) override;
  Result<std::vector<EntryRef>> ReadRange(LogIndex from, LogIndex to,
                                          std::size_t max_bytes) override;
  void SetRetention(RetentionOptions retention) override {
    background_.SetRetention(std::move(retention));
  }
  void CleanNow() override { background_.CleanNow(); }
  const RawLog& raw_log() const override;
  void Replace(EntryRef entry, std::function<void(Status)> done) override;
  void Stop() override;

 private:
  // What callers on other threads leave for the log thread.
  struct Transfer {
    PeerId to;
    TimePoint deadline;
    std::function<void(Status)> done;
  };
  struct Change {
    MembershipOp op;
    PeerAddress peer;
    TimePoint deadline;
    std::function<void(Status)> done;
  };
  struct Inbox {
    std::mutex mutex;
    std::vector<PendingRead> reads;
    std::vector<Transfer> transfers;
    std::vector<Change> changes;
    bool is_posted = false;
    bool is_closed = false;
  };

  // ---- Hands (log thread) ----
  void Send(const PeerId& to, Message message) override;
  void Store(StorageOp op) override;
  void Load(LoadRequest request) override;
  void LoadTail(LogIndex last_index) override;
  void Commit(LogIndex upto, std::vector<EntryRef> entries, LogIndex durable) override;
  void SendSnapshot(const SnapshotNeeded& needed) override;
  void RefuseSnapshot() override;
  void Publish(const LeaderInfo& info) override;
  std::uint64_t Random() override;
  bool IsDiskFull() override;
  std::uint64_t PreparedBytes() override;
  void SetPeers(const std::vector<PeerAddress>& peers) override;

  // ---- PeerEvents (log thread) ----
  std::unique_lock<std::mutex> BeginTurn() override { return std::unique_lock(turn_mutex_); }
  Hello OwnState() override;
  std::uint64_t OwnGroupId() override;
  void OnHello(const Hello& hello) override;
  void OnMessage(const PeerId& from, Message message, std::int64_t wall_ms) override;
  void OnSnapshot(const PeerId& from, SnapshotMessage message) override;
  void OnDisconnected(const PeerId& peer) override;
  void OnEventsEnd() override;

  void RunLogThread();
  // Runs `task` on the log thread as one turn.
  template <typename Task>
  void Post(Task task);
  // Any thread. Runs `task` as a turn at once, unless another turn is under way: then as Post.
  template <typename Task>
  void RunOrPost(Task task);
  void EndTurn();
  void ArmTick();
  void OnTickTimer();
  void RefreshStatus();
  void OnAppliedMoved();  // apply thread
  SnapshotDesk::Links LinksOfDesk();
  BackgroundThread::Facts FactsForRetention(const Application& application);
  template <typename Leave>
  bool LeaveInInbox(Leave leave);
  void EmptyInbox();
  void CloseInbox();
  void CloseLogThread();

  const Clock& clock_;
  const NodeOptions options_;

  std::mutex turn_mutex_;      // taken first; whoever does not run `io_` only tries
  bool takes_turns_ = false;   // in a turn: begun, and not closed
  std::thread::id io_runner_;  // in a turn: the log thread

  asio::io_context io_{1};
  asio::steady_timer tick_timer_{io_};
  TimePoint ticked_at_;
  const std::unique_ptr<LogStore> log_;
  LogDriver driver_;                          // log thread
  std::unique_ptr<PeerTransport> transport_;  // log thread; null for a group of one
  std::vector<StorageOp> turn_ops_;           // log thread: to be stored at the end of the turn

  mutable LatencyWindow loop_delay_;  // of ticks
  mutable DiskThread disk_;
  ReaderPool readers_;
  ApplyThread apply_;
  BackgroundThread background_;
  SnapshotDesk desk_;
  std::thread log_thread_;

  Inbox inbox_;
  std::atomic<bool> is_wake_posted_{false};
  std::atomic<bool> is_apply_watched_{false};  // the log thread wants to hear of it
  std::atomic<std::int64_t> log_time_ms_{0};   // at the last tick
  std::atomic<std::uint64_t> settled_{0};      // LogDriver::settled_index, as of the last tick
  std::atomic<bool> is_started_{false};
  std::atomic<bool> is_stopped_{false};

  mutable std::mutex snapshot_mutex_;
  LeaderInfo info_snapshot_;
  NodeStatus status_snapshot_;
};

}  // namespace triad::dledger
