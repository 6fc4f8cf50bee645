#include "tests/sim/group/sim_peer.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "broker/service/timer_queue.h"
#include "broker/state/memory_state_store.h"
#include "broker/store/message_store.h"
#include "common/broken_ground.h"
#include "tests/sim/group/group_oracle.h"

namespace triad::sim {
namespace {

constexpr std::int64_t kEpochMs = 1'700'000'000'000;
constexpr std::int64_t kBootNs = 1'000'000'000'000;

// What the handler throws and Run catches.
struct PeerDied {
  std::string why;
};

void Die(const std::string& why) {
  throw PeerDied{why};
}

// The broker's server: the net hands it requests.
class LoopServer final : public remoting::Server {
 public:
  LoopServer(remoting::ServerHandler handler, remoting::ServerHandler* place)
      : handler_(std::move(handler)), place_(place) {}
  Status Start() override {
    *place_ = handler_;
    return Status::Ok();
  }
  std::vector<std::uint16_t> ports() const override { return {10911}; }
  std::size_t connection_count() const override { return 0; }
  void Stop(std::chrono::milliseconds) override { *place_ = {}; }
  void StopAccepting() override {}

 private:
  const remoting::ServerHandler handler_;
  remoting::ServerHandler* const place_;
};

}  // namespace

PeerId FirstIdOf(int machine) {
  return PeerId("n" + std::to_string(machine));
}

int MachineOf(const PeerId& id) {
  return id.value().back() - '0';
}

std::string PeerAddressOf(int machine) {
  return "10.0.0." + std::to_string(machine + 1) + ":40911";
}

// Monotonic time at its own speed; wall time of the whole simulation plus an offset.
class SimPeer::PeerClock final : public Clock {
 public:
  PeerClock(const SimPeer& peer, int percent) : peer_(peer), percent_(percent) {}
  TimePoint MonoNow() const override {
    const std::int64_t ns = peer_.world_.loop.now() * 10 * percent_;
    return TimePoint(std::chrono::nanoseconds(kBootNs + ns));
  }
  std::int64_t WallNowMs() const override { return peer_.WallNowMs(); }
  // The first moment of the loop at which this clock shows `at` or more.
  Micros LoopTimeOf(TimePoint at) const {
    const std::int64_t ns = at.time_since_epoch().count() - kBootNs;
    return ns / (10 * percent_) + 1;
  }

 private:
  const SimPeer& peer_;
  const int percent_;
};

SimPeer::SimPeer(int index, const World& world, int clock_percent)
    : index_(index),
      id_(FirstIdOf(index)),
      world_(world),
      fs_(world.options.seed * 31 + static_cast<std::uint64_t>(index)),
      clock_(std::make_unique<PeerClock>(*this, clock_percent)) {
  SetBrokenGroundHandler(&sim::Die);
  fs_.set_short_writes(world.options.short_writes);
  fs_.set_reads_old_after_failed_sync(world.options.reads_old);
}

SimPeer::~SimPeer() {
  if (!up()) return;
  EndLife();
}

std::string SimPeer::log_dir() const {
  return "/store/dledger-" + id_.value();
}

std::int64_t SimPeer::WallNowMs() const {
  return kEpochMs + world_.loop.now() / 1000 + wall_offset_ms_;
}

// Itself, and who belongs to the group now, as docs/operations.md asks for.
std::string SimPeer::PeersInFile() const {
  std::vector<PeerId> ids = world_.members();
  if (std::find(ids.begin(), ids.end(), id_) == ids.end()) ids.push_back(id_);
  std::string peers;
  for (const PeerId& id : ids) {
    peers += (peers.empty() ? "" : ";") + id.value() + "-" + PeerAddressOf(MachineOf(id));
  }
  return peers;
}

broker::BrokerConfig SimPeer::Config() const {
  broker::BrokerConfigSource source;
  source.file = "broker.conf";
  source.host_name = "host";
  source.home = "/root";
  source.text =
      "brokerName=broker-a\nenableDLegerCommitLog=true\ndLegerGroup=broker-a\n"
      "dLegerPeers=" +
      PeersInFile() +
      "\n"
      "storePathRootDir=/store\nmessageDelayLevel=1s 2s 3s\nlistenPort=10911\n"
      "logVerifyBytesPerSecond=0\n";
  if (world_.options.preferred >= 0) {
    source.text += "preferredLeaderId=n" + std::to_string(world_.options.preferred) + "\n";
  }
  source.text = source.text + "dLegerSelfId=" + id_.value() + "\nbrokerIP1=10.0.0." +
                std::to_string(index_ + 1) + "\n";
  broker::LoadedBrokerConfig loaded = broker::LoadBrokerConfig(source);
  CHECK(loaded.faults.empty()) << loaded.faults.front();
  loaded.config.segment_bytes = static_cast<std::int32_t>(world_.options.segment_bytes);
  loaded.config.cache_bytes = static_cast<std::int64_t>(world_.options.cache_bytes);
  return loaded.config;
}

broker::BrokerWorld SimPeer::BrokerGround() {
  broker::BrokerWorld ground;
  ground.make_timers = [this] {
    auto timers = std::make_unique<broker::TimerQueue>(*clock_);
    timers_ = timers.get();
    return timers;
  };
  ground.make_client = [this](const remoting::ClientHandler&) {
    return MakeLoopClient(world_.net, index_);
  };
  ground.make_server = [this](const remoting::ServerOptions&,
                              const remoting::ServerHandler& handler) {
    return std::make_unique<LoopServer>(handler, &server_);
  };
  ground.adjust_store = [this](broker::MessageStoreOptions* o) {
    o->node.prepare_bytes = 16384;
    o->state_flush_interval = std::chrono::milliseconds(world_.options.state_flush_every / kMs);
    o->queue_checkpoint_interval =
        std::chrono::milliseconds(world_.options.queue_checkpoint_every / kMs);
    o->queue_sync_in_background = false;
    o->install_batch_bytes = 1000;  // a state comes in several
    o->open_state_store = [this](const std::string& dir) {
      return broker::OpenMemoryStateStore(*life_fs_, dir);
    };
    o->open_node =
        [this](FileSystem& fs, const Clock& clock, dledger::NodeOptions options,
               dledger::Application* application) -> Result<std::unique_ptr<dledger::Node>> {
      if (CleansByTheRule()) options.retention = Retention();
      Result<dledger::OpenedLog> log = dledger::OpenLog(fs, options);
      if (!log.ok()) return log.status();
      auto node = std::make_unique<LoopNode>(*this, fs, clock, std::move(options),
                                             std::move(log).value(), application);
      node_ = node.get();
      return std::unique_ptr<dledger::Node>(std::move(node));
    };
  };
  return ground;
}

// In little, as all sizes here.
dledger::RetentionOptions SimPeer::Retention() const {
  dledger::RetentionOptions retention;
  retention.age = std::chrono::milliseconds(world_.options.retention_age / kMs);
  retention.expired_percent = 0;
  retention.forced_percent = 50;
  retention.free_floor_bytes = UINT64_MAX;
  return retention;
}

// Half used, and so many segments are too many.
void SimPeer::FitDisk() {
  const auto segments = static_cast<std::uint64_t>(world_.options.disk_segments);
  fs_.set_total_bytes(2 * (fs_.disk().TotalBytes() + segments * world_.options.segment_bytes));
}

void SimPeer::LoseDisk() {
  Die(false);
  fs_.Wipe();
  world_.oracle.OnDiskLost(index_, held_);
}

void SimPeer::Renew() {
  LoseDisk();
  id_ = PeerId("n" + std::to_string(10 * ++generation_ + index_));
  was_started_ = false;
  world_.oracle.OnNewPeer(index_);
}

Status SimPeer::Start() {
  CHECK(!up());
  was_started_ = true;
  dialled_.fill(PeerId());
  life_ = std::make_shared<Life>();
  life_fs_ = std::make_unique<LifeFileSystem>(fs_, life_);
  armed_at_ = 0;
  paused_until_ = 0;
  broker::BrokerOptions options;
  options.world = BrokerGround();
  broker_ = std::make_unique<broker::Broker>(Config(), std::move(options), *life_fs_, *clock_);
  Status started;
  world_.oracle.OnPeerStarts(index_);
  Run([this, &started] {
    started = broker_->Start();
    if (!started.ok()) return;
    world_.oracle.OnLogBegins(index_, node_->log().base().tail.next_index);
    const dledger::Recovered& found = node_->log().recovered();
    world_.oracle.OnRecovered(index_, found.recovering,
                              found.last_index == LogIndex(0) && found.hard_state.term == Term(0));
    is_started_ = true;
    world_.net.OnPeerUp(index_);
  });
  if (!up()) return Status::IoError("died while it started");
  if (!started.ok()) EndLife();
  return started;
}

void SimPeer::EndLife() {
  // A node whose start failed may be gone already.
  if (std::exchange(is_started_, false)) held_ = node_->status().last_index;
  life_->over = true;
  fs_.Kill();
  try {
    broker_->Stop();
  } catch (const PeerDied&) {
    // It had an error of its disk to report still; nothing of it reaches anybody.
  }
  broker_.reset();
  node_ = nullptr;
  timers_ = nullptr;
  server_ = {};
}

void SimPeer::Die(bool power) {
  if (!up()) return;
  EndLife();
  if (power) fs_.CrashRandomly();
  world_.net.OnPeerDown(index_, !power);
}

void SimPeer::Stop() {
  if (!up()) return;
  Run([this] { broker_->Stop(); });
  Die(false);
}

void SimPeer::Run(const std::function<void()>& task) {
  try {
    task();
  } catch (const PeerDied& died) {
    const std::string why = died.why;
    Die(false);
    world_.on_died(index_, why);
    return;
  }
  if (up()) ArmTimers();
}

void SimPeer::ArmTimers() {
  if (timers_ == nullptr) return;
  const std::optional<TimePoint> due = timers_->NextDue();
  if (!due) return;
  const Micros at = std::max(clock_->LoopTimeOf(*due), world_.loop.now() + 1);
  if (armed_at_ != 0 && armed_at_ <= at) return;
  armed_at_ = at;
  Post(at - world_.loop.now(), [this] {
    if (armed_at_ <= world_.loop.now()) armed_at_ = 0;
    timers_->RunOne();
  });
}

void SimPeer::Post(Micros delay, std::function<void()> task) {
  world_.loop.After(delay, [this, life = life_, task = std::move(task)]() mutable {
    Deliver(life, std::move(task));
  });
}

void SimPeer::Deliver(const LifePtr& life, std::function<void()> task) {
  if (life == nullptr || life->over) return;
  if (paused()) {
    world_.loop.At(paused_until_, [this, life, task = std::move(task)]() mutable {
      Deliver(life, std::move(task));
    });
    return;
  }
  Run(task);
}

void SimPeer::SendToPeer(const PeerId& to, dledger::Message message) {
  world_.oracle.OnRaftSend(index_, to, message);
  if (!IsConnected(to)) return;
  world_.net.SendRaft(index_, MachineOf(to), {.wall_ms = WallNowMs(), .body = std::move(message)});
}

void SimPeer::SendToPeer(const PeerId& to, dledger::SnapshotMessage message) {
  if (!IsConnected(to)) return;
  world_.net.SendRaft(index_, MachineOf(to), {.wall_ms = WallNowMs(), .body = std::move(message)});
}

// A connection ends when the machine gets another id.
bool SimPeer::IsConnected(const PeerId& to) const {
  return dialled(MachineOf(to)) == to && world_.net.connected(index_, MachineOf(to));
}

void SimPeer::SetPeers(const std::vector<dledger::PeerAddress>& peers) {
  std::array<PeerId, kPeersMax> wanted;
  for (const dledger::PeerAddress& peer : peers) {
    CHECK_EQ(dledger::HostPortText(peer), PeerAddressOf(MachineOf(peer.id)));
    PeerId& there = wanted[static_cast<std::size_t>(MachineOf(peer.id))];
    // A peer that is gone, and the one that has its machine now: the first finds nobody.
    if (there.empty() || peer.id == world_.net.IdOf(MachineOf(peer.id))) there = peer.id;
  }
  wanted[static_cast<std::size_t>(index_)] = PeerId();
  dialled_ = wanted;
  if (is_started_) world_.net.DialWanted(index_);
}

void SimPeer::OnDropped(LogIndex first) {
  world_.oracle.OnLogBegins(index_, first);
}

void SimPeer::OnInstalled(LogIndex applied) {
  world_.oracle.OnInstalled(index_, applied);
}

void SimPeer::OnApply(const std::vector<dledger::EntryRef>& entries) {
  for (const dledger::EntryRef& entry : entries) world_.oracle.OnApply(index_, entry);
}

Micros SimPeer::SyncLatency() {
  Micros latency = world_.disk_dice.Between(30, healed_ ? 500 : world_.options.disk_latency_max);
  if (!healed_ && world_.options.disk_hang_max > 0 && world_.disk_dice.OneIn(200)) {
    latency += world_.disk_dice.Between(0, world_.options.disk_hang_max);
  }
  return latency + std::exchange(hang_, 0);
}

}  // namespace triad::sim
