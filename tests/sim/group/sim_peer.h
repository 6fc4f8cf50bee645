// SimPeer: one simulated machine: a disk, clocks, and, while it is up, a whole broker.
//
// Thread: the simulator's only one. A failed disk ends the broker's life by an exception from the
// broken-ground handler (common/broken_ground.h); Run catches it.

#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "broker/broker.h"
#include "tests/sim/group/event_loop.h"
#include "tests/sim/group/group_net.h"
#include "tests/sim/group/group_options.h"
#include "tests/sim/group/life_file_system.h"
#include "tests/sim/group/loop_node.h"
#include "tests/sim/sim_file_system.h"

namespace triad::sim {

PeerId FirstIdOf(int machine);  // 0 -> "n0"
// The machine of a peer: that of "n3" is 3, and so are those of the ids it gets later, "n13",
// "n23".
int MachineOf(const PeerId& id);
std::string PeerAddressOf(int machine);  // "10.0.0.1:40911", where its peers find it

class SimPeer final : public NodeHost {
 public:
  struct World {
    const GroupOptions& options;
    EventLoop& loop;
    GroupNet& net;
    GroupOracle& oracle;
    Random& disk_dice;
    Random& dice;
    std::function<std::vector<PeerId>()> members;  // that the file of a peer names beside itself
    std::function<void(int peer, const std::string& why)> on_died;  // by its disk
  };
  SimPeer(int index, const World& world, int clock_percent);
  ~SimPeer() override;

  int index() const { return index_; }
  const PeerId& id() const { return id_; }
  // Another peer from now on, with an empty disk. It dies, if it lives.
  void Renew();
  bool leads() const { return node_->leader_info().role == dledger::Role::kLeader; }  // while up
  bool was_started() const { return was_started_; }  // under its present id
  // Whom it dials on `machine`; empty: nobody.
  const PeerId& dialled(int machine) const { return dialled_[static_cast<std::size_t>(machine)]; }
  bool up() const { return broker_ != nullptr; }
  LoopNode* node() { return node_; }
  // Of its log; while it is down, when its last life ended.
  LogIndex last_index() const { return is_started_ ? node_->status().last_index : held_; }
  SimFileSystem& fs() { return fs_; }
  const SimFileSystem& fs() const { return fs_; }
  std::string log_dir() const;
  const remoting::ServerHandler& server() const { return server_; }
  std::int64_t WallNowMs() const;
  LifePtr life() const { return life_; }

  // Not OK: it did not start, and is down.
  Status Start();
  // The end of the process; `power`: what was not synced may be lost.
  void Die(bool power);
  // An orderly end.
  void Stop();
  void PauseUntil(Micros until) { paused_until_ = std::max(paused_until_, until); }
  bool paused() const { return paused_until_ > world_.loop.now(); }
  void JumpWallClock(std::int64_t ms) { wall_offset_ms_ += ms; }
  void set_healed() { healed_ = true; }
  // The next sync takes so long.
  void HangDisk(Micros time) { hang_ = time; }
  void FitDisk();  // to what is on it now, and some segments more
  // It dies, if it lives; another, empty disk takes the place of its own.
  void LoseDisk();
  std::uint64_t holds() const { return holds_; }

  // Runs `task` as this peer, now.
  void Run(const std::function<void()>& task);

  // ---- NodeHost ----
  void Post(Micros delay, std::function<void()> task) override;
  void SendToPeer(const PeerId& to, dledger::Message message) override;
  void SendToPeer(const PeerId& to, dledger::SnapshotMessage message) override;
  bool IsConnected(const PeerId& to) const override;
  void SetPeers(const std::vector<dledger::PeerAddress>& peers) override;
  Micros CleanEvery() const override { return world_.options.clean_every; }
  bool CleansByTheRule() const override { return world_.options.retention_age > 0; }
  void OnHeld() override { ++holds_; }
  void OnDropped(LogIndex first) override;
  void OnInstalled(LogIndex applied) override;
  void OnApply(const std::vector<dledger::EntryRef>& entries) override;
  Random& disk_dice() override { return world_.disk_dice; }
  Random& dice() override { return world_.dice; }
  Micros SyncLatency() override;

 private:
  class PeerClock;

  std::string PeersInFile() const;
  broker::BrokerConfig Config() const;
  broker::BrokerWorld BrokerGround();
  dledger::RetentionOptions Retention() const;
  void EndLife();
  void Deliver(const LifePtr& life, std::function<void()> task);
  void ArmTimers();

  const int index_;
  int generation_ = 0;  // of its id
  PeerId id_;
  const World world_;
  SimFileSystem fs_;
  std::unique_ptr<PeerClock> clock_;
  std::int64_t wall_offset_ms_ = 0;
  Micros paused_until_ = 0;
  bool healed_ = false;
  Micros hang_ = 0;
  std::uint64_t holds_ = 0;
  bool is_started_ = false;
  bool was_started_ = false;
  LogIndex held_;  // the log's last entry when the last life ended

  // Of the present life.
  LifePtr life_;
  std::unique_ptr<LifeFileSystem> life_fs_;
  std::unique_ptr<broker::Broker> broker_;
  LoopNode* node_ = nullptr;               // the broker's
  broker::TimerQueue* timers_ = nullptr;   // the broker's
  std::array<PeerId, kPeersMax> dialled_;  // by machine
  Micros armed_at_ = 0;                    // a wake-up for the timers; 0: none
  remoting::ServerHandler server_;
};

}  // namespace triad::sim
