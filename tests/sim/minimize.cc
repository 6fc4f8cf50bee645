#include "tests/sim/minimize.h"

#include <array>
#include <utility>

#include "tests/sim/shrink.h"

namespace triad::sim {
namespace {

// Faults first, then clients.
constexpr std::array<Switch<Options>, 31> kSwitches = {{
    {"drop", [](Options* o) { o->drop = 0; }},
    {"duplicate", [](Options* o) { o->duplicate = 0; }},
    {"tail_delay", [](Options* o) { o->tail_delay = 0; }},
    {"reorder", [](Options* o) { o->reorder = false; }},
    {"replay", [](Options* o) { o->replay = 0; }},
    {"cut", [](Options* o) { o->cut_every = 0; }},
    {"flap", [](Options* o) { o->flap_every = 0; }},
    {"disconnect", [](Options* o) { o->disconnect_every = 0; }},
    {"skew", [](Options* o) { o->skewed_clocks = false; }},
    {"pause", [](Options* o) { o->pause_every = 0; }},
    {"crash", [](Options* o) { o->crash_every = 0; }},
    {"crash_in_step", [](Options* o) { o->crash_in_step = 0; }},
    {"crash_all", [](Options* o) { o->crash_all = 0; }},
    {"crash_noticed", [](Options* o) { o->crash_noticed = 0; }},
    {"power_loss", [](Options* o) { o->power_loss = 0; }},
    {"wipe", [](Options* o) { o->wipe_every = 0; }},
    {"disk_latency", [](Options* o) { o->disk_latency_max = 500; }},
    {"disk_hang", [](Options* o) { o->disk_hang = 0; }},
    {"load_fails", [](Options* o) { o->load_fails = 0; }},
    {"snapshot_fails", [](Options* o) { o->snapshot_fails = 0; }},
    {"snapshot_again", [](Options* o) { o->snapshot_again = 0; }},
    {"slow_apply", [](Options* o) { o->slow_apply = false; }},
    {"purge", [](Options* o) { o->purge_every = 0; }},
    {"member", [](Options* o) { o->member_every = 0; }},
    {"preferred", [](Options* o) { o->preferred = -1; }},
    {"transfer", [](Options* o) { o->transfer_every = 0; }},
    {"read", [](Options* o) { o->read_every = 0; }},
    {"burst", [](Options* o) { o->burst_max = 1; }},
    {"leave_down", [](Options* o) { o->leave_one_down = false; }},
    {"aim", [](Options* o) { o->aim_at_leader = 0; }},
    {"small_buffers",
     [](Options* o) {
       o->max_inflight_bytes = 1 << 20;
       o->max_append_bytes = 1 << 16;
       o->max_window_bytes = 1 << 20;
     }},
}};

}  // namespace

std::vector<std::string> SwitchNames() {
  return NamesOf<Options>(kSwitches);
}

bool TurnOff(const std::string& name, Options* options) {
  return TurnOffOne<Options>(kSwitches, name, options);
}

std::string Minimize(Options options, bool (*runs_clean)(const Options&)) {
  return Shrink<Options>(kSwitches, std::move(options), kMillisecond, runs_clean);
}

}  // namespace triad::sim
