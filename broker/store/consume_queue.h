// ConsumeQueue: the units of one (topic, queue): the newest in a ring in memory, all of them in
// files.
//
// Private to broker/store. Changed by the apply thread; read by any thread (a leaf mutex, not held
// across IO). Files hold kUnitsPerFile units, aligned; the first may begin in the middle. A file is
// named by the byte its first unit would have in one endless file.

#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "broker/store/consume_queue_store.h"

namespace triad::broker {

inline constexpr std::size_t kUnitBytes = 20;
inline constexpr std::int64_t kUnitsPerFile = 300000;
inline constexpr std::size_t kRingUnitsMin = 16;
inline constexpr std::size_t kRingUnitsMax = 2048;
inline constexpr std::size_t kRingUnitsTotalMax = 512u << 10;

// How many units all rings together may hold beyond kRingUnitsMin each. Apply thread only.
struct RingBudget {
  std::size_t used = 0;
  bool refused = false;  // a ring could not grow since this was last cleared
};

// What has been written and created, but not synced.
struct Unsynced {
  std::set<std::string> files;
  std::set<std::string> dirs;
};

class ConsumeQueue {
 public:
  // `fs` and `budget` outlive it. `dir` is the queue's own directory.
  ConsumeQueue(FileSystem& fs, std::string dir, RingBudget* budget);
  ~ConsumeQueue();
  ConsumeQueue(const ConsumeQueue&) = delete;
  ConsumeQueue& operator=(const ConsumeQueue&) = delete;

  // Once, before anything else: finds the files, keeps the units in front of `checkpoint`.
  Status Recover(PhysicalOffset checkpoint);

  // ---- apply thread ----
  bool empty() const { return min_ == max_ && files_.empty(); }
  // False: the ring is full of units that are not in files; WriteOut, then repeat.
  bool Append(QueueOffset offset, const QueueUnit& unit);
  Status WriteOut(Unsynced* unsynced);
  // An empty queue continues at `offset`: an empty file of that name says so.
  Status StartEmpty(QueueOffset offset, Unsynced* unsynced);
  Status SetLogBegin(PhysicalOffset begin);
  // Gives memory back when nothing was appended since the last call.
  void ShrinkWhenIdle();
  void ReturnBudget();  // before the queue goes
  bool listed = false;  // the store's mark: stands in its list of queues to write out

  // ---- any thread ----
  QueueRange Range() const;
  std::optional<std::vector<QueueUnit>> ReadNow(QueueOffset from, std::size_t max_units) const;
  // May touch files.
  Result<std::vector<QueueUnit>> Read(QueueOffset from, std::size_t max_units) const;

 private:
  std::string PathOf(std::int64_t first_unit) const;
  Result<QueueUnit> ReadOneFrom(std::int64_t first_unit, std::int64_t offset) const;
  Status FindCutFile(PhysicalOffset checkpoint);
  Status CutLastFile(PhysicalOffset checkpoint);
  Result<bool> IsEmptyFile(std::int64_t first_unit) const;
  Status CheckFiles() const;
  Result<std::int64_t> FirstAtOrBehind(PhysicalOffset begin) const;
  bool in_ring(std::int64_t offset) const { return offset >= ring_begin_ && offset < max_; }
  QueueUnit& slot(std::int64_t offset) {
    return ring_[static_cast<std::size_t>(offset) % ring_.size()];
  }
  const QueueUnit& slot(std::int64_t offset) const {
    return ring_[static_cast<std::size_t>(offset) % ring_.size()];
  }
  void Resize(std::size_t units);

  FileSystem& fs_;
  const std::string dir_;
  RingBudget* const budget_;
  bool appended_ = false;                       // apply thread: since the last ShrinkWhenIdle
  std::optional<PhysicalOffset> min_position_;  // apply thread: of the unit at min_, if known

  mutable std::mutex mutex_;  // for all below; the apply thread alone changes them
  std::int64_t min_ = 0;
  std::int64_t max_ = 0;
  std::int64_t written_ = 0;     // units in front of it are in files
  std::int64_t ring_begin_ = 0;  // [ring_begin_, max_) are in ring_
  std::vector<QueueUnit> ring_;
  std::vector<std::int64_t> files_;  // first unit of each, ascending
};

}  // namespace triad::broker
