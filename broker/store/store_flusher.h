// StoreFlusher: when the state and the derived stores (consume queues, key index) become durable.
//
// The state: one synced batch per interval or per so many bytes of log, on the apply thread. The
// derived stores: synced in the background (a thread of its own), and the checkpoint that says so
// goes into the next state batch, so that a checkpoint is never ahead of what it promises.
// Owner: the apply thread. A write or sync that fails ends the process: what it would have made
// durable is unknown, and a restart rebuilds it from the log. A full disk is not such a failure:
// what is to be written stays in memory and in the log, and is tried again.

#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <thread>

#include "broker/state/replicated_state.h"
#include "broker/store/consume_queue_store.h"
#include "broker/store/key_index.h"
#include "common/clock.h"

namespace triad::broker {

struct FlushPolicy {
  std::chrono::milliseconds state_interval{1000};
  std::uint64_t state_bytes = 64u << 20;
  std::chrono::milliseconds queues_interval{10000};
  std::uint64_t queues_bytes = 256u << 20;
  bool sync_in_background = true;  // false: on the apply thread (simulators have one thread)
};

// The consume queues hold every unit of the entries up to `index`, whose last byte is in front of
// `position`.
struct QueueCheckpoint {
  LogIndex index;
  PhysicalOffset position;
};

class StoreFlusher {
 public:
  // All outlive it.
  StoreFlusher(FlushPolicy policy, const Clock& clock, ReplicatedState* state,
               ConsumeQueueStore* queues, KeyIndex* keys);
  ~StoreFlusher();  // joins

  // As the loaded state says; nullopt = none yet. Errors: kCorruption.
  static Result<QueueCheckpoint> Loaded(const ReplicatedState& state);
  // The last run of the key index that is durable; 0 = none.
  static Result<std::uint64_t> LoadedKeyRun(const ReplicatedState& state);

  void NoteEntry(std::uint64_t bytes);
  // Does what is due.
  void Tick();
  // The state, now; waits for room on a full disk. False: BeginStop came first. Then nothing more
  // is made durable: what the caller could not do comes again at the next start.
  bool FlushState();
  // Any thread: nobody is to wait for room any more.
  void BeginStop();
  // Everything, now; waits for a sync that runs.
  void FlushAll();
  // The queues were emptied: no checkpoint of theirs counts any more. Waits for a sync that runs.
  void ForgetQueues();
  // While the queues lack entries that the state has, no checkpoint is made of them.
  void set_queues_behind(bool behind) { queues_behind_ = behind; }
  // Any thread: the checkpoint that a start would find. Nothing in front of it is replayed.
  LogIndex saved_index() const { return LogIndex(saved_.load(std::memory_order_acquire)); }

 private:
  void RunSyncs();
  // False: no room on the disk; later. Every other failure ends the process.
  bool Wrote(const Status& status, const char* what);
  bool StartSync();
  bool WriteState();
  void FinishSync(bool wait);
  struct Checkpoints {
    QueueCheckpoint queues;
    std::uint64_t key_run = 0;
  };

  const FlushPolicy policy_;
  const Clock& clock_;
  ReplicatedState* const state_;
  ConsumeQueueStore* const queues_;
  KeyIndex* const keys_;

  // Apply thread only.
  TimePoint state_flushed_at_;
  TimePoint queues_synced_at_;
  std::set<std::string_view> waiting_;  // what waits for room on the disk, by its name in the log
  bool given_up_ = false;               // see FlushState
  std::uint64_t bytes_since_flush_ = 0;
  std::uint64_t bytes_since_sync_ = 0;
  LogIndex last_checkpoint_;                // made or in the making
  std::optional<Checkpoints> in_making_;    // its sync runs
  std::optional<Checkpoints> to_be_saved_;  // synced; goes with the next state batch
  std::atomic<std::uint64_t> saved_{0};
  bool queues_behind_ = false;

  std::mutex mutex_;  // for what follows; a leaf
  std::condition_variable changed_;
  std::function<Status()> sync_;  // set: to be run
  bool running_ = false;
  bool stopping_ = false;
  bool may_wait_ = true;
  Status sync_result_;
  std::thread thread_;
};

}  // namespace triad::broker
