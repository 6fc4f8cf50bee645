// What goes wrong in a schedule of sim_broker.

#include <algorithm>

#include "tests/sim/group/group_world.h"

namespace triad::sim {

void GroupWorld::ScheduleNemesis() {
  Every(options_.cut_every, [this] { CutSome(); });
  Every(options_.break_every, [this] {
    ++counts_.breaks;
    const int a = static_cast<int>(nemesis_dice_.Below(kPeers));
    const int b = (a + 1 + static_cast<int>(nemesis_dice_.Below(kPeers - 1))) % kPeers;
    if (nemesis_dice_.OneIn(2)) return net_.BreakRaft(a, b);
    net_.BreakCalls(static_cast<int>(nemesis_dice_.Below(GroupNet::kNodesMax)), b);
  });
  Every(options_.wall_jump_every, [this] {
    constexpr std::int64_t kHour = 3'600'000;
    const std::int64_t ms = nemesis_dice_.OneIn(4)
                                ? nemesis_dice_.Between(-87600 * kHour, 87600 * kHour)
                                : nemesis_dice_.Between(-kHour, kHour);
    // One peer's clock only: two of three would take the log's time with them.
    peer(static_cast<int>(options_.seed % kPeers)).JumpWallClock(ms);
  });
  Every(options_.pause_every, [this] { PauseOne(); });
  Every(options_.crash_every, [this] { Crash(); });
  Every(options_.stop_every, [this] { StopOne(); });
  Every(options_.transfer_every, [this] { Transfer(); });
  Every(options_.disk_error_every, [this] { FailDisk(); });
  Every(options_.disk_full_every, [this] { FillDisk(); });
  Every(options_.rot_every, [this] { RotOne(); });
}

void GroupWorld::Every(Micros gap, std::function<void()> task) {
  if (gap == 0) return;
  loop_.After(nemesis_dice_.Gap(gap), [this, gap, task = std::move(task)] {
    if (healed_) return;
    task();
    Every(gap, task);
  });
}

// Half of the faults aim at the leader.
int GroupWorld::Victim() {
  if (nemesis_dice_.OneIn(2)) {
    for (const auto& p : peers_) {
      if (p->up() && p->node()->leader_info().ready) return p->index();
    }
  }
  return static_cast<int>(nemesis_dice_.Below(kPeers));
}

void GroupWorld::CutSome() {
  ++counts_.cuts;
  const int a = Victim();
  const int b = (a + 1 + static_cast<int>(nemesis_dice_.Below(kPeers - 1))) % kPeers;
  const Micros until = loop_.now() + nemesis_dice_.Between(kMs, options_.cut_time);
  const std::uint64_t kind = nemesis_dice_.Below(4);
  journal_.Note(loop_.now(), a, "is cut off", kind, static_cast<std::uint64_t>(b));
  if (kind == 0) return net_.Cut(a, b, until);  // one way
  if (kind == 1) {
    net_.Cut(a, b, until);
    return net_.Cut(b, a, until);
  }
  // Alone: from the other peers (2), or from everybody (3).
  for (int other = 0; other < (kind == 2 ? kPeers : GroupNet::kNodesMax); ++other) {
    net_.Cut(a, other, until);
    net_.Cut(other, a, until);
  }
}

void GroupWorld::Crash() {
  const bool all = options_.crash_all && nemesis_dice_.OneIn(4);
  const int victim = Victim();
  for (int i = 0; i < kPeers; ++i) {
    if ((!all && i != victim) || !peer(i).up()) continue;
    const bool power = options_.power_loss && !nemesis_dice_.OneIn(4);
    ++(power ? counts_.power_losses : counts_.kills);
    journal_.Note(loop_.now(), i, power ? "loses its power" : "is killed");
    peer(i).Die(power);
    RestartLater(i);
  }
}

void GroupWorld::StopOne() {
  const int victim = Victim();
  if (!peer(victim).up() || peer(victim).paused()) return;
  ++counts_.stops;
  journal_.Note(loop_.now(), victim, "is stopped");
  peer(victim).Stop();
  RestartLater(victim);
}

void GroupWorld::PauseOne() {
  ++counts_.pauses;
  const int victim = Victim();
  const Micros until =
      std::min(loop_.now() + nemesis_dice_.Between(kMs, options_.pause_time), options_.fault_time);
  journal_.Note(loop_.now(), victim, "is paused", static_cast<std::uint64_t>(until));
  peer(victim).PauseUntil(until);
}

void GroupWorld::FailDisk() {
  static const char* const kParts[] = {"dledger", "dledger", "state", "consumequeue",
                                       "vote",    "synced",  "/store"};
  static constexpr SimFault kFaults[] = {SimFault::kWrite, SimFault::kSync, SimFault::kSync,
                                         SimFault::kRead};
  const int victim = Victim();
  const std::uint64_t part = nemesis_dice_.Below(std::size(kParts));
  const std::uint64_t fault = nemesis_dice_.Below(std::size(kFaults));
  ++counts_.disk_errors;
  journal_.Note(loop_.now(), victim, "EIO", fault, part);
  peer(victim).fs().FailNext(kFaults[fault], kParts[part]);
}

void GroupWorld::FillDisk() {
  const int victim = Victim();
  ++counts_.full_disks;
  journal_.Note(loop_.now(), victim, "disk full");
  SimFileSystem& fs = peer(victim).fs();
  fs.set_capacity(fs.disk().TotalBytes() + nemesis_dice_.Below(8192));
  loop_.After(nemesis_dice_.Between(10 * kMs, 600 * kMs),
              [this, victim] { peer(victim).fs().set_capacity(UINT64_MAX); });
}

// Stops a peer and damages its log, as long as the others hold everything.
void GroupWorld::RotOne() {
  const int victim = static_cast<int>(nemesis_dice_.Below(kPeers));
  SimPeer& p = peer(victim);
  if (!p.up() || !oracle_.MayDamage(victim)) return;
  const auto files = p.fs().List(p.log_dir());
  if (!files.ok() || files->empty()) return;
  const DirEntry& file = (*files)[nemesis_dice_.Below(files->size())];
  if (file.is_directory || file.size_bytes == 0 || file.name == "stamp" || file.name == "lock") {
    return;
  }
  ++counts_.rot;
  journal_.Note(loop_.now(), victim, "rots", file.size_bytes);
  p.Die(false);
  const std::uint64_t begin = file.size_bytes > 8192 ? 8192 : 0;
  p.fs().Rot(p.log_dir() + "/" + file.name,
             begin + nemesis_dice_.Below(std::min<std::uint64_t>(file.size_bytes - begin, 4096)),
             static_cast<char>(1u << nemesis_dice_.Below(8)));
  RestartLater(victim);
}

void GroupWorld::Transfer() {
  const PeerId to =
      nemesis_dice_.OneIn(3) ? PeerId() : PeerIdOf(static_cast<int>(nemesis_dice_.Below(kPeers)));
  for (const auto& p : peers_) {
    if (!p->up() || p->paused() || !p->node()->leader_info().ready) continue;
    ++counts_.transfers;
    p->Run([&p, &to] {
      p->node()->TransferLeadership(to, std::chrono::milliseconds(1000), [](const Status&) {});
    });
    return;
  }
}

}  // namespace triad::sim
