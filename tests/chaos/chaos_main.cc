// triad-chaos: see bin/chaos. Exit: 0 everything as it must be, 1 not, 2 wrong options, 3 the
// machine lacks something (the message says what).

#include <gflags/gflags.h>
#include <glog/logging.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "common/logging.h"
#include "common/process.h"
#include "tests/chaos/run.h"

DEFINE_int32(seconds, 60, "how long faults are dealt");
DEFINE_string(nemesis, "kill", "which faults, with commas between; all");
DEFINE_uint64(seed, 0, "decides what is dealt and when; 0: the clock does");
DEFINE_string(clients, "cpp", "whose clients make the load: cpp, java, go");
DEFINE_string(client_program, "", "what runs them (bin/chaos makes it); see foreign_load.h");
DEFINE_string(system, "triad", "whose brokers: triad, rocketmq (bin/chaos makes them)");
DEFINE_bool(loopback, false, "on 127.0.0.1 instead of network namespaces: links cannot be cut");
DEFINE_bool(
    degrade, false,
    "kills instead of faults that this machine cannot make, loudly; exit code 4 when all else "
    "is good");
DEFINE_string(broker, "", "keys of broker.conf: key=value,key=value");
DEFINE_bool(keep, false, "keep the directory of a good run too");
DEFINE_string(dir, "", "directory of the run; empty: a new one below the temporary directory");
DEFINE_string(root, ".", "the source tree");
DEFINE_string(programs, "build/release/bin", "the programs under test");

namespace triad::chaos {
namespace {

constexpr int kDegraded = 4;

RunOptions OptionsOfFlags() {
  RunOptions options;
  options.seconds = FLAGS_seconds;
  options.seed = FLAGS_seed;
  if (options.seed == 0) {
    options.seed = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch() /
                                              std::chrono::milliseconds(1));
  }
  std::istringstream list(FLAGS_nemesis);
  for (std::string name; std::getline(list, name, ',');) options.nemeses.push_back(name);
  options.loopback = FLAGS_loopback;
  options.keep = FLAGS_keep;
  options.degrade = FLAGS_degrade;
  options.client_program = FLAGS_client_program;
  options.original = FLAGS_system == "rocketmq";
  std::istringstream keys(FLAGS_broker);
  for (std::string key; std::getline(keys, key, ',');) {
    options.broker_keys[key.substr(0, key.find('='))] = key.substr(key.find('=') + 1);
  }
  options.program_dir = std::filesystem::absolute(FLAGS_programs);
  options.library_dir = options.program_dir;
  options.conf_dir = std::filesystem::absolute(FLAGS_root + "/conf");
  options.work_dir = FLAGS_dir.empty() ? std::filesystem::temp_directory_path().string() +
                                             "/triad-chaos-" + std::to_string(::getpid())
                                       : std::filesystem::absolute(FLAGS_dir).string();
  return options;
}

int Main() {
  if ((FLAGS_clients == "cpp") != FLAGS_client_program.empty()) {
    std::cerr << "chaos: --clients " << FLAGS_clients
              << " needs bin/chaos, which makes its program\n";
    return 2;
  }
  const RunOptions options = OptionsOfFlags();
  std::cerr << "chaos: seed " << options.seed << ", " << options.seconds << " s of "
            << FLAGS_nemesis << ", in " << options.work_dir << "\n";
  int status = 1;
  bool good = false;
  {
    Run run(options);
    const Status executed = run.Execute();
    if (!executed.ok()) {
      std::cerr << "chaos: " << executed << "\nchaos: the files are in " << options.work_dir
                << "\n";
      if (executed.code() == StatusCode::kInvalidArgument) return 2;
      return executed.code() == StatusCode::kUnsupported ? 3 : 1;
    }
    good = run.good();
    status = !good ? 1 : run.is_degraded() ? kDegraded : 0;
    std::cout << run.Report();
    if (!good) {
      std::cout << "look at " << options.work_dir
                << ": history.jsonl (line numbers above), n*.log\n"
                << "again: bin/chaos --seconds " << options.seconds << " --nemesis "
                << FLAGS_nemesis << " --seed " << options.seed << "\n";
    }
    std::cout << run.LastLine() << std::endl;
  }
  if (good && !options.keep) std::filesystem::remove_all(options.work_dir);
  return status;
}

}  // namespace
}  // namespace triad::chaos

int main(int argc, char** argv) {
  gflags::SetUsageMessage("deals faults to a real broker group and checks what it promised");
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  FLAGS_logtostderr = true;
  FLAGS_minloglevel = 2;  // the clients' warnings are part of the game
  google::InitGoogleLogging(argv[0]);
  triad::HoldStopSignals();
  return triad::chaos::Main();
}
