#include <signal.h>

#include <filesystem>

#include "tests/chaos/nemesis.h"

namespace triad::chaos {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr seconds kChange{60};

// What the operator types; false: it could not be done, the run has failed.
bool Do(World* world, const std::vector<std::string>& words) {
  const Status done = world->Admin(words, kChange);
  if (!done.ok() && !world->stopped()) world->Problem(done.ToString());
  return done.ok();
}

// A new peer with an empty disk on the machine of `old`; its index.
std::size_t StartNewcomer(World* world, std::size_t old) {
  const LocalBroker& broker = world->cluster().brokers()[old];
  LocalHost host = broker.host;
  if (!host.store_dir.empty()) {
    const std::filesystem::path disk = std::filesystem::path(broker.store_dir).parent_path();
    host.store_dir = disk / ("store-" + std::to_string(world->NextNumber()));
  }
  const Result<std::size_t> added = world->cluster().AddBroker(std::move(host));
  if (!added.ok()) world->Problem(added.status().ToString());
  const std::size_t newcomer = world->cluster().brokers().size() - 1;
  world->Start(newcomer);
  return newcomer;
}

bool Join(World* world, std::size_t newcomer) {
  const LocalBroker broker = world->cluster().brokers()[newcomer];
  if (!Do(world, {"addPeer", "--id", broker.peer_id, "--address",
                  broker.host.address + ":" + std::to_string(broker.peer_port)})) {
    return false;
  }
  if (world->random().OneIn(4)) {  // it dies while it learns
    world->WaitBetween(0, 500);
    const bool killed = world->SendKill(newcomer);
    FaultPtr kill = world->Begin("kill", broker.peer_id);
    if (killed) kill->TookEffect();
    world->Kill(newcomer, std::move(kill));
    world->WaitBetween(0, 500);
    world->Start(newcomer);
  }
  return Do(world, {"promotePeer", "--id", broker.peer_id});
}

}  // namespace

// A machine is replaced as the operations page says: often the leader's, sometimes a dead one. Its
// successor has a new id and an empty disk.
void StrikeMember(World* world) {
  world->AllUp(kChange);
  const std::size_t old =
      world->random().OneIn(2) ? world->Leader().value_or(world->AnyPeer()) : world->AnyPeer();
  const bool dead = world->random().OneIn(3);
  const LocalBroker gone = world->cluster().brokers()[old];
  FaultPtr fault =
      world->Begin("member", gone.peer_id + (dead ? " died, it" : "") + " is replaced");
  const std::vector<std::string> remove{"removePeer", "--id", gone.peer_id};
  if (dead) {
    world->Kill(old);
    if (!Do(world, remove)) return;
  }
  const std::size_t newcomer = StartNewcomer(world, old);
  if (!Join(world, newcomer)) return;
  if (!dead) {
    if (!Do(world, remove)) return;
    world->WaitBetween(0, 1500);  // it still knocks
    world->MayEnd(old);
    const Result<int> ended = world->cluster().Signal(old, SIGTERM, kChange);
    if (!ended.ok()) world->Problem(ended.status().ToString());
    if (ended.ok() && *ended != 0) {
      world->Problem(gone.peer_id + " left with status " + std::to_string(*ended));
    }
  }
  world->TakePlace(newcomer, old);
  fault->TookEffect();
  fault.reset();
  std::filesystem::remove_all(gone.store_dir);
  world->AllUp(kChange);
  world->WaitCaughtUp(old, kChange);
  world->WaitBetween(500, 2000);
}

}  // namespace triad::chaos
