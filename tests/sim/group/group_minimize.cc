#include "tests/sim/group/group_minimize.h"

#include <array>
#include <utility>

#include "tests/sim/shrink.h"

namespace triad::sim {
namespace {

// Faults first, then clients.
constexpr std::array<Switch<GroupOptions>, 36> kSwitches = {{
    {"delay", [](GroupOptions* o) { o->delay_max = 100; }},
    {"tail_delay", [](GroupOptions* o) { o->tail_delay_max = 0; }},
    {"cut", [](GroupOptions* o) { o->cut_every = 0; }},
    {"break", [](GroupOptions* o) { o->break_every = 0; }},
    {"skew", [](GroupOptions* o) { o->skewed_clocks = false; }},
    {"wall_jump", [](GroupOptions* o) { o->wall_jump_every = 0; }},
    {"pause", [](GroupOptions* o) { o->pause_every = 0; }},
    {"crash", [](GroupOptions* o) { o->crash_every = 0; }},
    {"crash_all", [](GroupOptions* o) { o->crash_all = false; }},
    {"power_loss", [](GroupOptions* o) { o->power_loss = false; }},
    {"stop", [](GroupOptions* o) { o->stop_every = 0; }},
    {"transfer", [](GroupOptions* o) { o->transfer_every = 0; }},
    {"disk_hang", [](GroupOptions* o) { o->disk_hang_max = 0; }},
    {"short_writes", [](GroupOptions* o) { o->short_writes = false; }},
    {"disk_error", [](GroupOptions* o) { o->disk_error_every = 0; }},
    {"disk_full", [](GroupOptions* o) { o->disk_full_every = 0; }},
    {"rot", [](GroupOptions* o) { o->rot_every = 0; }},
    {"clean", [](GroupOptions* o) { o->clean_every = 0; }},
    {"retention",
     [](GroupOptions* o) {
       o->retention_age = 0;
       o->disk_segments = 0;
     }},
    {"reads_old", [](GroupOptions* o) { o->reads_old = false; }},
    {"names_full", [](GroupOptions* o) { o->names_full = false; }},
    {"long_hang", [](GroupOptions* o) { o->long_hang = false; }},
    {"bad_sector", [](GroupOptions* o) { o->bad_sector_every = 0; }},
    {"misdirect", [](GroupOptions* o) { o->misdirect_every = 0; }},
    {"members", [](GroupOptions* o) { o->member_every = 0; }},
    {"wipe", [](GroupOptions* o) { o->wipe_every = 0; }},
    {"preferred", [](GroupOptions* o) { o->preferred = -1; }},
    {"dedup", [](GroupOptions* o) { o->dedup = false; }},
    {"one_way", [](GroupOptions* o) { o->one_way = false; }},
    {"send_back", [](GroupOptions* o) { o->send_back = false; }},
    {"resets", [](GroupOptions* o) { o->resets = false; }},
    {"topics", [](GroupOptions* o) { o->topics = false; }},
    {"lockers", [](GroupOptions* o) { o->lockers = 0; }},
    {"consumers", [](GroupOptions* o) { o->consumers = 0; }},
    {"delayed", [](GroupOptions* o) { o->delayed = false; }},
    {"batches", [](GroupOptions* o) { o->batches = false; }},
}};

}  // namespace

std::vector<std::string> GroupSwitchNames() {
  return NamesOf<GroupOptions>(kSwitches);
}

bool TurnOff(const std::string& name, GroupOptions* options) {
  return TurnOffOne<GroupOptions>(kSwitches, name, options);
}

std::string Minimize(GroupOptions options, bool (*runs_clean)(const GroupOptions&)) {
  return Shrink<GroupOptions>(kSwitches, std::move(options), 10 * kMs, runs_clean);
}

}  // namespace triad::sim
