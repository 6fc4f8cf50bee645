// QueueRepair: fills the holes of the consume queues from the log, a little at a time.
//
// A hole is what a consume queue lacks or what rotted in its files. The units come again from the
// entries behind the last whole unit in front of it, or, where there is none, from the log's begin.
// Everything else is served meanwhile. Owner: the apply thread. Reads files. Size: one hole at a
// time, kRepairBytes of the log.

#pragma once

#include <optional>

#include "broker/state/replicated_state.h"
#include "broker/store/consume_queue_store.h"
#include "broker/store/entry_dispatcher.h"
#include "common/clock.h"
#include "dledger/node.h"

namespace triad::broker {

inline constexpr std::size_t kRepairBytes = 1u << 20;

class QueueRepair {
 public:
  // All outlive it.
  QueueRepair(const Clock& clock, const ReplicatedState& state, ConsumeQueueStore* queues,
              EntryDispatcher* dispatcher, dledger::Node* node)
      : clock_(clock), state_(state), queues_(queues), dispatcher_(dispatcher), node_(node) {}

  // Works until `deadline`, or until no hole is left or the log cannot give more at the moment. The
  // queues know the entries up to `dispatched`.
  void Step(LogIndex dispatched, TimePoint deadline);

 private:
  // Where the units of the hole at hand are looked for.
  struct Search {
    TopicQueue queue;
    QueueOffset at;  // the hole's begin when it goes on
    LogIndex next;
    bool whole = false;  // began with the log: what it did not find there is not there
  };
  // False: not now.
  bool Advance(const ConsumeQueueStore::Hole& hole, LogIndex dispatched);
  bool Begin(const ConsumeQueueStore::Hole& hole);
  void BeginWithTheLog(const ConsumeQueueStore::Hole& hole);
  Status Feed(const ConsumeQueueStore::Hole& hole,
              std::span<const EntryDispatcher::PlacedUnit> found);
  bool MayGoOn(const Status& status);

  const Clock& clock_;
  const ReplicatedState& state_;
  ConsumeQueueStore* const queues_;
  EntryDispatcher* const dispatcher_;
  dledger::Node* const node_;
  std::optional<Search> search_;
  bool is_filling_ = false;
};

}  // namespace triad::broker
