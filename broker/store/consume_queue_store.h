// ConsumeQueueStore: where each queue's messages stand: units (position, size, tag code) per
// (topic, queue).
//
// Derived from committed entries only; never synced on the hot path; rebuilt from the log behind
// its checkpoint. Written by the apply thread; read by any thread. The newest units of a queue are
// in memory (bounded); older ones are read from files: ReadNow answers only from memory, Read may
// touch files (reader threads). Files: <dir>/<topic>/<queue>/<20-digit first unit byte>; none while
// empty. When many queues have grown, a checkpoint leaves what is in memory only out of them and
// writes it to one file, <dir>/tails (queue_tails.h); their own are written when memory is full.
// Bounds: kRingUnitsMax units per queue and kRingUnitsTotalMax in all stay in memory, beside a few
// for each queue. A write that fails while appending ends the process, but for a full disk.
//
// Holes: units that are missing or damaged here are read from the log again (queue_repair.h). Until
// then a reader of theirs is told kUnavailable, and everything else is served.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/file_system.h"
#include "common/ids.h"
#include "common/status.h"

namespace triad::broker {

struct QueueUnit {
  PhysicalOffset position;
  std::int32_t size_bytes = 0;
  std::int64_t tag_code = 0;  // of SCHEDULE_TOPIC_XXXX: the delivery time in ms (wire.md §8.4)
  bool operator==(const QueueUnit&) const = default;
};
struct QueueRange {  // [min, max): readable, committed
  QueueOffset min;
  QueueOffset max;
};

class ConsumeQueueStore {
 public:
  // Cuts every queue back to units in front of `checkpoint` (the rest may be torn); the caller
  // replays from there. `fs` outlives the store.
  static Result<std::unique_ptr<ConsumeQueueStore>> Open(FileSystem& fs, const std::string& dir,
                                                         PhysicalOffset checkpoint);
  virtual ~ConsumeQueueStore() = default;

  // ---- apply thread ----
  // Units of one queue come in order. A unit below max (replay) is ignored; a gap is a programmer's
  // mistake, except that an empty queue may start anywhere (`offset` becomes its min).
  virtual void Append(const TopicQueue& queue, QueueOffset offset, const QueueUnit& unit) = 0;
  // A queue that is not here, but was written once: its messages have all expired, it continues at
  // `next`.
  virtual Status StartEmpty(const TopicQueue& queue, QueueOffset next) = 0;
  virtual void DeleteTopic(const Topic& topic) = 0;
  // Another log took the place of this one: every queue goes, with its files.
  virtual Status Clear() = 0;
  virtual Status WriteOut() = 0;  // buffered units to files, unsynced; bounded memory
  virtual Status SyncAll() = 0;   // then everything appended so far is in front of a checkpoint
  // SyncAll in two steps, so that the apply thread need not wait for the disk: writes out, and
  // returns the rest as a task for any one thread. When that returned OK, everything appended
  // before PrepareSync is in front of a checkpoint, which is `checkpoint`. Tasks run in the order
  // they were made.
  virtual Result<std::function<Status()>> PrepareSync(PhysicalOffset checkpoint) = 0;
  // Retention: units of messages in front of `begin` are gone; min follows. That of a queue with a
  // hole follows when it is filled.
  virtual Status SetLogBegin(PhysicalOffset begin) = 0;
  // The same in steps of so many queues, so that nobody waits long. True: all follow now. An error
  // of one keeps none of the others from it; the next steps try that one again.
  virtual Result<bool> StepLogBegin(PhysicalOffset begin, std::size_t max_queues) = 0;

  // ---- holes, apply thread ----
  // The queue is known to reach to `offset`: the units that it lacks in front of it are a hole.
  virtual void ExtendTo(const TopicQueue& queue, QueueOffset offset) = 0;
  struct Hole {
    TopicQueue queue;
    QueueOffset begin;  // [begin, end) are missing
    QueueOffset end;
    std::optional<PhysicalOffset> behind;  // of the unit in front of begin; nothing: of none
  };
  // One of the holes, also of those that readers found since. Reads files.
  virtual Result<std::optional<Hole>> FindHole() = 0;
  virtual std::size_t queues_with_holes() const = 0;
  // Units of the queue's hole, from its begin on. When `first` is behind the begin, the log holds
  // nothing of the queue in front of it.
  virtual Status Feed(const TopicQueue& queue, QueueOffset first,
                      std::span<const QueueUnit> units) = 0;
  // The log holds nothing of what the hole lacks.
  virtual Status CloseHole(const TopicQueue& queue) = 0;

  // ---- any thread ----
  virtual std::vector<TopicQueue> Queues() const = 0;
  virtual std::optional<QueueRange> Range(
      const TopicQueue& queue) const = 0;  // nullopt: never written here
  // Up to `max_units` units from `from`, memory only. Empty outside of Range. nullopt = the first
  // unit is not in memory: use Read.
  virtual std::optional<std::vector<QueueUnit>> ReadNow(const TopicQueue& queue, QueueOffset from,
                                                        std::size_t max_units) const = 0;

  // ---- reader threads ----
  // As ReadNow; may be fewer than there are, at least one inside of Range. Errors: kUnavailable (a
  // hole; later), kIoError.
  virtual Result<std::vector<QueueUnit>> Read(const TopicQueue& queue, QueueOffset from,
                                              std::size_t max_units) const = 0;
};

}  // namespace triad::broker
