#include <utility>

#include "tests/chaos/nemesis.h"

namespace triad::chaos {

using std::chrono::milliseconds;

namespace {

using Links = std::vector<std::pair<std::string, std::string>>;  // from, to

Links Both(const std::string& a, const std::string& b) {
  return {{a, b}, {b, a}};
}

Links Around(World* world, const std::string& host, bool in, bool out) {
  Links links;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string other = world->HostOf(i);
    if (other == host) continue;
    if (in) links.emplace_back(other, host);
    if (out) links.emplace_back(host, other);
  }
  return links;
}

void Cut(World* world, const Links& links) {
  for (const auto& [from, to] : links) {
    const Status cut = world->layout()->Cut(from, to);
    if (!cut.ok()) world->Problem(cut.ToString());
  }
}

void Heal(World* world) {
  const Status healed = world->layout()->Heal();
  if (!healed.ok()) world->Problem(healed.ToString());
}

}  // namespace

std::int64_t Dropped::Now() const {
  const Result<std::int64_t> dropped = world_.layout()->Dropped();
  if (!dropped.ok()) world_.Problem(dropped.status().ToString());
  return dropped.ok() ? *dropped : 0;
}

void Dropped::Judge(Fault* fault) const {
  const std::int64_t count = Now() - before_;
  fault->Saw(std::to_string(count) + " packets dropped");
  if (count > 0) fault->TookEffect();
}

void StrikeCut(World* world) {
  const std::size_t peer = world->LeaderOrAny();
  const std::string host = world->HostOf(peer);
  const std::string next = world->HostOf((peer + 1) % 3);
  const std::string third = world->HostOf((peer + 2) % 3);
  Links links;
  std::string what;
  switch (world->random().Below(8)) {
    case 0: what = "one-way from " + host, links = Around(world, host, false, true); break;
    case 1: what = "one-way to " + host, links = Around(world, host, true, false); break;
    case 2: what = "one link from " + host + " to " + next, links = {{host, next}}; break;
    case 3: what = "full " + host, links = Around(world, host, true, true); break;
    case 4: what = "bridge over " + host, links = Both(next, third); break;
    case 5: what = "ring", links = {{next, host}, {third, next}, {host, third}}; break;
    case 6: what = host + " from clients", links = Both(host, "c"); break;
    default: what = "flapping " + host, links = Around(world, host, true, true); break;
  }
  FaultPtr fault = world->Begin("cut", what);
  const Dropped dropped(world);
  const std::int64_t end_ns = NowNs() + world->random().Between(3000, 6000) * 1'000'000;
  if (what.rfind("flapping", 0) == 0) {
    while (NowNs() < end_ns && !world->stopped()) {
      Cut(world, links);
      world->Wait(milliseconds(50));
      Heal(world);
      world->Wait(milliseconds(50));
    }
  } else {
    Cut(world, links);
    // Sometimes one dies meanwhile.
    const bool kills = world->random().OneIn(3);
    const std::size_t victim = world->AnyPeer();
    if (kills) {
      world->WaitBetween(200, 2000);
      const bool killed = world->SendKill(victim);
      FaultPtr kill = world->Begin("kill", world->HostOf(victim));
      if (killed) kill->TookEffect();
      world->Kill(victim, std::move(kill));
      world->WaitBetween(0, 1000);
      world->Start(victim);
    }
    world->Wait(milliseconds((end_ns - NowNs()) / 1'000'000));
  }
  dropped.Judge(fault.get());
  Heal(world);
  fault.reset();
  world->WaitBetween(1000, 2500);
}

void StrikeLoss(World* world) {
  const int percent = static_cast<int>(world->random().Between(5, 30));
  FaultPtr fault = world->Begin("loss", std::to_string(percent) + " %");
  const Dropped dropped(world);
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      if (i == j) continue;
      const Status lost = world->layout()->Lose(world->HostOf(i), world->HostOf(j), percent);
      if (!lost.ok()) world->Problem(lost.ToString());
    }
  }
  world->WaitBetween(4000, 9000);
  dropped.Judge(fault.get());
  Heal(world);
  fault.reset();
  world->WaitBetween(1000, 2500);
}

void StrikeSlow(World* world) {
  const std::string host = world->HostOf(world->LeaderOrAny());
  FaultPtr fault = world->Begin("slow", host);
  const Status slowed = world->layout()->Slow(host);
  if (!slowed.ok()) world->Problem(slowed.ToString());
  world->WaitBetween(4000, 9000);
  const Result<std::int64_t> waited = world->layout()->WaitedAt(host);
  if (!waited.ok()) world->Problem(waited.status().ToString());
  if (waited.ok()) {
    fault->Saw(std::to_string(*waited) + " packets had to wait");
    if (*waited > 0) fault->TookEffect();
  }
  Heal(world);
  fault.reset();
  world->WaitBetween(1000, 2500);
}

}  // namespace triad::chaos
