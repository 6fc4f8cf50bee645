// OnePeer: the store of one broker (log, state, consume queues, key index) on one thread, from its
// start to the end of its process; the only voter of its group, or one that never leads.
//
// Owner: a crash workload; one life each. Nothing of it reaches the disk when the life is over. A
// failed disk ends the process (common/broken_ground.h): whatever was running says kIoError.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "broker/store/message_store.h"
#include "tests/sim/group/event_loop.h"
#include "tests/sim/group/life_file_system.h"
#include "tests/sim/group/loop_node.h"
#include "tests/sim/random.h"

namespace triad::sim {

inline constexpr char kPeerRoot[] = "/store";
inline constexpr char kPeerLogDir[] = "/store/dledger-n0";

class OnePeer final : public NodeHost {
 public:
  OnePeer(FileSystem& fs, std::uint64_t seed, int peers);
  ~OnePeer() override;  // kill -9
  OnePeer(const OnePeer&) = delete;
  OnePeer& operator=(const OnePeer&) = delete;

  Status Open();
  // Starts, and runs until it leads.
  Status Lead();
  // An orderly end.
  Status Stop();
  // Runs until `done`, or kUnavailable after many seconds of its time.
  Status RunUntil(const std::function<bool()>& done);
  // Sends and awaits the answer: the outcome's status.
  Status Send(broker::Proposal proposal);

  broker::MessageStore& store() { return *store_; }
  LoopNode& node() { return *node_; }
  dledger::Application& application() { return *application_; }
  FileSystem& fs() { return fs_; }
  const Clock& clock() const;

  // ---- NodeHost ----
  void Post(Micros delay, std::function<void()> task) override {
    loop_.After(delay, std::move(task));
  }
  void SendToPeer(const PeerId&, dledger::Message) override {}
  void SendToPeer(const PeerId&, dledger::SnapshotMessage) override {}
  bool IsConnected(const PeerId&) const override { return false; }
  void SetPeers(const std::vector<dledger::PeerAddress>&) override {}
  Micros CleanEvery() const override { return 0; }
  bool CleansByTheRule() const override { return false; }
  void OnHeld() override {}
  void OnDropped(LogIndex) override {}
  void OnInstalled(LogIndex) override {}
  void OnApply(const std::vector<dledger::EntryRef>&) override {}
  Random& disk_dice() override { return dice_; }
  Random& dice() override { return dice_; }
  Micros SyncLatency() override { return 100; }

 private:
  class LoopClock;
  broker::MessageStoreOptions Options();
  static Status Guarded(const std::function<Status()>& work);

  const int peers_;
  Random dice_;
  EventLoop loop_;
  const std::unique_ptr<LoopClock> clock_;
  const LifePtr life_;
  LifeFileSystem fs_;
  bool leads_ = false;
  LoopNode* node_ = nullptr;
  dledger::Application* application_ = nullptr;
  std::unique_ptr<broker::MessageStore> store_;
};

}  // namespace triad::sim
