// What the schedules of sim_broker brought about, and whether that is enough.

#include <array>
#include <sstream>

#include "tests/sim/group/group_world.h"

namespace triad::sim {

std::span<const GroupCountName> GroupCountNames() {
  using C = GroupCounts;
  static constexpr std::array<GroupCountName, 36> names = {{
      {"steps", &C::steps, 4'000'000, 4'000'000},
      {"entries", &C::entries, 60'000, 60'000},
      {"acked", &C::acked, 60'000, 60'000},
      {"starts", &C::starts, 6'000, 6'000},
      {"kills", &C::kills, 500, 500},
      {"power_losses", &C::power_losses, 500, 0},
      {"disk_deaths", &C::disk_deaths, 200, 0},
      {"stops", &C::stops, 80, 50},
      {"cuts", &C::cuts, 700, 700},
      {"breaks", &C::breaks, 900, 900},
      {"halves", &C::halves, 20, 5},
      {"pauses", &C::pauses, 400, 400},
      {"transfers", &C::transfers, 400, 200},
      {"disk_errors", &C::disk_errors, 300, 0},
      {"full_disks", &C::full_disks, 100, 100},
      {"short_writes", &C::short_writes, 2'000, 2'000},
      {"bad_sectors", &C::bad_sectors, 30, 0},
      {"misdirected", &C::misdirected, 40, 0},
      {"lies", &C::lies, 0, 200},
      {"hangs", &C::hangs, 10, 0},
      {"rot", &C::rot, 100, 0},
      {"replaced", &C::replaced, 0, 0},
      {"wipes", &C::wipes, 40, 0},
      {"beyond", &C::beyond, 0, 800},
      {"drops", &C::drops, 1'000, 800},
      {"holds", &C::holds, 5, 0},
      {"snapshots", &C::snapshots, 3, 0},
      {"members_added", &C::members_added, 500, 0},
      {"promotions", &C::promotions, 300, 0},
      {"members_removed", &C::members_removed, 400, 0},
      {"leaders_removed", &C::leaders_removed, 100, 0},
      {"dead_removed", &C::dead_removed, 20, 0},
      {"renewed", &C::renewed, 250, 0},
      {"changes_refused", &C::changes_refused, 250, 0},
      {"changes_unknown", &C::changes_unknown, 100, 0},
      {"repairs", &C::repairs, 10, 0},
  }};
  return names;
}

void GroupCounts::Add(const GroupCounts& other) {
  for (const GroupCountName& name : GroupCountNames()) this->*name.count += other.*name.count;
}

std::string ToString(const GroupCounts& counts) {
  std::ostringstream out;
  for (const GroupCountName& name : GroupCountNames().subspan(1)) {
    out << (name.count == &GroupCounts::entries ? "" : " ") << name.name << "="
        << counts.*name.count;
  }
  return out.str();
}

std::string TooFew(const GroupCounts& counts, std::uint64_t schedules, bool beyond) {
  std::ostringstream out;
  for (const GroupCountName& name : GroupCountNames()) {
    const std::uint64_t floor = (beyond ? name.floor_beyond : name.floor) * schedules / 2000;
    if (counts.*name.count >= floor) continue;
    out << "TOO FEW: " << name.name << "=" << counts.*name.count << ", the floor for " << schedules
        << " schedules is " << floor << "\n";
  }
  return out.str();
}

}  // namespace triad::sim
