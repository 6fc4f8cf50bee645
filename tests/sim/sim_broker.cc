// sim_broker: runs schedules of a whole broker group against the oracle.
//
//   sim_broker [--schedules N] [--seed S] [--jobs J] [--trace] [--off FAULT,...] [--fault-time US]
//   sim_broker ... --beyond             the class of runs beyond the fault budget
//   sim_broker --seed S --until STEP    only so far; prints how things stand there
//   sim_broker --seed S --minimize      which faults the failure needs
//   sim_broker --determinism --schedules N | --seeds-file F
//   sim_broker_mutants --mutant M | --all-mutants [--table F]
//
// Without --seed the base seed is fresh and printed. Exit 0: clean (with a mutant: it was caught).

#include <glog/logging.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "common/buggify.h"
#include "common/mutant.h"
#include "tests/sim/group/group_minimize.h"
#include "tests/sim/group/group_world.h"
#include "tests/sim/hunt.h"
#include "tests/sim/seed_runs.h"

namespace triad::sim {
namespace {

const GroupWorld* g_world = nullptr;  // for the failure function

__attribute__((noreturn)) void OnCheckFailed() {
  if (g_world != nullptr) std::cout << g_world->Report() << std::flush;
  _exit(3);
}

struct Arguments {
  std::uint64_t schedules = 200;
  std::optional<std::uint64_t> seed;
  std::uint64_t jobs = 1;
  bool trace = false;
  bool determinism = false;
  bool minimize = false;
  bool beyond = false;
  std::uint64_t until = UINT64_MAX;
  std::vector<std::string> off;
  std::optional<Micros> fault_time;
  std::string seeds_file;
  int mutant = 0;
  bool all_mutants = false;
  std::string table;
};

bool ParseOff(const std::string& names, std::vector<std::string>* off) {
  std::istringstream in(names);
  for (std::string name; std::getline(in, name, ',');) {
    GroupOptions ignored;
    if (!TurnOff(name, &ignored)) {
      std::cerr << "--off " << name << ": there are";
      for (const std::string& known : GroupSwitchNames()) std::cerr << " " << known;
      std::cerr << "\n";
      return false;
    }
    off->push_back(name);
  }
  return true;
}

bool Parse(int argc, char** argv, Arguments* out) {
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const auto value = [&]() -> std::string { return i + 1 < argc ? argv[++i] : ""; };
    const auto number = [&] { return std::strtoull(value().c_str(), nullptr, 10); };
    if (flag == "--schedules") {
      out->schedules = number();
    } else if (flag == "--seed") {
      out->seed = number();
    } else if (flag == "--jobs") {
      out->jobs = std::max<std::uint64_t>(1, number());
    } else if (flag == "--trace") {
      out->trace = true;
    } else if (flag == "--determinism") {
      out->determinism = true;
    } else if (flag == "--minimize") {
      out->minimize = true;
    } else if (flag == "--beyond") {
      out->beyond = true;
    } else if (flag == "--until") {
      out->until = number();
    } else if (flag == "--off") {
      if (!ParseOff(value(), &out->off)) return false;
    } else if (flag == "--fault-time") {
      out->fault_time = static_cast<Micros>(number());
    } else if (flag == "--seeds-file") {
      out->seeds_file = value();
    } else if (flag == "--mutant") {
      out->mutant = static_cast<int>(number());
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

std::uint64_t FreshSeed() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 20) ^ device();
}

GroupOptions OptionsFor(const Arguments& arguments, std::uint64_t seed) {
  GroupOptions options = arguments.beyond ? BeyondOptionsOf(seed) : GroupOptionsOf(seed);
  for (const std::string& name : arguments.off) TurnOff(name, &options);
  if (arguments.fault_time) options.fault_time = *arguments.fault_time;
  return options;
}

// Runs one schedule; prints the failure block when it fails.
bool RunOne(const GroupOptions& options, bool trace, GroupCounts* counts, std::uint64_t* hash,
            std::uint64_t until = UINT64_MAX) {
  BeginBuggify(options.seed);
  GroupWorld world(options, trace, until);
  g_world = &world;
  const bool clean = world.Run();
  if (!clean || until != UINT64_MAX) std::cout << world.Report() << std::flush;
  g_world = nullptr;
  counts->Add(world.counts());
  *hash = world.trace_hash();
  return clean;
}

// Returns the schedule (from 1) that failed, 0 when all were clean.
std::uint64_t RunMany(const Arguments& arguments, std::uint64_t base, std::uint64_t schedules,
                      GroupCounts* counts) {
  for (std::uint64_t i = 0; i < schedules; ++i) {
    std::uint64_t hash = 0;
    const GroupOptions options = OptionsFor(arguments, base + i);
    if (!RunOne(options, arguments.trace, counts, &hash, arguments.until)) return i + 1;
  }
  return 0;
}

// What a process did, and tells the one that started it.
struct Share {
  GroupCounts counts;
  std::uint64_t schedules = 0;
  bool clean = false;
};

Share RunShare(const Arguments& arguments, std::uint64_t base, std::uint64_t schedules) {
  Share share;
  const std::uint64_t failed = RunMany(arguments, base, schedules, &share.counts);
  share.schedules = failed == 0 ? schedules : failed;
  share.clean = failed == 0;
  if (failed != 0) std::cout << "FAILED in schedule " << failed << "\n";
  return share;
}

// The schedules of `begin` on, in a process of their own. Returns where its Share will come from.
int StartShare(const Arguments& arguments, std::uint64_t base, std::uint64_t schedules,
               pid_t* child) {
  std::array<int, 2> ends{};
  PCHECK(pipe(ends.data()) == 0);
  std::cout << std::flush;
  *child = fork();
  PCHECK(*child >= 0);
  if (*child == 0) {
    const Share share = RunShare(arguments, base, schedules);
    std::cout << std::flush;
    PCHECK(write(ends[1], &share, sizeof share) == static_cast<ssize_t>(sizeof share));
    _exit(0);
  }
  close(ends[1]);
  return ends[0];
}

Share RunShares(const Arguments& arguments, std::uint64_t base) {
  if (arguments.jobs == 1) return RunShare(arguments, base, arguments.schedules);
  std::vector<std::pair<int, pid_t>> children;
  std::uint64_t begin = 0;
  for (std::uint64_t job = 0; job < arguments.jobs; ++job) {
    const std::uint64_t end = arguments.schedules * (job + 1) / arguments.jobs;
    pid_t child = 0;
    const int from = StartShare(arguments, base + begin, end - begin, &child);
    children.emplace_back(from, child);
    begin = end;
  }
  Share all{.counts = {}, .schedules = 0, .clean = true};
  for (const auto& [from, child] : children) {
    Share share;
    // A process that ended on a CHECK tells nothing.
    const bool is_whole = read(from, &share, sizeof share) == static_cast<ssize_t>(sizeof share);
    close(from);
    int status = 0;
    PCHECK(waitpid(child, &status, 0) == child);
    all.clean = all.clean && is_whole && share.clean;
    if (!is_whole) continue;
    all.counts.Add(share.counts);
    all.schedules += share.schedules;
  }
  return all;
}

// Few schedules prove nothing about what is too few, nor do those with faults turned off.
int RunJobs(const Arguments& arguments, std::uint64_t base) {
  const std::uint64_t floors_from = arguments.beyond ? 200 : 1000;
  const auto start = std::chrono::steady_clock::now();
  const Share all = RunShares(arguments, base);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::cout << "schedules=" << all.schedules << " steps=" << all.counts.steps
            << " seconds=" << took.count() << " steps_per_second="
            << static_cast<std::uint64_t>(static_cast<double>(all.counts.steps) /
                                          std::max(took.count(), 1e-9))
            << "\n  " << ToString(all.counts) << "\n";
  if (!all.clean) return 1;
  if (all.schedules < floors_from || !arguments.off.empty() || arguments.until != UINT64_MAX) {
    return 0;
  }
  const std::string too_few = TooFew(all.counts, all.schedules, arguments.beyond);
  std::cout << too_few;
  return too_few.empty() ? 0 : 1;
}

bool RunsClean(const GroupOptions& options) {
  GroupCounts counts;
  std::uint64_t hash = 0;
  return RunOne(options, false, &counts, &hash);
}

int RunMinimize(const Arguments& arguments, std::uint64_t base) {
  const std::string command = Minimize(OptionsFor(arguments, base), &RunsClean);
  if (command.empty()) {
    std::cout << "seed " << base << " runs clean\n";
    return 0;
  }
  std::cout << "still fails: sim_broker " << command << "\n";
  return 1;
}

#ifdef TRIAD_MUTANTS

constexpr std::array<std::pair<int, const char*>, 13> kMutants = {{
    {15, "a failed sync is taken for done"},
    {16, "directory not synced after a segment was made"},
    {17, "corrupted middle record cut as a torn tail"},
    {18, "a recovering peer votes"},
    {20, "entries are applied before they are committed"},
    {21, "leadership is not confirmed for a read"},
    {22, "lock table not carried over a failover"},
    {23, "consume queues are built before the commit"},
    {24, "queue offsets not read anew by a new leader"},
    {25, "a maximum offset beyond the commit is served"},
    {26, "payload checksum skipped"},
    {32, "the state is flushed without a sync"},
    {33, "a topic that stores nothing twice does"},
}};

int RunMutants(const Arguments& arguments, std::uint64_t base) {
  std::string rows;
  GroupCounts counts;
  const int missed = HuntMutants({.program = "sim_broker",
                                  .mutants = kMutants,
                                  .only = arguments.mutant,
                                  .base = base,
                                  .schedules = arguments.schedules,
                                  .runs_clean =
                                      [&](auto seed) {
                                        Arguments one;
                                        one.beyond = arguments.beyond;
                                        return RunMany(one, seed, 1, &counts) == 0;
                                      }},
                                 &rows);
  if (!arguments.table.empty()) {
    std::ofstream(arguments.table, std::ios::app)
        << "\nThe same by `sim_broker` (base seed " << base
        << "):\n\n| mutant | what is wrong | caught in schedule | by |\n|---|---|---|---|\n"
        << rows;
  }
  return missed == 0 ? 0 : 1;
}

#endif

int Main(int argc, char** argv) {
  FLAGS_logtostderr = true;
  FLAGS_minloglevel = google::GLOG_FATAL;
  google::InitGoogleLogging(argv[0]);
  google::InstallFailureFunction(&OnCheckFailed);
  std::set_terminate(&OnCheckFailed);
  Arguments arguments;
  if (!Parse(argc, argv, &arguments)) return 2;
  if (arguments.trace) FLAGS_minloglevel = google::GLOG_WARNING;
  const std::uint64_t base = arguments.seed.value_or(FreshSeed());
  std::cout << "base seed " << base << "\n";
#ifdef TRIAD_MUTANTS
  if (arguments.all_mutants) return RunMutants(arguments, base);
  active_mutant = arguments.mutant;
#else
  if (arguments.all_mutants || arguments.mutant != 0) {
    std::cerr << "mutants live in sim_broker_mutants\n";
    return 2;
  }
#endif
  if (arguments.minimize) return RunMinimize(arguments, base);
  GroupCounts counts;
  const RunSeed run = [&](std::uint64_t seed, std::uint64_t* hash) {
    return RunOne(OptionsFor(arguments, seed), arguments.trace, &counts, hash);
  };
  if (arguments.determinism) return RunSeedsTwice(base, arguments.schedules, run);
  if (!arguments.seeds_file.empty()) return RunSeedsFile(arguments.seeds_file, run);
  return RunJobs(arguments, base);
}

}  // namespace
}  // namespace triad::sim

int main(int argc, char** argv) {
  return triad::sim::Main(argc, argv);
}
