#include "tests/sim/group/group_minimize.h"

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
  void (*off)(GroupOptions*);
};

// Faults first, then clients.
constexpr std::array<Switch, 22> kSwitches = {{
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
    {"lockers", [](GroupOptions* o) { o->lockers = 0; }},
    {"consumers", [](GroupOptions* o) { o->consumers = 0; }},
    {"delayed", [](GroupOptions* o) { o->delayed = false; }},
    {"batches", [](GroupOptions* o) { o->batches = false; }},
}};

bool FailsInAChild(const GroupOptions& options, bool (*runs_clean)(const GroupOptions&)) {
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

std::vector<std::string> GroupSwitchNames() {
  std::vector<std::string> names;
  for (const Switch& one : kSwitches) names.emplace_back(one.name);
  return names;
}

bool TurnOff(const std::string& name, GroupOptions* options) {
  for (const Switch& one : kSwitches) {
    if (name != one.name) continue;
    one.off(options);
    return true;
  }
  return false;
}

std::string Minimize(GroupOptions options, bool (*runs_clean)(const GroupOptions&)) {
  if (!FailsInAChild(options, runs_clean)) return {};
  std::string off;
  for (const Switch& one : kSwitches) {
    GroupOptions smaller = options;
    one.off(&smaller);
    if (ToString(smaller) == ToString(options) || !FailsInAChild(smaller, runs_clean)) continue;
    options = smaller;
    off += (off.empty() ? "" : ",") + std::string(one.name);
    std::cout << "fails without " << one.name << "\n" << std::flush;
  }
  for (GroupOptions shorter = options; shorter.fault_time > 20 * kMs;) {
    shorter.fault_time /= 2;
    if (!FailsInAChild(shorter, runs_clean)) break;
    options = shorter;
  }
  std::string command = "sim_broker --seed " + std::to_string(options.seed) +
                        " --schedules 1 --trace --fault-time " + std::to_string(options.fault_time);
  if (!off.empty()) command += " --off " + off;
  return command;
}

}  // namespace triad::sim
