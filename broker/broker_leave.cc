// How a broker leaves: the leadership goes to another peer, clients are forwarded while they learn
// of it, then everything ends.

#include <glog/logging.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "broker/broker_parts.h"
#include "broker/processor/forwarding_gate.h"
#include "broker/service/delay_service.h"
#include "broker/service/dynamic_config.h"
#include "broker/service/long_polling.h"

namespace triad::broker {
namespace {

constexpr std::chrono::milliseconds kTransferTimeout{3000};
constexpr std::chrono::milliseconds kTransferSlack{1000};  // the node answers by itself
constexpr std::chrono::milliseconds kUnregisterTimeout{1000};
constexpr std::chrono::milliseconds kServerGrace{1000};
constexpr std::chrono::milliseconds kLeavePoll{50};
// Without a leader for so long there is nothing to forward to.
constexpr std::chrono::milliseconds kLeaderlessMax{2000};

}  // namespace

std::size_t Broker::Parts::ClientConnections() {
  const std::lock_guard lock(mutex);
  const std::size_t all = server->connection_count();
  return all - std::min(all, peer_connections.size());
}

bool Broker::Parts::HasOthers() const {
  return store->node().status().voters.size() > 1;
}

Status Broker::Parts::TransferOnce() {
  auto done = std::make_shared<std::promise<Status>>();
  store->node().TransferLeadership(PeerId(), kTransferTimeout,
                                   [done](Status status) { done->set_value(std::move(status)); });
  auto result = done->get_future();
  const bool answered =
      result.wait_for(kTransferTimeout + kTransferSlack) == std::future_status::ready;
  return answered ? result.get() : Status::TimedOut("no answer");
}

void Broker::Parts::HandOver() {
  if (HasOthers() && store->node().leader_info().role == dledger::Role::kLeader) {
    LOG(INFO) << "handing the leadership over";
    // Right after an election no follower may be known to be fit yet.
    const TimePoint deadline = clock.MonoNow() + kTransferTimeout;
    Status status = TransferOnce();
    while (!status.ok() && clock.MonoNow() < deadline &&
           store->node().leader_info().role == dledger::Role::kLeader) {
      std::this_thread::sleep_for(kLeavePoll);
      status = TransferOnce();
    }
    LOG_IF(WARNING, !status.ok()) << "the leadership was not handed over: " << status;
  }
  registration->StepAside();
}

void Broker::Parts::WaitForClients() {
  if (!HasOthers()) return;  // nobody to forward to
  const TimePoint deadline = clock.MonoNow() + config.shutdown_wait;
  TimePoint led_until = clock.MonoNow();
  LOG(INFO) << "forwarding for " << ClientConnections() << " client connections for at most "
            << config.shutdown_wait.count() << " s";
  for (TimePoint now = clock.MonoNow(); now < deadline; now = clock.MonoNow()) {
    if (ClientConnections() == 0) return;
    if (!store->node().leader_info().leader.empty()) led_until = now;
    if (now - led_until > kLeaderlessMax) return;
    std::this_thread::sleep_for(kLeavePoll);
  }
}

void Broker::Parts::Stop() {
  if (std::exchange(stopped, true)) return;
  if (metrics_server) metrics_server->Stop();
  if (registration) registration->Stop(kUnregisterTimeout);
  if (gate) gate->Stop();
  if (long_polling) long_polling->WakeAll();  // the server waits for their answers
  if (server) server->Stop(kServerGrace);
  if (delays) delays->Stop();
  // Whoever may still submit ends before the store, which then answers what waits.
  timers->Stop();
  client->Stop();
  if (store) store->Stop();
  if (dynamic_config) IgnoreError(dynamic_config->WriteGroup(), "it is logged, the state has it");
}

}  // namespace triad::broker
