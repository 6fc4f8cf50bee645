#include <algorithm>

#include "common/mutant.h"
#include "tests/sim/world.h"

namespace triad::sim {
namespace {

enum Plan : std::uint64_t { kCut, kFlap, kBreak, kPause, kCrash, kWipe };

}  // namespace

void World::ScheduleNemesis() {
  const auto plan = [this](Plan which, Micros every) {
    if (every > 0) Push(now_ + nemesis_dice_.Gap(every), EventKind::kNemesis, -1, which);
  };
  plan(kCut, options_.cut_every);
  plan(kFlap, options_.flap_every);
  plan(kBreak, options_.disconnect_every);
  plan(kPause, options_.pause_every);
  plan(kCrash, options_.crash_every);
  plan(kWipe, options_.wipe_every);
}

void World::Nemesis(std::uint64_t which) {
  Micros every = 0;
  switch (which) {
    case kCut:
      every = options_.cut_every;
      CutSomething();
      break;
    case kFlap:
      every = options_.flap_every;
      FlapOne();
      break;
    case kBreak:
      every = options_.disconnect_every;
      BreakOne();
      break;
    case kPause:
      every = options_.pause_every;
      PauseOne();
      break;
    case kCrash:
      every = options_.crash_every;
      CrashSome();
      break;
    default: every = options_.wipe_every; Wipe();
  }
  Push(now_ + nemesis_dice_.Gap(every), EventKind::kNemesis, -1, which);
}

int World::PickVictim() {
  const int any = static_cast<int>(nemesis_dice_.Below(nodes_.size()));
  if (!nemesis_dice_.Chance(options_.aim_at_leader)) return any;
  for (int n = 0; n < options_.nodes(); ++n) {
    if (node(n).up() && node(n).core().role() == Role::kLeader) return n;
  }
  return any;
}

void World::CutPair(int a, int b, bool both, Micros time) {
  if (a == b) return;
  network_.Cut(a, b, now_ + time);
  if (both) network_.Cut(b, a, now_ + time);
}

void World::CutSomething() {
  ++counts_.cuts;
  const int count = options_.nodes();
  const Micros time = nemesis_dice_.Gap(options_.cut_time);
  const int victim = PickVictim();
  const std::uint64_t shape = nemesis_dice_.Below(7);
  trace_.Add({.at = now_, .kind = EventKind::kCut, .node = victim, .a = shape});
  if (shape == 6) return CutRing(victim, time);
  const auto near = [&](int n) { return n == victim || n == (victim + 1) % count; };
  for (int a = 0; a < count; ++a) {
    for (int b = 0; b < count; ++b) {
      if (a == b) continue;
      switch (shape) {
        case 0:  // one link, one way
          if (a == victim && b == (victim + 1) % count) CutPair(a, b, false, time);
          break;
        case 1:  // nobody hears the victim
          if (a == victim) CutPair(a, b, false, time);
          break;
        case 2:  // the victim hears nobody
          if (b == victim) CutPair(a, b, false, time);
          break;
        case 3:  // alone
          if (a == victim || b == victim) CutPair(a, b, false, time);
          break;
        case 4:  // the victim and its neighbour, and the rest
          if (near(a) != near(b)) CutPair(a, b, false, time);
          break;
        default:  // a bridge: only the victim sees everybody
          if (a != victim && b != victim) CutPair(a, b, false, time);
      }
    }
  }
}

// Everybody sees a majority, and no two the same one: its neighbours on a ring. Of three, one way.
void World::CutRing(int first, Micros time) {
  ++counts_.rings;
  const int count = options_.nodes();
  const int reach = (count / 2 + 1) / 2;
  for (int i = 0; i < count; ++i) {
    const int a = (first + i) % count;
    if (count == 3) CutPair(a, (a + 1) % count, false, time);
    for (int far = reach + 1; count > 3 && far < count - reach; ++far) {
      CutPair(a, (a + far) % count, false, time);
    }
  }
}

void World::FlapOne() {
  const int a = static_cast<int>(nemesis_dice_.Below(nodes_.size()));
  const int b = static_cast<int>(nemesis_dice_.Below(nodes_.size()));
  // One draw per statement: the order of arguments is the compiler's choice.
  const bool both = nemesis_dice_.OneIn(2);
  CutPair(a, b, both, nemesis_dice_.Gap(options_.flap_every / 2 + 1));
}

// Half of the time each end still reads what has reached it before it notices.
void World::NoticeBreak(int a, int b) {
  for (const auto& [at, from] : {std::pair(a, b), std::pair(b, a)}) {
    const Micros notices = now_ + nemesis_dice_.Between(0, 3000);
    const bool reads_on = nemesis_dice_.OneIn(2) && node(at).up();
    network_.Break(from, at, reads_on ? notices : 0);
    Push(notices, EventKind::kDisconnected, at, static_cast<std::uint64_t>(from));
  }
}

void World::BreakOne() {
  const int a = PickVictim();
  const int b = static_cast<int>(nemesis_dice_.Below(nodes_.size()));
  if (a == b) return;
  ++counts_.disconnects;
  NoticeBreak(a, b);
}

void World::PauseOne() {
  ++counts_.pauses;
  const int n = PickVictim();
  peer(n).paused_until = now_ + nemesis_dice_.Gap(options_.pause_time);
}

void World::Crash(int n) {
  if (!node(n).up()) return;
  ++counts_.crashes;
  const bool power = nemesis_dice_.Chance(options_.power_loss);
  trace_.Add({.at = now_, .kind = EventKind::kCrash, .node = n, .a = power ? 1u : 0u});
  node(n).Stop();
  if (power) {
    ++counts_.power_losses;
    node(n).disk().LosePower(nemesis_dice_);
  } else {
    node(n).disk().CrashProcess();
  }
  // Written, so it counts: only a wipe takes it back.
  oracle_.OnDurable(n);
  if (nemesis_dice_.Chance(options_.crash_noticed)) {
    for (int other = 0; other < options_.nodes(); ++other) {
      if (other != n) NoticeBreak(n, other);
    }
  }
  if (!healed_) ScheduleRestart(n);
}

void World::ScheduleRestart(int n) {
  Push(now_ + nemesis_dice_.Between(1, options_.restart_after_max), EventKind::kRestart, n);
}

void World::CrashSome() {
  if (nemesis_dice_.Chance(options_.crash_all)) {
    for (int n = 0; n < options_.nodes(); ++n) Crash(n);
    return;
  }
  Crash(PickVictim());
}

// A disk is lost or damaged: the peer comes back under its old id.
void World::Wipe() {
  const int n = static_cast<int>(nemesis_dice_.Below(nodes_.size()));
  if (!oracle_.MayWipe(n)) return;
  ++counts_.wipes;
  Crash(n);
  DiskImage& image = node(n).disk().durable();
  const SimLog before = image.log;
  const std::uint64_t damage = nemesis_dice_.Below(3);
  trace_.Add({.at = now_, .kind = EventKind::kWipe, .node = n, .a = damage});
  // 0: everything; 1: the end of the log; 2: term and vote.
  if (damage == 0) {
    image.log = SimLog(options_.Founders());
    image.applied = LogIndex{0};
    image.state_hash = 0;
  }
  if (damage == 1) {
    image.log.TruncateFrom(before.first() + nemesis_dice_.Below(before.size() + 1));
  }
  if (damage != 1) image.hard_state = {};
  image.recovering = !TRIAD_MUTANT(30);
  oracle_.OnWipe(n, before);
}

}  // namespace triad::sim
