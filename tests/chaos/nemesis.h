// Nemeses: the kinds of faults a run may deal, each one whole: it begins, lasts and is healed.
//
// Owner: the main thread, through World. Source: testing.md §4.3.

#pragma once

#include <string_view>
#include <vector>

#include "tests/chaos/world.h"

namespace triad::chaos {

struct Nemesis {
  std::string_view name;
  void (*strike)(World* world);
  int planned_per_minute;  // faults that must fire when it is alone
  bool needs_layout = false;
  bool needs_disks = false;
  bool measures = false;  // what one kind costs clients by itself: not in "all"
};

// Packets that links lost since this was made.
class Dropped {
 public:
  explicit Dropped(World* world) : world_(*world), before_(Now()) {}
  // The fault took effect when there were any.
  void Judge(Fault* fault) const;

 private:
  std::int64_t Now() const;

  World& world_;
  const std::int64_t before_;
};

// All of them.
const std::vector<Nemesis>& Nemeses();

void StrikeKill(World* world);
void StrikeFailover(World* world);
void StrikeTransfer(World* world);
void StrikeRestart(World* world);
void StrikePause(World* world);
void StrikeNameServer(World* world);
void StrikeClock(World* world);
void StrikeCut(World* world);
void StrikeLoss(World* world);
void StrikeSlow(World* world);
void StrikePower(World* world);
void StrikeDiskFull(World* world);
void StrikeEio(World* world);
void StrikeSlowDisk(World* world);
void StrikeRot(World* world);
void StrikeWipe(World* world);
void StrikeMember(World* world);

}  // namespace triad::chaos
