// sim_raft: runs schedules of the Raft core against the oracle.
//
//   sim_raft [--schedules N] [--seed S] [--trace] [--off FAULT,...] [--fault-time MICROSECONDS]
//   sim_raft --seed S --until STEP    only so far; prints how things stand there
//   sim_raft --seed S --minimize      which faults the failure needs
//   sim_raft --determinism --schedules N | --seeds-file F | --exhaustive [--states N]
//   sim_raft_mutants --mutant M | --all-mutants [--table F]
//
// Without --seed the base seed is fresh and printed. Exit 0: clean (with a mutant: it was caught).

#include <glog/logging.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>
#include <string>

#include "common/buggify.h"
#include "common/mutant.h"
#include "tests/sim/explorer.h"
#include "tests/sim/hunt.h"
#include "tests/sim/minimize.h"
#include "tests/sim/seed_runs.h"
#include "tests/sim/world.h"

namespace triad::sim {
namespace {

const World* g_world = nullptr;  // for the failure function

__attribute__((noreturn)) void OnCheckFailed() {  // as glog declares it
  if (g_world != nullptr) std::cout << g_world->Report() << std::flush;
  _exit(3);
}

struct Arguments {
  std::uint64_t schedules = 1000;
  std::optional<std::uint64_t> seed;
  bool trace = false;
  bool determinism = false;
  bool minimize = false;
  bool exhaustive = false;
  std::uint64_t until = UINT64_MAX;
  std::uint64_t states = 20000;
  std::string off;
  Micros fault_time = 0;
  std::string seeds_file;
  int mutant = 0;
  bool all_mutants = false;
  std::string table;
};

bool Parse(int argc, char** argv, Arguments* out) {
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const auto value = [&]() -> std::string { return i + 1 < argc ? argv[++i] : ""; };
    if (flag == "--schedules") {
      out->schedules = std::strtoull(value().c_str(), nullptr, 10);
    } else if (flag == "--seed") {
      out->seed = std::strtoull(value().c_str(), nullptr, 10);
    } else if (flag == "--trace") {
      out->trace = true;
    } else if (flag == "--determinism") {
      out->determinism = true;
    } else if (flag == "--minimize") {
      out->minimize = true;
    } else if (flag == "--exhaustive") {
      out->exhaustive = true;
    } else if (flag == "--until") {
      out->until = std::strtoull(value().c_str(), nullptr, 10);
    } else if (flag == "--states") {
      out->states = std::strtoull(value().c_str(), nullptr, 10);
    } else if (flag == "--off") {
      out->off = value();
    } else if (flag == "--fault-time") {
      out->fault_time = std::atoll(value().c_str());
    } else if (flag == "--seeds-file") {
      out->seeds_file = value();
    } else if (flag == "--mutant") {
      out->mutant = std::atoi(value().c_str());
    } else if (flag == "--all-mutants") {
      out->all_mutants = true;
    } else if (flag == "--table") {
      out->table = value();
    } else {
      std::cerr << "unknown flag " << flag << "\n";
      return false;
    }
  }
  return true;
}

Options OptionsFor(const Arguments& arguments, std::uint64_t seed) {
  Options options = OptionsOf(seed);
  std::istringstream names(arguments.off);
  for (std::string name; std::getline(names, name, ',');) {
    LOG_IF(FATAL, !TurnOff(name, &options)) << "no such fault: " << name;
  }
  if (arguments.fault_time > 0) options.fault_time = arguments.fault_time;
  return options;
}

std::uint64_t FreshSeed() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 20) ^ device();
}

// Runs one schedule; prints the failure block when it fails.
bool RunOptions(const Options& options, bool trace, Counts* counts, std::uint64_t* hash,
                std::uint64_t until = UINT64_MAX) {
  BeginBuggify(options.seed);
  World world(options, trace, until);
  g_world = &world;
  const bool clean = world.Run();
  if (!clean || until != UINT64_MAX) std::cout << world.Report() << std::flush;
  g_world = nullptr;
  counts->Add(world.counts());
  *hash = world.trace_hash();
  return clean;
}

bool RunsClean(const Options& options) {
  Counts counts;
  std::uint64_t hash = 0;
  return RunOptions(options, false, &counts, &hash);
}

void PrintCounts(std::uint64_t schedules, const Counts& c, double seconds) {
  std::cout << "schedules=" << schedules << " seconds=" << seconds << " steps_per_second="
            << static_cast<std::uint64_t>(static_cast<double>(c.steps) / std::max(seconds, 1e-9))
            << "\n ";
  for (const CountName& name : CountNames()) std::cout << " " << name.name << "=" << c.*name.count;
  std::cout << "\n";
}

// A fault that hardly ever fired has tested nothing. Few schedules prove nothing about that.
bool CountsReachFloors(std::uint64_t schedules, const Counts& c) {
  if (schedules < 1000) return true;
  bool all = true;
  for (const CountName& name : CountNames()) {
    const std::uint64_t floor = name.floor * schedules / 20000;
    if (c.*name.count >= floor) continue;
    std::cout << "TOO FEW: " << name.name << "=" << c.*name.count << ", the floor for " << schedules
              << " schedules is " << floor << "\n";
    all = false;
  }
  return all;
}

// Returns the schedule (from 1) that failed, 0 when all were clean.
std::uint64_t RunMany(const Arguments& arguments, std::uint64_t base, std::uint64_t schedules,
                      Counts* counts) {
  for (std::uint64_t i = 0; i < schedules; ++i) {
    std::uint64_t hash = 0;
    const Options options = OptionsFor(arguments, base + i);
    if (!RunOptions(options, arguments.trace, counts, &hash, arguments.until)) return i + 1;
  }
  return 0;
}

int RunMinimize(const Arguments& arguments, std::uint64_t seed) {
  const std::string command = Minimize(OptionsFor(arguments, seed), &RunsClean);
  if (command.empty()) {
    std::cout << "seed " << seed << " runs clean\n";
    return 0;
  }
  std::cout << "still fails: sim_raft " << command << "\n";
  return 1;
}

int RunExhaustive(std::uint64_t states_min) {
  bool is_enough = true;
  for (const bool from_leader : {false, true}) {
    const Exploration result = Explore(from_leader, states_min / 2);
    std::cout << (from_leader ? "from a leader: " : "from empty peers: ") << result.states
              << " states in " << result.steps << " steps, all orders of " << result.depth
              << " events" << (result.is_whole ? ", nothing left" : "") << "\n";
    if (!result.violation.empty()) {
      std::cout << "==== sim_raft: " << result.violation << "\n";
      return 1;
    }
    is_enough = is_enough && (result.is_whole || result.states >= states_min / 2);
  }
  return is_enough ? 0 : 1;
}

#ifdef TRIAD_MUTANTS

constexpr std::array<std::pair<int, const char*>, 19> kMutants = {{
    {1, "acknowledges before fsync"},
    {2, "vote not persisted"},
    {3, "term persisted, vote lost (two writes)"},
    {4, "commit counts replicas of an old term"},
    {5, "up-to-date check uses the current term"},
    {6, "commit not bounded by the last entry of this append"},
    {7, "truncates on any append, not only on conflict"},
    {8, "truncates below commit"},
    {9, "leader counts itself before its own write"},
    {10, "stale append-ack of an earlier term accepted"},
    {11, "membership change before the first commit of the term"},
    {12, "two membership changes in flight"},
    {13, "removed node still counts"},
    {14, "membership not reverted on truncate"},
    {19, "snapshot installed over a newer log"},
    {27, "election timer not randomised"},
    {28, "transfer to a peer that has not caught up"},
    {29, "a change refused that is committed later"},
    {30, "restarts with an empty disk under its old id and votes"},
}};

int RunMutants(const Arguments& arguments, std::uint64_t base) {
  std::string rows;
  const int missed =
      HuntMutants({.program = "sim_raft",
                   .mutants = kMutants,
                   .only = arguments.mutant,
                   .base = base,
                   .schedules = arguments.schedules,
                   .runs_clean = [](auto seed) { return RunsClean(OptionsOf(seed)); }},
                  &rows);
  if (!arguments.table.empty()) {
    std::ofstream(arguments.table)
        << "# Mutants\n\nPlanted bugs (`TRIAD_MUTANT(n)`) and the schedule, counted from 1, in "
           "which "
           "`sim_raft` notices each. Base seed "
        << base << ". Written by `bin/mutants`.\n\n"
        << "| mutant | what is wrong | caught in schedule | by |\n|---|---|---|---|\n"
        << rows;
  }
  return missed == 0 ? 0 : 1;
}

#endif

int Main(int argc, char** argv) {
  FLAGS_logtostderr = true;
  google::InitGoogleLogging(argv[0]);
  google::InstallFailureFunction(&OnCheckFailed);
  Arguments arguments;
  if (!Parse(argc, argv, &arguments)) return 2;
  const std::uint64_t base = arguments.seed.value_or(FreshSeed());
  std::cout << "base seed " << base << std::endl;
#ifdef TRIAD_MUTANTS
  if (arguments.all_mutants) return RunMutants(arguments, base);
  active_mutant = arguments.mutant;
#else
  if (arguments.all_mutants || arguments.mutant != 0) {
    std::cerr << "mutants live in sim_raft_mutants\n";
    return 2;
  }
#endif
  if (arguments.minimize) return RunMinimize(arguments, base);
  if (arguments.exhaustive) return RunExhaustive(arguments.states);
  Counts counts;
  const RunSeed run = [&](std::uint64_t seed, std::uint64_t* hash) {
    return RunOptions(OptionsOf(seed), arguments.trace, &counts, hash);
  };
  if (arguments.determinism) return RunSeedsTwice(base, arguments.schedules, run);
  if (!arguments.seeds_file.empty()) return RunSeedsFile(arguments.seeds_file, run);
  const auto start = std::chrono::steady_clock::now();
  const std::uint64_t failed = RunMany(arguments, base, arguments.schedules, &counts);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  PrintCounts(failed == 0 ? arguments.schedules : failed, counts, took.count());
  if (failed != 0) std::cout << "FAILED in schedule " << failed << "\n";
  const bool is_enough = failed != 0 || !arguments.off.empty() || arguments.until != UINT64_MAX ||
                         CountsReachFloors(arguments.schedules, counts);
  return failed == 0 && is_enough ? 0 : 1;
}

}  // namespace
}  // namespace triad::sim

int main(int argc, char** argv) {
  return triad::sim::Main(argc, argv);
}
