// ConsumeQueue: the units of one (topic, queue): the newest in a ring in memory, all of them in
// files.
//
// Private to broker/store. Changed by the apply thread; read by any thread (a leaf mutex, not held
// across IO). Files hold kUnitsPerFile units, aligned; the first may begin in the middle. A file is
// named by the byte its first unit would have in one endless file. A unit on the disk carries a
// CRC32C of itself and its offset: what rotted is never taken for a unit.
//
// What is missing or damaged is a hole, which the log fills (Feed): inside the files, or between
// them and the ring. Everything outside of the hole is served meanwhile.

#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "broker/store/consume_queue_store.h"
#include "broker/store/queue_unit_codec.h"

namespace triad::broker {

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

  // Once, before anything else: finds the files, keeps the units in front of `checkpoint`. `tail`:
  // units from there on are known, and better than what the files have of them.
  Status Recover(PhysicalOffset checkpoint, std::optional<QueueOffset> tail);

  // ---- apply thread ----
  bool empty() const { return min_ == max_ && files_.empty(); }
  // False: the ring is full of units that are not in files; WriteOut, then repeat.
  bool Append(QueueOffset offset, const QueueUnit& unit);
  Status WriteOut(Unsynced* unsynced);
  // An empty queue continues at `offset`: an empty file of that name says so.
  Status StartEmpty(QueueOffset offset, Unsynced* unsynced);
  // Notices at its first call when files in front of the others are gone that retention did not
  // drop. Errors: kUnavailable: a hole is in the way.
  Status SetLogBegin(PhysicalOffset begin);
  // The ring is full and cannot be written (no room on the disk): its oldest unit becomes a hole.
  void LoseOldest();
  // The units from max to `offset` are lost: a hole.
  void ExtendTo(QueueOffset offset);
  // A reader found the unit at `bad` damaged: it and its damaged neighbours become a hole.
  Status OpenHole(QueueOffset bad);
  // What is missing, the first of it: [begin, end).
  struct Hole {
    QueueOffset begin;
    QueueOffset end;
    std::optional<PhysicalOffset> behind;  // of the whole unit in front of it, when there is one
  };
  std::optional<Hole> hole() const;
  // The hole's next units, inside of it. `first` behind its begin: the log does not hold those in
  // front any more, and the queue begins here.
  Status Feed(QueueOffset first, std::span<const QueueUnit> units, Unsynced* unsynced);
  // The log does not hold the hole's units any more: the queue begins behind it.
  Status CloseHole(Unsynced* unsynced);
  // The units that are in memory only, for a checkpoint; none when there is a hole in front of
  // them.
  std::vector<QueueUnit> Unwritten() const;
  bool has_files() const { return !files_.empty(); }
  // Gives memory back when nothing was appended since the last call; may write out for it.
  Status ShrinkWhenIdle(Unsynced* unsynced);
  void ReturnBudget();  // before the queue goes
  bool listed = false;  // the store's mark: stands in its list of queues to write out

  // ---- any thread ----
  QueueRange Range() const;
  std::optional<std::vector<QueueUnit>> ReadNow(QueueOffset from, std::size_t max_units) const;
  // May touch files. Errors: kCorruption: the unit at `from` is damaged; kUnavailable: it is in a
  // hole.
  Result<std::vector<QueueUnit>> Read(QueueOffset from, std::size_t max_units) const;

 private:
  std::string PathOf(std::int64_t first_unit) const;
  // Of the file that begins with `first_unit`: units [from, from + count), nothing where none is.
  // A file that is missing or too short has none there.
  using MaybeUnits = std::vector<std::optional<QueueUnit>>;
  Result<MaybeUnits> ReadFrom(std::int64_t first_unit, std::int64_t from, std::size_t count) const;
  // As stands in the files, from the one that holds `from`; empty behind the last one.
  Result<MaybeUnits> Peek(std::int64_t from, std::size_t count) const;
  Result<std::int64_t> KeptEnd(std::int64_t first_unit, PhysicalOffset checkpoint) const;
  Status CheckFront(PhysicalOffset begin);
  Status ForgetFront(std::int64_t new_min);
  Status BeginAt(std::int64_t first);
  Status WriteUnits(std::int64_t from, std::span<const QueueUnit> units, Unsynced* unsynced);
  bool has_inner_hole() const { return hole_begin_ < hole_end_; }
  bool lacks_tail() const { return written_ < ring_begin_; }
  Result<std::int64_t> FirstAtOrBehind(PhysicalOffset begin);
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
  bool front_unsure_ = false;                   // apply thread: a file in front of all may be lost
  std::optional<PhysicalOffset> min_position_;  // apply thread: of the unit at min_, if known

  mutable std::mutex mutex_;  // for all below; the apply thread alone changes them
  std::int64_t min_ = 0;
  std::int64_t max_ = 0;
  std::int64_t written_ = 0;  // units in front of it are in files
  std::int64_t ring_begin_ =
      0;  // [ring_begin_, max_) are in ring_; [written_, ring_begin_) nowhere
  std::int64_t hole_begin_ = 0;  // [hole_begin_, hole_end_): damaged in the files
  std::int64_t hole_end_ = 0;
  std::vector<QueueUnit> ring_;
  std::vector<std::int64_t> files_;  // first unit of each, ascending
};

}  // namespace triad::broker
