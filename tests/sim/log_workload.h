// LogWorkload: a scripted life of a log store on a recording disk, with what it was promised at
// each moment.
//
// Before and after each step the promise in force goes into the trace as a mark, so that every
// prefix of the trace knows what a crash there may and may not take. Thread: one.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dledger/log/log_store.h"
#include "tests/sim/crash_workload.h"
#include "tests/sim/sim_file_system.h"

namespace triad::sim {

// What a store may hold after a crash.
struct LogPromise {
  std::vector<dledger::EntryRef> entries;  // from index 1: written, on their way, or dropped
  std::size_t durable = 0;                 // of them these must be there
  std::size_t dropped = 0;                 // of them these are not
  std::size_t dropping = 0;                // or these
  bool cutting = false;                    // or all of `uncut` up to what was durable in it
  std::vector<dledger::EntryRef> uncut;
  std::size_t uncut_durable = 0;
  std::size_t uncut_dropped = 0;
  dledger::HardState saved;
  dledger::HardState tried;
};

class LogWorkload final : public CrashWorkload {
 public:
  LogWorkload(std::string name, dledger::LogStoreOptions options, std::uint64_t seed);

  // ---- the script ----
  void Open();
  void Append(int count, std::size_t payload_bytes);
  void Sync();
  void AppendAndSync(int count, std::size_t payload_bytes) {
    Append(count, payload_bytes);
    Sync();
  }
  void Cut(std::uint64_t from);
  void Drop(std::uint64_t keep_from);
  // A snapshot: others went on by `count` entries, of which this log begins behind the last
  // segment.
  void Restart(int count, std::size_t payload_bytes);
  void Vote();
  void Prepare();
  void Checkpoint();
  void Close();
  void KillAndOpen();
  void NextTerm() { term_ = term_ + 1; }

  // ---- what it left ----
  const std::string& name() const override { return name_; }
  std::vector<DiskOp> trace() const override { return fs_.trace(); }
  std::string Recover(SimFileSystem& fs, std::uint64_t mark, std::string* found) const override;

 private:
  void Mark();

  const std::string name_;
  const dledger::LogStoreOptions options_;
  const dledger::StoreStamp stamp_{.group = "g", .peer_id = "n0"};
  SimFileSystem fs_;
  std::unique_ptr<dledger::LogStore> store_;
  dledger::LogTail tail_;
  Term term_{1};
  LogPromise now_;
  std::vector<LogPromise> promises_;
};

// The lives that are tried: append, group commit, rollover, cuts, votes, checkpoints, restarts.
std::vector<std::unique_ptr<CrashWorkload>> LogWorkloads(std::uint64_t seed);

}  // namespace triad::sim
