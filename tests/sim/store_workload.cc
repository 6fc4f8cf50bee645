#include "tests/sim/store_workload.h"

#include <glog/logging.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "broker/state/memory_state_store.h"
#include "broker/state/replicated_state.h"
#include "broker/store/consume_queue_store.h"
#include "tests/sim/level_env.h"

namespace triad::sim {
namespace {

using broker::ConsumeQueueStore;
using broker::QueueUnit;
using broker::ReplicatedState;

struct StateLife {
  std::string name;
  Result<std::unique_ptr<broker::StateStore>> (*open)(FileSystem& fs, const std::string& dir);
  int entries = 0;
  int flush_every = 1;
  std::size_t padding = 0;      // of a topic's name, one to an entry
  std::size_t noise_bytes = 0;  // rewritten by each flush
  int open_every = 0;           // entries between two starts; 0: one life
};

// A life of the replicated state: every entry commits the offset that is its index; flushes now and
// then. Promise: what was flushed is there, whole, and nothing that was never applied.
class StateWorkload final : public CrashWorkload {
 public:
  StateWorkload(StateLife life, std::uint64_t seed) : life_(std::move(life)), fs_(seed) {
    fs_.Record(true);
    Mark(0, 0);
    auto state = Open();
    std::uint64_t flushed = 0;
    for (int i = 1; i <= life_.entries; ++i) {
      const auto index = static_cast<std::uint64_t>(i);
      Apply(state.get(), index);
      if (i % life_.flush_every != 0) continue;
      Mark(flushed, index);
      CHECK(
          state
              ->Flush({{"extra", std::to_string(i)},
                       {"noise", std::string(life_.noise_bytes, static_cast<char>('a' + i % 26))}})
              .ok());
      flushed = index;
      Mark(flushed, index);
      if (life_.open_every == 0 || i % life_.open_every != 0) continue;
      state.reset();
      state = Open();
    }
  }

  const std::string& name() const override { return life_.name; }
  std::vector<DiskOp> trace() const override { return fs_.trace(); }

  std::string Recover(SimFileSystem& fs, std::uint64_t mark, std::string* found) const override {
    const auto [flushed, tried] = promises_.at(static_cast<std::size_t>(mark));
    auto store = life_.open(fs, "/state");
    if (!store.ok()) return "does not open: " + store.status().ToString();
    ReplicatedState state(std::move(store).value());
    const Status loaded = state.Load();
    if (!loaded.ok()) return "does not load: " + loaded.ToString();
    const std::uint64_t index = state.applied_index().value();
    *found = std::to_string(index);
    if (index < flushed) return "flushed state is lost";
    if (index > tried) return "holds what was never applied";
    const auto offset = state.FindOffset(KeyOf());
    const auto stored = offset ? static_cast<std::uint64_t>(offset->value()) : 0;
    if (stored != index) return "the offset is of another entry than the applied index";
    const auto extra = state.LoadedExtra("extra");
    if (extra.value_or("0") != std::to_string(index)) return "half of a flush";
    return {};
  }

 private:
  std::unique_ptr<ReplicatedState> Open() {
    auto store = life_.open(fs_, "/state");
    CHECK(store.ok()) << store.status();
    auto state = std::make_unique<ReplicatedState>(std::move(store).value());
    CHECK(state->Load().ok());
    return state;
  }

  static broker::GroupQueue KeyOf() { return {GroupName("g"), {Topic("T"), QueueId(0)}}; }

  void Apply(ReplicatedState* state, std::uint64_t index) const {
    const broker::ApplyContext context{
        .index = LogIndex(index),
        .term = Term(1),
        .position = PhysicalOffset(static_cast<std::int64_t>(index)),
        .end_position = PhysicalOffset(static_cast<std::int64_t>(index) + 1),
        .store_time_ms = static_cast<std::int64_t>(index)};
    broker::StateCommand command;
    command.put_topics.emplace_back().name = Topic("T");  // or it would keep no offset
    command.put_topics.emplace_back().name =
        Topic("T" + std::to_string(index) + std::string(life_.padding, 'x'));
    command.offsets.push_back(
        {.key = KeyOf(), .offset = QueueOffset(static_cast<std::int64_t>(index))});
    state->Apply(command, context);
    state->FinishEntry(context);
  }

  void Mark(std::uint64_t flushed, std::uint64_t tried) {
    fs_.Mark(promises_.size());
    promises_.emplace_back(flushed, tried);
  }

  const StateLife life_;
  SimFileSystem fs_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> promises_;
};

// A life of consume queues: message n stands at position n * 50 in queue n % queues. Promise:
// everything in front of the checkpoint is there, and the rest comes back by replay.
class QueueWorkload final : public CrashWorkload {
 public:
  QueueWorkload(std::string name, std::int64_t queues, int messages, int write_every,
                int sync_every, std::uint64_t seed)
      : name_(std::move(name)), queues_(queues), fs_(seed) {
    fs_.Record(true);
    Mark(0);
    auto store = ConsumeQueueStore::Open(fs_, "/cq", PhysicalOffset(0));
    CHECK(store.ok()) << store.status();
    for (int n = 0; n < messages; ++n) {
      Append(store->get(), n);
      if (n % write_every == write_every - 1) CHECK((*store)->WriteOut().ok());
      if (n % sync_every != sync_every - 1) continue;
      const auto sync = (*store)->PrepareSync(PhysicalOffset((n + 1) * kBytes));
      CHECK(sync.ok() && (*sync)().ok());
      Mark(n + 1);
    }
  }

  const std::string& name() const override { return name_; }
  std::vector<DiskOp> trace() const override { return fs_.trace(); }

  std::string Recover(SimFileSystem& fs, std::uint64_t mark, std::string* found) const override {
    const std::int64_t checkpoint = checkpoints_.at(static_cast<std::size_t>(mark));
    auto store = ConsumeQueueStore::Open(fs, "/cq", PhysicalOffset(checkpoint * kBytes));
    if (!store.ok()) return "does not open: " + store.status().ToString();
    std::string wrong = Compare(**store, checkpoint);
    if (!wrong.empty()) return wrong;
    const std::int64_t end = checkpoint + 20;
    for (std::int64_t n = checkpoint; n < end; ++n) Append(store->get(), n);
    *found = std::to_string(checkpoint);
    wrong = Compare(**store, end);
    return wrong.empty() ? wrong : "after the replay: " + wrong;
  }

 private:
  static constexpr std::int64_t kBytes = 50;

  static QueueUnit UnitOf(std::int64_t n) {
    return {PhysicalOffset(n * kBytes), static_cast<std::int32_t>(kBytes), n};
  }
  TopicQueue QueueOf(std::int64_t n) const {
    return {Topic("T"), QueueId(static_cast<std::int32_t>(n % queues_))};
  }
  void Append(ConsumeQueueStore* store, std::int64_t n) const {
    store->Append(QueueOf(n), QueueOffset(n / queues_), UnitOf(n));
  }
  std::string Compare(const ConsumeQueueStore& store, std::int64_t end) const {
    for (std::int64_t queue = 0; queue < std::min(queues_, end); ++queue) {
      const std::int64_t count = (end - queue + queues_ - 1) / queues_;
      const auto range = store.Range(QueueOf(queue));
      if (!range || range->max != QueueOffset(count)) {
        return "queue " + std::to_string(queue) + " does not end at " + std::to_string(count);
      }
      for (std::int64_t at = 0; at < count;) {
        const auto units = store.Read(QueueOf(queue), QueueOffset(at), 100);
        if (!units.ok()) return units.status().ToString();
        for (const QueueUnit& unit : *units) {
          if (unit != UnitOf(at++ * queues_ + queue)) return "another unit than was appended";
        }
      }
    }
    return {};
  }

  void Mark(std::int64_t checkpoint) {
    fs_.Mark(checkpoints_.size());
    checkpoints_.push_back(checkpoint);
  }

  const std::string name_;
  const std::int64_t queues_;
  SimFileSystem fs_;
  std::vector<std::int64_t> checkpoints_;
};

}  // namespace

std::vector<std::unique_ptr<CrashWorkload>> StoreWorkloads(std::uint64_t seed) {
  std::vector<std::unique_ptr<CrashWorkload>> all;
  const auto add_state = [&](const StateLife& life, std::uint64_t more) {
    all.push_back(std::make_unique<StateWorkload>(life, seed + more));
  };
  add_state({.name = "state, small flushes", .open = &broker::OpenMemoryStateStore, .entries = 24},
            0);
  add_state({.name = "state, large flushes",
             .open = &broker::OpenMemoryStateStore,
             .entries = 40,
             .flush_every = 5,
             .padding = 90},
            1);
  add_state({.name = "LevelDB, small flushes",
             .open = &OpenLevelDbOn,
             .entries = 24,
             .noise_bytes = 100,
             .open_every = 5},
            4);
  // Memory is written out to a table every four flushes, and tables are merged.
  add_state({.name = "LevelDB, compactions",
             .open = &OpenLevelDbOn,
             .entries = 48,
             .flush_every = 2,
             .padding = 20,
             .noise_bytes = 16'000},
            5);
  all.push_back(std::make_unique<QueueWorkload>("consume queues", 3, 120, 7, 20, seed + 2));
  all.push_back(
      std::make_unique<QueueWorkload>("consume queues, rarely synced", 3, 200, 3, 90, seed + 3));
  all.push_back(
      std::make_unique<QueueWorkload>("consume queues, many", 66, 210, 120, 100, seed + 4));
  return all;
}

}  // namespace triad::sim
