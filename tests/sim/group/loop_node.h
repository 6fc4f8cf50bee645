// LoopNode: a dledger::Node without threads: the real log driver, disk writer and log store on the
// simulator's one thread. What NodeShell does with threads and sockets, as events.
//
// Every hand-over between the threads of the real node is an event of its own, after a time the
// dice choose, so that orders differ as they do there. Owner: SimPeer, one per life.

#pragma once

#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "dledger/disk_writer.h"
#include "dledger/log_cleaner.h"
#include "dledger/log_driver.h"
#include "dledger/open_log.h"
#include "dledger/snapshot_desk.h"
#include "tests/sim/group/event_loop.h"
#include "tests/sim/random.h"

namespace triad::sim {

// What a node needs of its machine.
class NodeHost {
 public:
  virtual ~NodeHost() = default;
  // Runs `task` later on this peer; never when its life is over.
  virtual void Post(Micros delay, std::function<void()> task) = 0;
  virtual void SendToPeer(const PeerId& to, dledger::Message message) = 0;
  virtual void SendToPeer(const PeerId& to, dledger::SnapshotMessage message) = 0;
  virtual bool IsConnected(const PeerId& to) const = 0;
  virtual void SetPeers(const std::vector<dledger::PeerAddress>& peers) = 0;  // whom to dial
  virtual Micros CleanEvery() const = 0;     // a look at the oldest segment; 0: never
  virtual bool CleansByTheRule() const = 0;  // the product's; else whatever may go goes
  virtual void OnHeld() = 0;  // the oldest segment could go, but for a peer that catches up
  virtual void OnDropped(LogIndex first) = 0;      // the log begins there now
  virtual void OnInstalled(LogIndex applied) = 0;  // the state is another peer's up to there
  // Committed entries on their way to the application.
  virtual void OnApply(const std::vector<dledger::EntryRef>& entries) = 0;
  virtual Random& disk_dice() = 0;
  virtual Random& dice() = 0;
  virtual Micros SyncLatency() = 0;
};

class LoopNode final : public dledger::Node, private dledger::Hands {
 public:
  LoopNode(NodeHost& host, FileSystem& fs, const Clock& clock, dledger::NodeOptions options,
           dledger::OpenedLog log, dledger::Application* application);

  // ---- Node ----
  Status Start() override;
  void WakeProposer() override;
  dledger::LeaderInfo leader_info() const override { return info_; }
  dledger::NodeStatus status() const override;
  void ReadIndex(std::chrono::milliseconds timeout, std::function<void(Status)> done) override;
  void TransferLeadership(PeerId to, std::chrono::milliseconds timeout,
                          std::function<void(Status)> done) override;
  void ChangeMembership(dledger::MembershipOp op, dledger::PeerAddress peer,
                        std::chrono::milliseconds timeout,
                        std::function<void(Status)> done) override;
  PhysicalOffset begin_position() const override { return log_->begin_position(); }
  PhysicalOffset end_position() const override { return log_->end_position(); }
  std::int64_t LogTimeMs() const override { return log_time_ms_; }
  dledger::EntryRef CachedAt(PhysicalOffset inside) const override {
    return log_->CachedAt(inside);
  }
  void LoadAt(PhysicalOffset inside, std::function<void(Result<dledger::EntryRef>)> done) override;
  Result<dledger::EntryRef> ReadAt(PhysicalOffset inside) override { return log_->ReadAt(inside); }
  bool PostReader(std::function<void()> task) override;
  Result<std::vector<dledger::EntryRef>> ReadRange(LogIndex from, LogIndex to,
                                                   std::size_t max_bytes) override {
    return log_->ReadRange(from, to, max_bytes);
  }
  void SetRetention(dledger::RetentionOptions) override {}  // the world drops segments
  void CleanNow() override {}                               // when it likes
  const dledger::RawLog& raw_log() const override { return log_->raw(); }
  void Replace(dledger::EntryRef entry, std::function<void(Status)> done) override;
  void Stop() override;

  // ---- the network ----
  dledger::Hello OwnState() { return driver_.OwnState(); }
  std::uint64_t group_id() const { return driver_.group_id(); }
  void OnHello(const dledger::Hello& hello);
  void OnMessage(const PeerId& from, dledger::Message message, std::int64_t wall_ms);
  void OnSnapshot(const PeerId& from, dledger::SnapshotMessage message);
  void OnDisconnected(const PeerId& peer);

  const dledger::LogStore& log() const { return *log_; }
  dledger::LogStore& log() { return *log_; }
  LogIndex applied() const { return applied_; }

 private:
  // ---- Hands ----
  void Send(const PeerId& to, dledger::Message message) override;
  void Store(dledger::StorageOp op) override { turn_ops_.push_back(std::move(op)); }
  void Load(dledger::LoadRequest request) override;
  void LoadTail(LogIndex last_index) override;
  void Commit(LogIndex upto, std::vector<dledger::EntryRef> entries, LogIndex durable) override;
  void SendSnapshot(const dledger::SnapshotNeeded& needed) override {
    desk_.OnNeeded(needed.peer, needed.term);
  }
  void RefuseSnapshot() override { desk_.OnRefused(); }
  void Publish(const dledger::LeaderInfo& info) override;
  void SetPeers(const std::vector<dledger::PeerAddress>& peers) override { host_.SetPeers(peers); }
  std::uint64_t Random() override { return host_.dice().Next() | 1; }
  bool IsDiskFull() override { return is_full_; }

  void Post(Micros delay_max, std::function<void()> task);
  dledger::SnapshotDesk::Links LinksOfDesk();
  Status InstallSnapshot();
  void EndTurn();
  void Turn(Micros delay_max, std::function<void()> task);
  void OnTick();
  void StartDisk();
  void WriteBatch();
  void FinishBatch();
  void Prepare();
  void Checkpoint();
  void Clean();
  void CleanByTheRule(LogIndex durable);
  void CleanAnything(LogIndex durable);
  void OnDropped(LogIndex first);
  void WorkOfApplyThread();
  void ApplySome();
  void IdleApply();

  NodeHost& host_;
  const Clock& clock_;
  const dledger::NodeOptions options_;
  const std::unique_ptr<dledger::LogStore> log_;
  dledger::Application* const application_;
  dledger::LogDriver driver_;
  dledger::DiskWriter writer_;
  dledger::SnapshotDesk desk_;
  dledger::LogCleaner cleaner_;

  dledger::LeaderInfo info_;
  TimePoint ticked_at_;
  std::int64_t log_time_ms_ = 0;  // at the last tick
  bool is_wake_posted_ = false;
  bool is_stopped_ = false;

  std::vector<dledger::StorageOp> turn_ops_;
  std::vector<dledger::StorageOp> disk_queue_;
  std::vector<dledger::StorageOp> disk_batch_;
  bool is_disk_busy_ = false;
  bool is_installing_ = false;  // the disk waits for the application
  bool is_full_ = false;
  PhysicalOffset checkpoint_at_;

  LogIndex committed_;
  LogIndex applied_;
  std::vector<dledger::EntryRef> to_apply_;  // ascending
  bool is_apply_posted_ = false;
};

}  // namespace triad::sim
