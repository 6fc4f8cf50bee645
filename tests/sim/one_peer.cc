#include "tests/sim/one_peer.h"

#include <optional>
#include <utility>

#include "broker/state/memory_state_store.h"
#include "common/broken_ground.h"

namespace triad::sim {
namespace {

constexpr std::int64_t kEpochMs = 1'700'000'000'000;
constexpr Micros kPatience = 20 * kSecond;

struct PeerDied {
  std::string why;
};

void Die(const std::string& why) {
  throw PeerDied{why};
}

}  // namespace

class OnePeer::LoopClock final : public Clock {
 public:
  explicit LoopClock(const EventLoop& loop) : loop_(loop) {}
  TimePoint MonoNow() const override {
    return TimePoint(std::chrono::seconds(1000) + std::chrono::microseconds(loop_.now()));
  }
  std::int64_t WallNowMs() const override { return kEpochMs + loop_.now() / kMs; }

 private:
  const EventLoop& loop_;
};

OnePeer::OnePeer(FileSystem& fs, std::uint64_t seed, int peers)
    : peers_(peers),
      dice_(seed),
      clock_(std::make_unique<LoopClock>(loop_)),
      life_(std::make_shared<Life>()),
      fs_(fs, life_) {
  SetBrokenGroundHandler(&sim::Die);
}

OnePeer::~OnePeer() {
  life_->over = true;
  IgnoreError(Stop(), "nothing of it reaches the disk");
  store_.reset();
}

const Clock& OnePeer::clock() const {
  return *clock_;
}

// As MessageStoreTest's, in little.
broker::MessageStoreOptions OnePeer::Options() {
  broker::MessageStoreOptions options;
  options.root_dir = kPeerRoot;
  options.node.group = "g";
  options.node.self = PeerId("n0");
  for (int i = 0; i < peers_; ++i) {
    options.node.peers.push_back(
        {PeerId("n" + std::to_string(i)), "10.0.0.1", static_cast<std::uint16_t>(i)});
  }
  options.node.client_address = "10.0.0.1:10911";
  options.node.segment_bytes = 16u << 10;
  options.node.prepare_bytes = 4096;
  options.node.cache_bytes = 0;
  options.node.election_min = std::chrono::milliseconds(30);
  options.node.election_max = std::chrono::milliseconds(60);
  options.node.heartbeat = std::chrono::milliseconds(10);
  options.appender.store_host = broker::ParseHostPort("10.0.0.1:10911").value();
  options.state_flush_interval = std::chrono::milliseconds(150);
  options.queue_checkpoint_interval = std::chrono::milliseconds(250);
  options.queue_sync_in_background = false;
  options.install_batch_bytes = 400;  // a state comes in several
  options.open_state_store = [this](const std::string& dir) {
    return broker::OpenMemoryStateStore(fs_, dir);
  };
  options.open_node =
      [this](FileSystem& fs, const Clock& clock, dledger::NodeOptions node_options,
             dledger::Application* application) -> Result<std::unique_ptr<dledger::Node>> {
    Result<dledger::OpenedLog> log = dledger::OpenLog(fs, node_options);
    if (!log.ok()) return log.status();
    auto node = std::make_unique<LoopNode>(*this, fs, clock, std::move(node_options),
                                           std::move(log).value(), application);
    node_ = node.get();
    application_ = application;
    return std::unique_ptr<dledger::Node>(std::move(node));
  };
  return options;
}

Status OnePeer::Guarded(const std::function<Status()>& work) {
  try {
    return work();
  } catch (const PeerDied& died) {
    return Status::IoError(died.why);
  }
}

Status OnePeer::Open() {
  return Guarded([this]() -> Status {
    broker::MessageStore::Listener listener;
    listener.on_leader_change = [this](const dledger::LeaderInfo& info) { leads_ = info.ready; };
    auto opened = broker::MessageStore::Open(fs_, *clock_, Options(), std::move(listener));
    if (opened.ok()) store_ = std::move(*opened);
    return opened.status();
  });
}

Status OnePeer::Lead() {
  const Status started = Guarded([this] { return store_->Start(); });
  if (!started.ok()) return started;
  return RunUntil([this] { return leads_; });
}

Status OnePeer::Stop() {
  if (store_ == nullptr) return Status::Ok();
  return Guarded([this] {
    store_->Stop();
    return Status::Ok();
  });
}

Status OnePeer::RunUntil(const std::function<bool()>& done) {
  return Guarded([&]() -> Status {
    const Micros deadline = loop_.now() + kPatience;
    while (!done()) {
      if (loop_.now() > deadline || !loop_.RunOne()) {
        return Status::Unavailable("waited long in vain");
      }
    }
    return Status::Ok();
  });
}

Status OnePeer::Send(broker::Proposal proposal) {
  std::optional<Status> answer;
  proposal.deadline = clock_->MonoNow() + std::chrono::seconds(10);
  proposal.done = [&answer](const broker::AppendOutcome& outcome) { answer = outcome.status; };
  const Status ran = Guarded([&]() -> Status {
    store_->appender().Submit(std::move(proposal));
    return Status::Ok();
  });
  if (!ran.ok()) return ran;
  TRIAD_RETURN_IF_ERROR(RunUntil([&answer] { return answer.has_value(); }));
  return *answer;
}

}  // namespace triad::sim
