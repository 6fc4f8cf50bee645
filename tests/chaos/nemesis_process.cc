#include <signal.h>

#include <algorithm>
#include <fstream>

#include "common/clock.h"
#include "tests/chaos/nemesis.h"

namespace triad::chaos {

using std::chrono::milliseconds;
using std::chrono::seconds;

const std::vector<Nemesis>& Nemeses() {
  static const std::vector<Nemesis> all = {
      {"kill", StrikeKill, 40},
      {"failover", StrikeFailover, 5, false, false, true},
      {"transfer", StrikeTransfer, 20},
      {"restart", StrikeRestart, 6},
      {"pause", StrikePause, 4},
      {"nameserver", StrikeNameServer, 6},
      {"clock", StrikeClock, 6},
      {"cut", StrikeCut, 6, true},
      {"loss", StrikeLoss, 4, true},
      {"slow", StrikeSlow, 4, true},
      {"power", StrikePower, 6, false, true},
      {"diskfull", StrikeDiskFull, 3, false, true},
      {"eio", StrikeEio, 3, false, true},
      {"slowdisk", StrikeSlowDisk, 3, false, true},
      {"rot", StrikeRot, 2, false, true},
      {"wipe", StrikeWipe, 1},
      {"member", StrikeMember, 1},
  };
  return all;
}

namespace {

std::string NamesOf(const std::vector<std::size_t>& peers) {
  std::string text;
  for (std::size_t peer : peers) text += (text.empty() ? "n" : ",n") + std::to_string(peer);
  return text;
}

bool HasMapped(pid_t pid, const std::string& path) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/maps");
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with(path)) return true;
  }
  return false;
}

// Longer than a client takes its route for new, or a peer its registration.
void CutNameServer(World* world, const std::string& what, const std::vector<std::string>& others) {
  const FaultPtr fault = world->Begin("nameserver", what);
  const Dropped dropped(world);
  for (const std::string& other : others) {
    for (const Status& cut :
         {world->layout()->Cut(other, "ns"), world->layout()->Cut("ns", other)}) {
      if (!cut.ok()) world->Problem(cut.ToString());
    }
  }
  world->WaitBetween(3000, 9000);
  dropped.Judge(fault.get());
  const Status healed = world->layout()->Heal();
  if (!healed.ok()) world->Problem(healed.ToString());
}

}  // namespace

// kill -9: the leader, anyone, two or all three; back after a moment.
void StrikeKill(World* world) {
  const std::optional<std::size_t> leader = world->Leader();
  std::vector<std::size_t> victims{leader && !world->random().OneIn(3) ? *leader
                                                                       : world->AnyPeer()};
  const std::uint64_t dice = world->random().Below(10);
  if (dice < 4) victims.push_back((victims[0] + 1 + world->random().Below(2)) % 3);
  if (dice < 1) victims.push_back(3 - victims[0] - victims[1]);
  std::erase_if(victims, [&](std::size_t peer) { return !world->cluster().Running(peer); });
  // A failover only when the others can go on: one that was started a moment ago may still read
  // its store. The NameServer lists whoever knows a leader.
  const bool whole = world->cluster().WaitForMembers(3, milliseconds(1)).ok();
  if (!victims.empty()) {
    const bool leader_alone = victims.size() == 1 && leader == victims[0] && whole;
    // First the signals: a send that a dying leader still answers must not count as a failover.
    int killed = 0;
    for (std::size_t peer : victims) killed += world->SendKill(peer) ? 1 : 0;
    const FaultPtr fault = world->Begin("kill", NamesOf(victims), leader_alone);
    if (killed > 0) fault->TookEffect(killed);
    for (std::size_t peer : victims) world->Kill(peer, fault);
  }
  world->WaitBetween(0, 1000);
  // Sometimes one stays down for the next round.
  for (std::size_t peer : victims) {
    if (!world->random().OneIn(5)) world->Start(peer);
  }
  if (victims.empty() || world->random().OneIn(3)) {
    for (std::size_t i = 0; i < 3; ++i) world->Start(i);
  }
  world->WaitBetween(200, 1300);
}

// The leader alone, with the others whole: what a failover costs.
void StrikeFailover(World* world) {
  world->AllUp(seconds(30));
  const std::optional<std::size_t> leader = world->Leader();
  if (!leader || world->WaitBetween(300, 1200)) return;
  const std::int64_t since_ns = NowNs();
  const bool killed = world->SendKill(*leader);
  FaultPtr fault = world->Begin("failover", NamesOf({*leader}), true);
  if (killed) fault->TookEffect();
  world->Kill(*leader, std::move(fault));
  if (!world->WaitForAcks(since_ns, world->patience()) && !world->stopped()) {
    world->Problem("not every client was acknowledged within " +
                   std::to_string(world->patience().count()) + " ms after the leader was killed");
  }
  world->Start(*leader);
  world->WaitCaughtUp(*leader, seconds(30));
}

// The leadership is handed over by the operator: what a planned move costs, when nothing else is
// dealt.
void StrikeTransfer(World* world) {
  world->AllUp(seconds(30));
  const std::optional<std::size_t> leader = world->Leader();
  if (!leader || world->WaitBetween(300, 1200)) return;
  const std::int64_t since_ns = NowNs();
  const FaultPtr fault = world->Begin("transfer", NamesOf({*leader}), world->alone());
  const Status moved = world->Admin({"transferLeader"}, seconds(30));
  if (moved.ok()) fault->TookEffect();
  if (!moved.ok() && !world->stopped()) world->Problem(moved.ToString());
  if (!world->WaitForAcks(since_ns, world->patience()) && !world->stopped()) {
    world->Problem("not every client was acknowledged after the leadership was handed over");
  }
}

// SIGTERM, mostly to the leader: it hands over, leaves in order, and comes back.
void StrikeRestart(World* world) {
  const std::size_t peer = world->LeaderOrAny();
  if (!world->cluster().Running(peer)) return;
  FaultPtr fault = world->Begin("restart", NamesOf({peer}));
  world->MayEnd(peer);
  const Result<int> ended = world->cluster().Signal(peer, SIGTERM, seconds(60));
  if (!ended.ok()) {
    world->Problem(ended.status().ToString());
  } else if (*ended != 0) {
    world->Problem(world->HostOf(peer) + " left with status " + std::to_string(*ended));
  } else {
    fault->TookEffect();
  }
  world->WaitBetween(0, 1000);
  world->Start(peer);
  fault.reset();
  world->MustStay(peer);
  world->WaitBetween(1000, 3000);
}

void StrikePause(World* world) {
  const std::size_t peer = world->LeaderOrAny();
  const std::int64_t ms = world->random().OneIn(4) ? world->random().Between(5000, 15000)
                                                   : world->random().Between(200, 3000);
  if (!world->cluster().Running(peer)) return;
  FaultPtr fault = world->Begin("pause", NamesOf({peer}) + " " + std::to_string(ms) + " ms");
  if (world->Freeze(world->cluster().brokers()[peer].pid)) fault->TookEffect();
  world->Wait(milliseconds(ms));
  IgnoreError(world->cluster().Signal(peer, SIGCONT).status(), "it runs");
  fault.reset();
  world->WaitBetween(500, 4000);
}

// Killed (the next one is empty), paused, or cut off from the peers, the clients or both.
void StrikeNameServer(World* world) {
  const std::uint64_t ways = world->layout() == nullptr ? 2 : 5;
  switch (world->random().Below(ways)) {
    case 0: {
      const FaultPtr fault = world->Begin("nameserver", "killed");
      if (world->cluster().namesrv_pid() != 0) fault->TookEffect();
      world->cluster().KillNameServer();
      world->WaitBetween(500, 5000);
      const Status started = world->cluster().StartNameServer();
      if (!started.ok()) world->Problem(started.ToString());
      break;
    }
    case 1: {
      const FaultPtr fault = world->Begin("nameserver", "paused");
      if (world->Freeze(world->cluster().namesrv_pid())) fault->TookEffect();
      world->WaitBetween(500, 5000);
      ::kill(world->cluster().namesrv_pid(), SIGCONT);
      break;
    }
    case 2: CutNameServer(world, "cut off from peers", {"n0", "n1", "n2"}); break;
    case 3: CutNameServer(world, "cut off from clients", {"c"}); break;
    default: CutNameServer(world, "cut off", {"n0", "n1", "n2", "c"}); break;
  }
  world->WaitBetween(500, 3000);
}

// One peer's wall clock jumps by an hour or ten years, either way, or stands still.
void StrikeClock(World* world) {
  constexpr std::int64_t kHourNs = 3'600'000'000'000;
  constexpr std::int64_t kYearNs = 365 * 24 * kHourNs;
  const std::size_t peer = world->AnyPeer();
  std::int64_t added = world->random().OneIn(2) ? kHourNs : 10 * kYearNs;
  if (world->random().OneIn(2)) added = -added;
  std::int64_t frozen = 0;
  if (world->random().OneIn(4)) frozen = SystemClock().WallNowMs() * 1'000'000;
  if (!world->cluster().Running(peer)) return;
  FaultPtr fault = world->Begin(
      "clock", NamesOf({peer}) + (frozen != 0 ? " stands still"
                                              : " by " + std::to_string(added / kHourNs) + " h"));
  const std::string& path = world->clock_files()[peer];
  // In place: the process has the file mapped.
  const auto set = [&](std::int64_t add, std::int64_t freeze) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.write(reinterpret_cast<const char*>(&add), sizeof add);
    file.write(reinterpret_cast<const char*>(&freeze), sizeof freeze);
    if (!file.flush()) world->Problem("cannot write " + path);
  };
  set(added, frozen);
  if (HasMapped(world->cluster().brokers()[peer].pid, path)) fault->TookEffect();
  world->WaitBetween(2000, 7000);
  set(0, 0);  // backwards, or forwards again
  fault.reset();
  world->WaitBetween(500, 2000);
}

}  // namespace triad::chaos
