// EntryDispatcher: what a committed entry means: its command to the state, its messages to the
// consume queues and the key index.
//
// Owner: the apply thread. Deterministic: the result depends on the entry and the state alone.
// Nothing is done for an entry whose payload does not parse.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "broker/state/replicated_state.h"
#include "broker/store/consume_queue_store.h"
#include "broker/store/delay_levels.h"
#include "broker/store/key_index.h"
#include "broker/store/message.h"
#include "broker/store/queue_map.h"
#include "dledger/raft/entry.h"

namespace triad::broker {

class EntryDispatcher {
 public:
  // All outlive it. `flush`: makes the state durable; called before files of a deleted topic are
  // removed, so that after a crash the queues are never older than a deletion the state must
  // repeat. False: the store is being closed and nothing was made durable; the files stay.
  EntryDispatcher(ReplicatedState* state, ConsumeQueueStore* queues, KeyIndex* keys,
                  std::function<bool()> flush);

  struct Outcome {
    ReplicatedState::CommandResult command;
    bool topics_changed = false;  // topics or groups
    Settings settings;            // that the entry put
  };
  // Applies the next entry to the state and the queues. Errors: kCorruption (nothing was changed,
  // except that queues may hold units of its first messages).
  Result<Outcome> Apply(const dledger::Entry& entry);

  // For an entry that the state has seen: what a derived store lacks. Queues: units and topic
  // deletions. `whole`: the replay began with the log; without it, units that a queue lacks in
  // front of the entry are a hole. Errors: kCorruption.
  struct Lacking {
    bool queues = true;
    bool keys = true;
    bool whole = false;
  };
  Status Replay(const dledger::Entry& entry, Lacking lacking);

  // What an entry says of the queue's units [begin, end), for the repair of a hole. Errors:
  // kCorruption.
  struct PlacedUnit {
    QueueOffset offset;
    QueueUnit unit;
  };
  Result<std::vector<PlacedUnit>> UnitsOf(const dledger::Entry& entry, const TopicQueue& queue,
                                          QueueOffset begin, QueueOffset end);

  // Queues that got messages by Apply since the last call.
  struct Arrived {
    TopicQueue queue;
    QueueOffset max;
    std::int64_t messages = 0;
    std::int64_t bytes = 0;
  };
  std::vector<Arrived> TakeArrivals();

 private:
  struct Arrival {
    QueueOffset next;
    LogIndex entry;  // the last that touched it
    std::int64_t messages = 0;
    std::int64_t bytes = 0;
  };
  Status CheckRecords(const dledger::Entry& entry, const PayloadView& payload);
  bool TakesKeys(const dledger::Entry& entry) const;
  void NoteKeyless(const dledger::Entry& entry);
  void DeleteTopics(const std::vector<Topic>& topics);
  void DispatchRecords(const dledger::Entry& entry);
  Status ReplayQueues(const dledger::Entry& entry, bool whole);
  QueueUnit UnitOf(const MessageView& message, const SearchProperties& properties);
  void RecordKeys(const MessageView& message, const SearchProperties& properties);
  void NoteKey(const MessageView& message);
  std::int64_t TagCodeOf(const MessageView& message, const SearchProperties& properties);
  void RefreshLevels();

  ReplicatedState* const state_;
  ConsumeQueueStore* const queues_;
  KeyIndex* const keys_;
  const std::function<bool()> flush_;
  DelayLevels levels_;
  std::string levels_text_;            // what levels_ was parsed from
  std::vector<MessageView> messages_;  // of the entry at hand; they point into it
  QueueMap<Arrival> arrivals_;
};

}  // namespace triad::broker
