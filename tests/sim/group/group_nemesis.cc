// What goes wrong in a schedule of sim_broker.

#include <algorithm>

#include "tests/sim/group/group_world.h"

namespace triad::sim {
namespace {

constexpr Micros kFitDisksAt = 500 * kMs;

}  // namespace

void GroupWorld::ScheduleNemesis() {
  Every(options_.cut_every, [this] { CutSome(); });
  Every(options_.break_every, [this] {
    ++counts_.breaks;
    const int a = Any();
    const int b = Another(a);
    if (a != b && nemesis_dice_.OneIn(2)) return net_.BreakRaft(a, b);
    if (nemesis_dice_.OneIn(2)) return net_.BreakNextCall();
    net_.BreakCalls(static_cast<int>(nemesis_dice_.Below(GroupNet::kNodesMax)), b);
  });
  Every(options_.wall_jump_every, [this] {
    constexpr std::int64_t kHour = 3'600'000;
    const std::int64_t ms = nemesis_dice_.OneIn(4)
                                ? nemesis_dice_.Between(-87600 * kHour, 87600 * kHour)
                                : nemesis_dice_.Between(-kHour, kHour);
    // One peer's clock only: two of three would take the log's time with them.
    peer(static_cast<int>(options_.seed % peers_.size())).JumpWallClock(ms);
  });
  Every(options_.pause_every, [this] { PauseOne(); });
  Every(options_.crash_every, [this] { Crash(); });
  Every(options_.stop_every, [this] { StopOne(); });
  Every(options_.transfer_every, [this] { Transfer(); });
  Every(options_.disk_error_every, [this] { FailDisk(); });
  Every(options_.disk_full_every, [this] { FillDisk(); });
  Every(options_.rot_every, [this] { RotOne(); });
  Every(options_.bad_sector_every, [this] { BreakSector(); });
  Every(options_.misdirect_every, [this] { MisdirectOne(); });
  Every(options_.wipe_every, [this] { WipeOne(); });
  const auto once = [this](std::function<void()> task) {
    loop_.At(nemesis_dice_.Between(options_.fault_time / 3, options_.fault_time - 200 * kMs),
             std::move(task));
  };
  if (options_.disk_segments > 0) {
    loop_.At(kFitDisksAt, [this] {
      for (const auto& p : peers_) p->FitDisk();
    });
  }
  if (options_.long_hang) once([this] { HangOne(); });
  if (options_.beyond != GroupOptions::Beyond::kNo) once([this] { GoBeyond(); });
}

int GroupWorld::Any() {
  return static_cast<int>(nemesis_dice_.Below(peers_.size()));
}

// The same, when there is no other.
int GroupWorld::Another(int peer) {
  const int count = options_.machines();
  if (count == 1) return peer;
  const auto step = 1 + nemesis_dice_.Below(static_cast<std::uint64_t>(count - 1));
  return (peer + static_cast<int>(step)) % count;
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
  return Any();
}

void GroupWorld::CutSome() {
  ++counts_.cuts;
  const int a = Victim();
  const int b = Another(a);
  const Micros until = loop_.now() + nemesis_dice_.Between(kMs, options_.cut_time);
  const std::uint64_t kind = nemesis_dice_.Below(5);
  journal_.Note(loop_.now(), a, "is cut off", kind, static_cast<std::uint64_t>(b));
  if (kind == 0) return net_.Cut(a, b, until);  // one way
  if (kind == 1) {
    net_.Cut(a, b, until);
    return net_.Cut(b, a, until);
  }
  if (kind == 4) return CutRing(until);
  // Alone: from the other peers (2), or from everybody (3).
  for (int other = 0; other < (kind == 2 ? options_.machines() : GroupNet::kNodesMax); ++other) {
    net_.Cut(a, other, until);
    net_.Cut(other, a, until);
  }
}

// Of five, each sees a majority, and no two the same one; of three, each hears only one other.
void GroupWorld::CutRing(Micros until) {
  const int count = options_.machines();
  for (int a = 0; a < count; ++a) {
    net_.Cut(a, (a + count - 1) % count, count == 3 ? until : 0);
    if (count > 3) net_.Cut(a, (a + 2) % count, until);
    if (count > 3) net_.Cut((a + 2) % count, a, until);
  }
}

void GroupWorld::Crash() {
  const bool all = options_.crash_all && nemesis_dice_.OneIn(4);
  const int victim = Victim();
  for (int i = 0; i < options_.machines(); ++i) {
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
  journal_.Note(loop_.now(), victim, "EIO", fault, part);
  peer(victim).fs().FailNext(kFaults[fault], kParts[part]);
}

void GroupWorld::FillDisk() {
  const int victim = Victim();
  journal_.Note(loop_.now(), victim, "disk full");
  SimFileSystem& fs = peer(victim).fs();
  fs.set_capacity(fs.disk().TotalBytes() + nemesis_dice_.Below(8192));
  fs.set_names_full(options_.names_full && nemesis_dice_.OneIn(2));
  loop_.After(nemesis_dice_.Between(10 * kMs, 600 * kMs), [this, victim] {
    peer(victim).fs().set_capacity(UINT64_MAX);
    peer(victim).fs().set_names_full(false);
  });
}

void GroupWorld::Transfer() {
  const PeerId to = nemesis_dice_.OneIn(3) ? PeerId() : peer(Any()).id();
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
