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
      {"transfer", StrikeTransfer, 20, false, false, true},
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
    for (std::size_t peer : victims) world->SendKill(peer);
    world->Fault("kill", NamesOf(victims), leader_alone, static_cast<int>(victims.size()));
    for (std::size_t peer : victims) world->Kill(peer);
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
  world->SendKill(*leader);
  world->Fault("failover", NamesOf({*leader}), true);
  world->Kill(*leader);
  if (!world->WaitForAcks(since_ns, world->patience()) && !world->stopped()) {
    world->Problem("not every client was acknowledged within " +
                   std::to_string(world->patience().count()) + " ms after the leader was killed");
  }
  world->Start(*leader);
  world->WaitCaughtUp(*leader, seconds(30));
}

// The leadership is handed over by the operator: what a planned move costs.
void StrikeTransfer(World* world) {
  world->AllUp(seconds(30));
  const std::optional<std::size_t> leader = world->Leader();
  if (!leader || world->WaitBetween(300, 1200)) return;
  const std::int64_t since_ns = NowNs();
  world->Fault("transfer", NamesOf({*leader}), true);
  const Status moved = world->Admin({"transferLeader"}, seconds(30));
  if (!moved.ok() && !world->stopped()) world->Problem(moved.ToString());
  if (!world->WaitForAcks(since_ns, world->patience()) && !world->stopped()) {
    world->Problem("not every client was acknowledged after the leadership was handed over");
  }
}

// SIGTERM, mostly to the leader: it hands over, leaves in order, and comes back.
void StrikeRestart(World* world) {
  const std::size_t peer = world->LeaderOrAny();
  if (!world->cluster().Running(peer)) return;
  world->Fault("restart", NamesOf({peer}));
  world->MayEnd(peer);
  const Result<int> ended = world->cluster().Signal(peer, SIGTERM, seconds(60));
  if (!ended.ok()) {
    world->Problem(ended.status().ToString());
  } else if (*ended != 0) {
    world->Problem(world->HostOf(peer) + " left with status " + std::to_string(*ended));
  }
  world->WaitBetween(0, 1000);
  world->Start(peer);
  world->MustStay(peer);
  world->WaitBetween(1000, 3000);
}

void StrikePause(World* world) {
  const std::size_t peer = world->LeaderOrAny();
  const std::int64_t ms = world->random().OneIn(4) ? world->random().Between(5000, 15000)
                                                   : world->random().Between(200, 3000);
  if (!world->cluster().Running(peer)) return;
  world->Fault("pause", NamesOf({peer}) + " " + std::to_string(ms) + " ms");
  IgnoreError(world->cluster().Signal(peer, SIGSTOP).status(), "it runs");
  world->Wait(milliseconds(ms));
  IgnoreError(world->cluster().Signal(peer, SIGCONT).status(), "it runs");
  world->WaitBetween(500, 4000);
}

void StrikeNameServer(World* world) {
  world->Fault("nameserver", "ns");
  if (world->random().OneIn(2)) {
    world->cluster().KillNameServer();
    world->WaitBetween(500, 5000);
    const Status started = world->cluster().StartNameServer();
    if (!started.ok()) world->Problem(started.ToString());
  } else {
    ::kill(world->cluster().namesrv_pid(), SIGSTOP);
    world->WaitBetween(500, 5000);
    ::kill(world->cluster().namesrv_pid(), SIGCONT);
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
  world->Fault("clock",
               NamesOf({peer}) + (frozen != 0 ? " stands still"
                                              : " by " + std::to_string(added / kHourNs) + " h"));
  // In place: the process has the file mapped.
  const auto set = [&](std::int64_t add, std::int64_t freeze) {
    std::fstream file(world->clock_files()[peer], std::ios::in | std::ios::out | std::ios::binary);
    file.write(reinterpret_cast<const char*>(&add), sizeof add);
    file.write(reinterpret_cast<const char*>(&freeze), sizeof freeze);
    if (!file.flush()) world->Problem("cannot write " + world->clock_files()[peer]);
  };
  set(added, frozen);
  world->WaitBetween(2000, 7000);
  set(0, 0);  // backwards, or forwards again
  world->WaitBetween(500, 2000);
}

}  // namespace triad::chaos
