// What an Appender is made of: proposals as they wait, entries whose fate is open.
//
// Private to broker/store/appender*.cc. Owner: what stands below "Log thread only" belongs to it,
// all else is guarded by `mutex`.

#pragma once

#include <atomic>
#include <deque>
#include <mutex>
#include <set>
#include <utility>

#include "broker/store/appender.h"
#include "broker/store/dedup_tail.h"
#include "broker/store/queue_map.h"

namespace triad::broker {

struct Appender::Shared {
  using Done = std::function<void(AppendOutcome)>;

  // A proposal as it waits: encoded by its submitter, places still open.
  struct Pending {
    std::string command;
    std::string records;
    std::vector<RecordBatch::Slot> slots;
    DedupKeys dedup;
    std::vector<Topic> put_topics;
    std::vector<Topic> delete_topics;
    std::size_t offset_count = 0;
    std::size_t lock_count = 0;
    bool exclusive = false;  // its command may not be merged with another one
    TimePoint deadline;
    Term only_in;  // 0: any
    bool returns_records = false;
    std::size_t requests = 1;  // it answers
    Done done;

    std::size_t bytes() const { return command.size() + records.size(); }
  };

  // A proposal in the log whose fate is open. `done` is empty when it was answered early.
  struct Waiter {
    Done done;
    TimePoint deadline;
    std::vector<AppendedMessage> messages;
    std::size_t offset_count = 0;
    std::size_t lock_count = 0;
    std::size_t requests = 1;
    std::string records;  // to be returned
  };
  struct Flight {
    LogIndex index;
    Term term;
    std::vector<Waiter> waiters;
  };

  struct Answer {
    Done done;
    AppendOutcome outcome;
  };

  Shared(AppenderOptions appender_options, const Clock& the_clock)
      : options(std::move(appender_options)), clock(the_clock), max_waiting(options.max_waiting) {}

  const AppenderOptions options;
  const Clock& clock;
  std::function<void()> wake;
  std::function<void()> wake_now;

  std::mutex mutex;  // a leaf: never held while `done` or `wake` runs
  bool open = false;
  Term open_term;  // the last one that was opened
  std::deque<Pending> waiting;
  std::size_t waiting_bytes = 0;
  std::size_t waiting_requests = 0;
  std::size_t max_waiting;
  std::deque<Flight> flights;                      // by term, then index: as they were built
  std::size_t unanswered = 0;                      // requests in `flights`, or on their way there
  TimePoint earliest_deadline = TimePoint::max();  // a lower bound for all that is unanswered

  // Log thread only.
  Term term;
  QueueMap<QueueOffset> tail;  // next queue offsets behind the last entry built
  DedupTail keys;
  // Topics whose deletion stands in the log of this term and that were not made again since: their
  // senders may not have heard of it. Forgotten when no sender can be that late.
  std::set<Topic, std::less<>> deleted;
  LogIndex last_deletion;
  TimePoint deletions_applied = TimePoint::max();  // max: not yet
  std::atomic<std::uint64_t> applied{0};           // index of the last entry that the state knows

  static Result<Pending> Encode(Proposal proposal, const HostPort& store_host);
  Status Take(Pending* pending);
  dledger::BuildResult Pick(const dledger::BuildContext& context, std::vector<Pending>* picked,
                            std::vector<Answer>* refused);
  void NoteTopics(const dledger::BuildContext& context, const Pending& pending);
  void ForgetDeletions(TimePoint now);
  Status CheckTopics(const Pending& pending) const;
  void JoinDuplicates(const dledger::BuildContext& context, std::vector<Pending>* picked,
                      std::vector<Answer>* answers);
  void Join(LogIndex open, Pending* pending, std::vector<AppendedMessage> messages,
            std::vector<Answer>* answers);
  Flight Assemble(const dledger::BuildContext& context, std::vector<Pending> picked,
                  std::string* payload);
  std::vector<AppendedMessage> Place(const dledger::BuildContext& context, const Pending& pending,
                                     std::string* payload);
  std::vector<AppendedMessage> PlaceKeyed(const dledger::BuildContext& context,
                                          const Pending& pending, std::string* payload);
  AppendedMessage PlaceOne(const dledger::BuildContext& context, const RecordBatch::Slot& slot,
                           std::size_t at, std::string* payload);
  std::vector<Answer> TakeFates(LogIndex index, Term applied_term,
                                const ReplicatedState::CommandResult& command);
  static Answer Refuse(Pending pending, Status why);
  void DropWaiting(const char* why, std::vector<Answer>* answers);
  // Without a lock.
  static void Send(std::vector<Answer> answers) {
    for (Answer& answer : answers) answer.done(std::move(answer.outcome));
  }
};

inline AppendOutcome Failure(Status status) {
  AppendOutcome outcome;
  outcome.status = std::move(status);
  return outcome;
}

}  // namespace triad::broker
