// Run: one chaos run from its options to its verdict.
//
// Builds the layout, starts the cluster and the load, lets the nemeses strike, heals, drains, and
// has the history judged. Thread: the main thread, before any other exists.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/chaos/drain.h"
#include "tests/chaos/nemesis.h"
#include "tests/chaos/object_load.h"
#include "tests/chaos/verdict.h"

namespace triad::chaos {

struct RunOptions {
  int seconds = 60;
  std::vector<std::string> nemeses;  // names; "all"
  std::uint64_t seed = 0;
  bool loopback = false;                           // no namespaces: nemeses of links are refused
  bool degrade = false;                            // kills instead of what the machine cannot do
  bool keep = false;                               // keep the directory of a good run
  std::string client_program;                      // whose clients make the load; empty: ours
  bool original = false;                           // program_dir has the original's broker
  std::map<std::string, std::string> broker_keys;  // of broker.conf
  std::string program_dir, conf_dir, library_dir;
  std::string work_dir;  // absolute
};

class Run {
 public:
  explicit Run(RunOptions options) : options_(std::move(options)) {}
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // Errors: kInvalidArgument (options), kUnsupported (the machine lacks something; the message says
  // what), else what kept the run from being judged.
  Status Execute();

  // After Execute returned OK: was everything as it must be?
  bool good() const { return verdict_.good() && world_->problems().empty() && missing_.empty(); }
  bool is_degraded() const { return !degraded_.empty(); }  // kills instead of other faults
  // What was not, in words; the last line of the program.
  std::string Report() const;
  std::string LastLine() const;

 private:
  Status ChooseNemeses();
  Status Without(const std::string& what, bool Nemesis::*needs);
  Status BuildHosts();
  Status StartCluster();
  Status CreateTopics();
  Status StartLoad();
  Status StopLoad();
  std::vector<DrainTopic> Topics() const;
  void Strike();
  int Slower() const;
  void CatchUpWithKills(std::int64_t begin_ns, std::int64_t end_ns);
  void HealAll();
  void RepairRot();
  Status WaitForConsumers();
  void WaitForDeadLetters(client::PullConsumer* reader, std::int64_t end_ns);
  Status Judge();
  void CountMissing(int seconds);

  RunOptions options_;
  std::vector<const Nemesis*> nemeses_;
  bool needs_disks_ = false, needs_clocks_ = false;
  std::unique_ptr<Layout> layout_;
  std::unique_ptr<Disks> disks_;
  std::vector<LocalHost> hosts_;
  LocalHost namesrv_host_;
  std::vector<std::string> clock_files_;
  std::unique_ptr<LocalCluster> cluster_;
  std::unique_ptr<HistoryWriter> history_;
  std::unique_ptr<World> world_;
  std::unique_ptr<Traffic> load_;
  std::unique_ptr<ObjectLoad> objects_;
  Verdict verdict_;
  std::vector<std::string> degraded_;
  std::vector<std::string> missing_;  // faults that fired too seldom
};

}  // namespace triad::chaos
