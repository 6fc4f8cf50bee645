#include "broker/service/leader_reads.h"

#include <glog/logging.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "common/mutant.h"

namespace triad::broker {

struct LeaderReads::Shared {
  explicit Shared(dledger::Node& n) : node(n) {}

  struct Waiter {
    std::chrono::milliseconds timeout;
    std::function<void(Status)> done;
  };

  dledger::Node& node;
  std::size_t max_waiting = 0;
  std::mutex mutex;
  std::vector<Waiter> waiting;  // for the next round
  bool round_running = false;
};

LeaderReads::LeaderReads(dledger::Node& node, std::size_t max_waiting)
    : shared_(std::make_shared<Shared>(node)) {
  CHECK_GT(max_waiting, 0u);
  shared_->max_waiting = max_waiting;
}

LeaderReads::~LeaderReads() = default;

void LeaderReads::Confirm(std::chrono::milliseconds timeout, std::function<void(Status)> done) {
  if (TRIAD_MUTANT(21) && shared_->node.leader_info().ready) return done(Status::Ok());
  {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->waiting.size() < shared_->max_waiting) {
      shared_->waiting.push_back({timeout, std::move(done)});
      done = nullptr;
      if (shared_->round_running) return;  // it goes with the next round, which begins after it
      shared_->round_running = true;
    }
  }
  if (done) {
    done(Status::Busy("too many reads wait for the leadership to be confirmed"));
    return;
  }
  StartRound(shared_);
}

void LeaderReads::StartRound(const std::shared_ptr<Shared>& shared) {
  auto round = std::make_shared<std::vector<Shared::Waiter>>();
  std::chrono::milliseconds timeout{1};
  {
    const std::lock_guard lock(shared->mutex);
    round->swap(shared->waiting);
    if (round->empty()) {
      shared->round_running = false;
      return;
    }
  }
  for (const auto& waiter : *round) timeout = std::max(timeout, waiter.timeout);
  shared->node.ReadIndex(timeout, [shared, round](Status status) {
    // The next round starts first: whoever waits for it need not wait for the callbacks of this.
    StartRound(shared);
    for (auto& waiter : *round) waiter.done(status);
  });
}

}  // namespace triad::broker
