#include "tests/sim/minimize.h"

#include <fcntl.h>
#include <glog/logging.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <iostream>

namespace triad::sim {
namespace {

struct Switch {
  const char* name;
  void (*off)(Options*);
};

// Faults first, then clients.
constexpr std::array<Switch, 31> kSwitches = {{
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

bool FailsInAChild(const Options& options, bool (*runs_clean)(const Options&)) {
  std::cout << std::flush;
  const pid_t child = fork();
  PCHECK(child >= 0);
  if (child == 0) {
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    _exit(runs_clean(options) ? 0 : 3);
  }
  int status = 0;
  PCHECK(waitpid(child, &status, 0) == child);
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

}  // namespace

std::vector<std::string> SwitchNames() {
  std::vector<std::string> names;
  for (const Switch& one : kSwitches) names.emplace_back(one.name);
  return names;
}

bool TurnOff(const std::string& name, Options* options) {
  for (const Switch& one : kSwitches) {
    if (name != one.name) continue;
    one.off(options);
    return true;
  }
  return false;
}

std::string Minimize(Options options, bool (*runs_clean)(const Options&)) {
  if (!FailsInAChild(options, runs_clean)) return {};
  std::string off;
  for (const Switch& one : kSwitches) {
    Options fewer = options;
    one.off(&fewer);
    if (ToString(fewer) == ToString(options) || !FailsInAChild(fewer, runs_clean)) continue;
    options = fewer;
    off += (off.empty() ? "" : ",") + std::string(one.name);
  }
  const Micros whole = options.fault_time;
  for (;;) {
    Options shorter = options;
    shorter.fault_time /= 2;
    if (shorter.fault_time < kMillisecond || !FailsInAChild(shorter, runs_clean)) break;
    options = shorter;
  }
  std::string command = "--seed " + std::to_string(options.seed) + " --schedules 1";
  if (!off.empty()) command += " --off " + off;
  if (options.fault_time != whole) {
    command += " --fault-time " + std::to_string(options.fault_time);
  }
  return command;
}

}  // namespace triad::sim
