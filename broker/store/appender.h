// Appender: what waits for the log, and who waits for its outcome.
//
// Any thread submits; the log thread builds entries from what waits (queue offsets are assigned
// there, from a table over the log's tail); the apply thread tells the waiters. The log decides a
// proposal's fate, not the role: an entry applied at its index with its term means OK, with another
// term means it never was (kNotLeader: may be sent again as new). A message whose key is known is
// not appended: it gets the first one's result, when that one's fate is known. Bounds:
// max_waiting_bytes and max_waiting proposals; beyond them Submit answers kBusy at once.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "broker/state/replicated_state.h"
#include "broker/store/message.h"
#include "common/clock.h"
#include "common/ids.h"
#include "common/status.h"
#include "dledger/node.h"

namespace triad::broker {

struct AppendedMessage {
  QueueOffset queue_offset;
  PhysicalOffset physical_offset;
  std::int64_t store_time_ms = 0;
  bool duplicate = false;  // not stored again: this is the first one's place ...
  QueueId first_queue;     // ... and the queue that its sender was told
};
struct AppendOutcome {
  // OK: committed and applied. kNotLeader: certainly not in the log. kTimedOut: unknown. kBusy:
  // never taken. kNotFound: its topic's deletion is in the log. kInvalidArgument: cannot be an
  // entry (too large). kUnavailable: its deadline passed before it was appended; certainly not in
  // the log.
  Status status;
  Term term;
  std::vector<AppendedMessage> messages;  // in order
  ReplicatedState::CommandResult command;
  std::string records;  // of a RecordBatch that is certainly not in the log
};
// What the messages of a proposal are known by, in a topic with a rule (dedup_table.h).
struct DedupKeys {
  Topic topic;                    // the sender's, also of parked messages
  QueueId queue_id;               // as the sender will be told
  std::vector<std::string> keys;  // one per message (empty: stored in any case), or none at all
};
// One atomic unit: the command and the messages get into one entry, commands first; never split.
struct Proposal {
  StateCommand command;
  std::vector<MessageDraft> messages;
  DedupKeys dedup;
  TimePoint deadline;  // afterwards: not appended any more; when already in the log: kTimedOut
  Term only_in;        // what it rests on is true in this term alone; 0: in any (else kNotLeader)
  // Exactly once, no lock held. On the apply thread; refusals also on the log thread or, at once,
  // on the submitter's. Must not block.
  std::function<void(AppendOutcome)> done;
};

// Messages of different requests that came together, as records whose places are open. They get
// into one entry, as a proposal does, and share its fate.
struct RecordBatch {
  struct Slot {  // one record
    std::uint32_t bytes = 0;
    QueueId queue_id;
  };
  std::string records;  // back to back
  std::vector<Slot> slots;
  TimePoint deadline;
  // As Proposal::done. It brings the records back when they certainly are not in the log.
  std::function<void(AppendOutcome)> done;
};

struct AppenderOptions {
  std::size_t max_waiting = 20000;            // requests, not built plus without a fate
  std::size_t max_waiting_bytes = 64u << 20;  // not built
  std::size_t max_entry_bytes = 1u << 20;
  HostPort store_host;
};

inline constexpr std::size_t kGatherMax = 64;

class Appender {
 public:
  Appender(AppenderOptions options, const Clock& clock);
  ~Appender();

  // ---- any thread ----
  // Takes it, or calls done at once with kBusy / kNotLeader (while no leader term is open).
  void Submit(Proposal proposal);
  void Submit(RecordBatch batch);
  // Before the first Submit. `wake` is called after one, `wake_now` by EndGather (null: `wake`
  // too).
  void set_wake(std::function<void()> wake, std::function<void()> wake_now = nullptr);
  void set_state(const ReplicatedState* state);  // knows the applied keys; before the first Submit
  std::size_t waiting() const;                   // not built plus without a fate
  // From now on; what already waits stays. At least 1.
  void SetWaitingMax(std::size_t requests);
  // Between the two, on one thread, the log thread is woken once for up to kGatherMax submits, so
  // that what came together gets into one entry.
  void BeginGather();
  void EndGather();

  // ---- log thread ----
  // Opens a term as leader: the tail's next queue offsets are these from now on.
  void OpenTerm(Term term, std::vector<std::pair<TopicQueue, QueueOffset>> next_offsets);
  // Not the leader any more: what was not built is answered kNotLeader; what was built waits for
  // its fate.
  void CloseTerm();
  dledger::BuildResult Build(const dledger::BuildContext& context, std::string* payload);

  // ---- apply thread ----
  // The entry at `index` was applied with `term`.
  void OnApplied(LogIndex index, Term term, const ReplicatedState::CommandResult& command);
  // The state was replaced by one that holds the entries up to `upto`: what became of those that
  // were built here is not known (kTimedOut).
  void OnSkipped(LogIndex upto);
  // Answers what is past its deadline. Cheap when nothing is.
  void ExpireWaiters();

  // ---- owner, when no other thread calls any more ----
  // Answers everything: what was not built kNotLeader, what was built kTimedOut.
  void Abandon();

 private:
  struct Shared;
  void WakeForGathered();
  void NoteSubmitted(std::size_t requests);

  std::unique_ptr<Shared> shared_;
};

}  // namespace triad::broker
