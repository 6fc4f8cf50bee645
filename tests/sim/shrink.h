// Shrink: turns off one kind of fault after another while a schedule still fails: what is left is
// the bug's own.
//
// Each try runs in a child process, so that a CHECK that fires ends only the try.
// `Options` has `seed` and `fault_time`, a copy, and a ToString that shows all of it.

#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace triad::sim {

// A kind of fault, or of work, that a schedule can do without.
template <typename Options>
struct Switch {
  const char* name;
  void (*off)(Options*);
};

bool FailsInAChild(const std::function<bool()>& runs_clean);

template <typename Options>
std::vector<std::string> NamesOf(std::span<const Switch<Options>> switches) {
  std::vector<std::string> names;
  for (const Switch<Options>& one : switches) names.emplace_back(one.name);
  return names;
}

// False: no such name.
template <typename Options>
bool TurnOffOne(std::span<const Switch<Options>> switches, const std::string& name,
                Options* options) {
  for (const Switch<Options>& one : switches) {
    if (name != one.name) continue;
    one.off(options);
    return true;
  }
  return false;
}

// The words of the command line that repeats the failure, or nothing when `options` do not fail.
template <typename Options>
std::string Shrink(std::span<const Switch<Options>> switches, Options options,
                   std::int64_t fault_time_min, bool (*runs_clean)(const Options&)) {
  const auto fails = [runs_clean](const Options& tried) {
    return FailsInAChild([&] { return runs_clean(tried); });
  };
  if (!fails(options)) return {};
  std::string off;
  for (const Switch<Options>& one : switches) {
    Options fewer = options;
    one.off(&fewer);
    if (ToString(fewer) == ToString(options) || !fails(fewer)) continue;
    options = fewer;
    off += (off.empty() ? "" : ",") + std::string(one.name);
  }
  const auto whole = options.fault_time;
  for (Options shorter = options;;) {
    shorter.fault_time /= 2;
    if (shorter.fault_time < fault_time_min || !fails(shorter)) break;
    options = shorter;
  }
  std::string command = "--seed " + std::to_string(options.seed) + " --schedules 1";
  if (!off.empty()) command += " --off " + off;
  if (options.fault_time != whole) command += " --fault-time " + std::to_string(options.fault_time);
  return command;
}

}  // namespace triad::sim
