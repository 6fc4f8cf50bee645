#include "broker/store/appender.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <utility>

#include "broker/store/queue_map.h"
#include "common/byte_order.h"

namespace triad::broker {
namespace {

using Done = std::function<void(AppendOutcome)>;

// A proposal as it waits: encoded by its submitter, places still open.
struct Pending {
  struct Slot {  // one message in `records`
    std::size_t bytes = 0;
    TopicQueue queue;
  };
  std::string command;
  std::string records;
  std::vector<Slot> slots;
  std::vector<Topic> delete_topics;
  std::size_t offset_count = 0;
  std::size_t lock_count = 0;
  bool exclusive = false;  // its command may not be merged with another one
  TimePoint deadline;
  Term only_in;  // 0: any
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

AppendOutcome Failure(Status status) {
  AppendOutcome outcome;
  outcome.status = std::move(status);
  return outcome;
}

void Send(std::vector<Answer> answers) {
  for (Answer& answer : answers) answer.done(std::move(answer.outcome));
}

std::size_t PadTo8(std::size_t bytes) {
  return (bytes + 7) & ~std::size_t{7};
}

std::size_t PayloadBytes(std::size_t command_bytes, std::size_t record_bytes) {
  return PadTo8(4 + command_bytes) + PadTo8(record_bytes);
}

// Only offsets, locks, delays and send-backs may share an entry's command: see StateCommand.
bool IsExclusive(const StateCommand& command) {
  return !command.put_topics.empty() || !command.delete_topics.empty() ||
         !command.put_groups.empty() || !command.delete_groups.empty() ||
         !command.set_delay_levels.empty();
}

Result<Pending> Encode(Proposal proposal, const HostPort& store_host) {
  CHECK(proposal.done != nullptr);
  Pending pending;
  pending.command = EncodeStateCommand(proposal.command);
  pending.exclusive = IsExclusive(proposal.command);
  pending.offset_count = proposal.command.offsets.size();
  pending.lock_count = proposal.command.locks.size();
  pending.delete_topics = std::move(proposal.command.delete_topics);
  pending.deadline = proposal.deadline;
  pending.only_in = proposal.only_in;
  std::size_t record_bytes = 0;
  for (const MessageDraft& draft : proposal.messages) {
    TRIAD_RETURN_IF_ERROR(CheckEncodable(draft));
    record_bytes += EncodedMessageBytes(draft, store_host);
  }
  pending.records.reserve(record_bytes);
  pending.slots.reserve(proposal.messages.size());
  StoredPlace open_place;
  open_place.store_host = store_host;
  for (MessageDraft& draft : proposal.messages) {
    const std::size_t begin = pending.records.size();
    EncodeMessage(draft, open_place, &pending.records);
    pending.slots.push_back(
        {pending.records.size() - begin, {std::move(draft.topic), draft.queue_id}});
  }
  return pending;
}

// The slice of an entry's result that belongs to one proposal.
std::vector<bool> Slice(const std::vector<bool>& all, std::size_t* at, std::size_t count) {
  CHECK_LE(*at + count, all.size());
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(*at);
  *at += count;
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

}  // namespace

struct Appender::Shared {
  Shared(AppenderOptions appender_options, const Clock& the_clock)
      : options(std::move(appender_options)), clock(the_clock) {}

  const AppenderOptions options;
  const Clock& clock;
  std::function<void()> wake;

  std::mutex mutex;  // a leaf: never held while `done` or `wake` runs
  bool open = false;
  Term open_term;  // the last one that was opened
  std::deque<Pending> waiting;
  std::size_t waiting_bytes = 0;
  std::deque<Flight> flights;                      // by term, then index: as they were built
  std::size_t unanswered = 0;                      // picked or in `flights`, without an answer
  TimePoint earliest_deadline = TimePoint::max();  // a lower bound for all that is unanswered

  // Log thread only.
  Term term;
  QueueMap<QueueOffset> tail;  // next queue offsets behind the last entry built

  Status Take(Pending* pending);
  dledger::BuildResult Pick(const dledger::BuildContext& context, std::vector<Pending>* picked,
                            std::vector<Answer>* refused);
  Flight Assemble(const dledger::BuildContext& context, std::vector<Pending> picked,
                  std::string* payload);
  std::vector<AppendedMessage> Place(const dledger::BuildContext& context, const Pending& pending,
                                     std::string* payload);
  std::vector<Answer> TakeFates(LogIndex index, Term applied_term,
                                const ReplicatedState::CommandResult& command);
  void DropWaiting(const char* why, std::vector<Answer>* answers);
};

Appender::Appender(AppenderOptions options, const Clock& clock)
    : shared_(std::make_unique<Shared>(std::move(options), clock)) {
  CHECK_GT(shared_->options.max_waiting, 0u);
  CHECK_GT(shared_->options.max_entry_bytes, 0u);
}

Appender::~Appender() = default;

void Appender::set_wake(std::function<void()> wake) {
  shared_->wake = std::move(wake);
}

// ---- any thread ---------------------------------------------------------------------------------

void Appender::Submit(Proposal proposal) {
  Done done = std::move(proposal.done);
  proposal.done = [](AppendOutcome) {};
  Result<Pending> pending = Encode(std::move(proposal), shared_->options.store_host);
  if (!pending.ok()) return done(Failure(pending.status()));
  pending->done = std::move(done);
  Status taken = shared_->Take(&pending.value());
  if (!taken.ok()) return pending->done(Failure(std::move(taken)));
  if (shared_->wake) shared_->wake();
}

Status Appender::Shared::Take(Pending* pending) {
  const std::size_t bytes = pending->bytes();
  const std::lock_guard hold(mutex);
  if (!open) return Status::NotLeader("no term is open for writing here");
  if (pending->only_in != Term{} && pending->only_in != open_term) {
    return Status::NotLeader("the term it was made for is over");
  }
  if (waiting.size() + unanswered >= options.max_waiting) {
    return Status::Busy("append queue: " + std::to_string(options.max_waiting) + " are waiting");
  }
  if (waiting_bytes + bytes > options.max_waiting_bytes) {
    return Status::Busy("append queue: " + std::to_string(waiting_bytes) + " bytes are waiting");
  }
  waiting_bytes += bytes;
  earliest_deadline = std::min(earliest_deadline, pending->deadline);
  waiting.push_back(std::move(*pending));
  return Status::Ok();
}

std::size_t Appender::waiting() const {
  const std::lock_guard hold(shared_->mutex);
  return shared_->waiting.size() + shared_->unanswered;
}

// ---- log thread ---------------------------------------------------------------------------------

void Appender::OpenTerm(Term term, std::vector<std::pair<TopicQueue, QueueOffset>> next_offsets) {
  CHECK_GT(term, shared_->term);
  shared_->term = term;
  shared_->tail.clear();
  shared_->tail.reserve(next_offsets.size());
  for (auto& [queue, next] : next_offsets) shared_->tail[std::move(queue)] = next;
  const std::lock_guard hold(shared_->mutex);
  CHECK(!shared_->open);
  CHECK(shared_->waiting.empty());
  shared_->open = true;
  shared_->open_term = term;
}

void Appender::CloseTerm() {
  std::vector<Answer> answers;
  {
    const std::lock_guard hold(shared_->mutex);
    shared_->open = false;
    shared_->DropWaiting("leadership was lost before it was appended", &answers);
  }
  Send(std::move(answers));
}

void Appender::Shared::DropWaiting(const char* why, std::vector<Answer>* answers) {
  for (Pending& pending : waiting) {
    answers->push_back({std::move(pending.done), Failure(Status::NotLeader(why))});
  }
  waiting.clear();
  waiting_bytes = 0;
}

dledger::BuildResult Appender::Build(const dledger::BuildContext& context, std::string* payload) {
  CHECK(payload->empty());
  std::vector<Pending> picked;
  std::vector<Answer> refused;
  const dledger::BuildResult result = shared_->Pick(context, &picked, &refused);
  Send(std::move(refused));
  if (result != dledger::BuildResult::kBuilt) return result;
  Flight flight = shared_->Assemble(context, std::move(picked), payload);
  const std::lock_guard hold(shared_->mutex);
  if (!shared_->flights.empty()) {
    const Flight& last = shared_->flights.back();
    CHECK(last.term < flight.term || (last.term == flight.term && last.index < flight.index));
  }
  for (const Waiter& waiter : flight.waiters) {
    shared_->earliest_deadline = std::min(shared_->earliest_deadline, waiter.deadline);
  }
  shared_->flights.push_back(std::move(flight));
  return result;
}

// Takes off the queue what the next entry holds: in order, as much as there is room for.
dledger::BuildResult Appender::Shared::Pick(const dledger::BuildContext& context,
                                            std::vector<Pending>* picked,
                                            std::vector<Answer>* refused) {
  const std::lock_guard hold(mutex);
  if (!open || waiting.empty()) return dledger::BuildResult::kNothing;
  CHECK_EQ(context.term, term);
  const TimePoint now = clock.MonoNow();
  std::size_t command_bytes = 0;
  std::size_t record_bytes = 0;
  const auto pop = [&] {
    Pending first = std::move(waiting.front());
    waiting.pop_front();
    waiting_bytes -= first.bytes();
    return first;
  };
  while (!waiting.empty()) {
    const Pending& next = waiting.front();
    if (next.deadline <= now) {
      refused->push_back(
          {pop().done, Failure(Status::Unavailable("its deadline passed before it was appended"))});
      continue;
    }
    if (!picked->empty() && (next.exclusive || picked->front().exclusive)) break;
    const std::size_t bytes =
        PayloadBytes(command_bytes + next.command.size(), record_bytes + next.records.size());
    // One proposal may exceed the usual size of an entry, and then goes alone.
    const std::size_t limit = picked->empty()
                                  ? context.room_bytes
                                  : std::min(context.room_bytes, options.max_entry_bytes);
    if (bytes <= limit) {
      command_bytes += next.command.size();
      record_bytes += next.records.size();
      picked->push_back(pop());
      continue;
    }
    if (!picked->empty()) break;
    if (!context.at_segment_start) return dledger::BuildResult::kDoesNotFit;
    refused->push_back({pop().done, Failure(Status::InvalidArgument(
                                        std::to_string(bytes) + " bytes exceed an entry's " +
                                        std::to_string(context.room_bytes)))});
  }
  unanswered += picked->size();
  return picked->empty() ? dledger::BuildResult::kNothing : dledger::BuildResult::kBuilt;
}

Flight Appender::Shared::Assemble(const dledger::BuildContext& context, std::vector<Pending> picked,
                                  std::string* payload) {
  std::size_t command_bytes = 0;
  std::size_t record_bytes = 0;
  for (const Pending& pending : picked) {
    command_bytes += pending.command.size();
    record_bytes += pending.records.size();
    for (const Topic& topic : pending.delete_topics) {  // its queues begin again at 0
      std::erase_if(tail, [&](const auto& queue) { return queue.first.topic == topic; });
    }
  }
  payload->reserve(PayloadBytes(command_bytes, record_bytes));
  AppendBe32(payload, static_cast<std::uint32_t>(command_bytes));
  for (const Pending& pending : picked) payload->append(pending.command);
  payload->resize(PadTo8(payload->size()));

  Flight flight{.index = context.index, .term = context.term, .waiters = {}};
  flight.waiters.reserve(picked.size());
  for (Pending& pending : picked) {
    flight.waiters.push_back({.done = std::move(pending.done),
                              .deadline = pending.deadline,
                              .messages = Place(context, pending, payload),
                              .offset_count = pending.offset_count,
                              .lock_count = pending.lock_count});
  }
  payload->resize(PadTo8(payload->size()));
  CHECK_EQ(payload->size(), PayloadBytes(command_bytes, record_bytes));
  return flight;
}

// Appends the proposal's records and gives each its final place.
std::vector<AppendedMessage> Appender::Shared::Place(const dledger::BuildContext& context,
                                                     const Pending& pending, std::string* payload) {
  std::vector<AppendedMessage> messages;
  messages.reserve(pending.slots.size());
  std::size_t at = payload->size();
  payload->append(pending.records);
  for (const Pending::Slot& slot : pending.slots) {
    const QueueRef ref{slot.queue.topic.value(), slot.queue.queue_id};
    auto next = tail.find(ref);
    if (next == tail.end()) next = tail.emplace(slot.queue, QueueOffset{0}).first;
    const AppendedMessage message{
        .queue_offset = next->second,
        .physical_offset = context.payload_position + static_cast<std::int64_t>(at),
        .store_time_ms = context.store_time_ms};
    ++next->second;
    SetPlace(message.queue_offset, message.physical_offset, message.store_time_ms,
             payload->data() + at);
    messages.push_back(message);
    at += slot.bytes;
  }
  CHECK_EQ(at, payload->size());
  return messages;
}

// ---- apply thread -------------------------------------------------------------------------------

void Appender::OnApplied(LogIndex index, Term term, const ReplicatedState::CommandResult& command) {
  Send(shared_->TakeFates(index, term, command));
}

// An entry with this term is committed here, so none of a smaller term can follow it: every flight
// of a smaller term that has not been applied never will be.
std::vector<Answer> Appender::Shared::TakeFates(LogIndex index, Term applied_term,
                                                const ReplicatedState::CommandResult& command) {
  std::vector<Answer> answers;
  const std::lock_guard hold(mutex);
  while (!flights.empty() &&
         (flights.front().term < applied_term ||
          (flights.front().term == applied_term && flights.front().index <= index))) {
    Flight flight = std::move(flights.front());
    flights.pop_front();
    const bool committed = flight.term == applied_term;
    if (committed) CHECK_EQ(flight.index, index) << "an entry was applied without its waiters";
    std::size_t offsets_at = 0;
    std::size_t locks_at = 0;
    for (Waiter& waiter : flight.waiters) {
      AppendOutcome outcome;
      outcome.term = flight.term;
      if (committed) {
        outcome.command.offsets_accepted =
            Slice(command.offsets_accepted, &offsets_at, waiter.offset_count);
        outcome.command.locks_accepted =
            Slice(command.locks_accepted, &locks_at, waiter.lock_count);
        // Only an exclusive proposal changes topics, and it is alone with its command.
        if (flight.waiters.size() == 1) outcome.command.topics_changed = command.topics_changed;
        outcome.messages = std::move(waiter.messages);
      } else {
        outcome.status = Status::NotLeader("another leader's entry took its place in the log");
      }
      if (waiter.done == nullptr) continue;
      --unanswered;
      answers.push_back({std::move(waiter.done), std::move(outcome)});
    }
  }
  return answers;
}

void Appender::OnSkipped(LogIndex upto) {
  std::vector<Answer> answers;
  {
    const std::lock_guard hold(shared_->mutex);
    // Indexes do not ascend here: a leader that was elected again may have built at an old one.
    for (Flight& flight : shared_->flights) {
      if (flight.index > upto) continue;
      for (Waiter& waiter : flight.waiters) {
        if (waiter.done == nullptr) continue;
        --shared_->unanswered;
        AppendOutcome outcome = Failure(Status::TimedOut("this peer took over another's state"));
        outcome.term = flight.term;
        answers.push_back({std::move(waiter.done), std::move(outcome)});
      }
    }
    std::erase_if(shared_->flights, [upto](const Flight& flight) { return flight.index <= upto; });
  }
  Send(std::move(answers));
}

void Appender::ExpireWaiters() {
  std::vector<Answer> answers;
  {
    const TimePoint now = shared_->clock.MonoNow();
    const std::lock_guard hold(shared_->mutex);
    if (now < shared_->earliest_deadline) return;
    TimePoint earliest = TimePoint::max();
    std::deque<Pending> kept;
    for (Pending& pending : shared_->waiting) {
      if (pending.deadline > now) {
        earliest = std::min(earliest, pending.deadline);
        kept.push_back(std::move(pending));
        continue;
      }
      shared_->waiting_bytes -= pending.bytes();
      answers.push_back(
          {std::move(pending.done),
           Failure(Status::Unavailable("its deadline passed before it was appended"))});
    }
    shared_->waiting = std::move(kept);
    for (Flight& flight : shared_->flights) {
      for (Waiter& waiter : flight.waiters) {
        if (waiter.done == nullptr) continue;
        if (waiter.deadline > now) {
          earliest = std::min(earliest, waiter.deadline);
          continue;
        }
        --shared_->unanswered;
        AppendOutcome outcome = Failure(Status::TimedOut("appended, but not committed in time"));
        outcome.term = flight.term;
        answers.push_back({std::exchange(waiter.done, nullptr), std::move(outcome)});
      }
    }
    shared_->earliest_deadline = earliest;
  }
  Send(std::move(answers));
}

void Appender::Abandon() {
  std::vector<Answer> answers;
  {
    const std::lock_guard hold(shared_->mutex);
    shared_->open = false;
    shared_->DropWaiting("this peer is shutting down", &answers);
    for (Flight& flight : shared_->flights) {
      for (Waiter& waiter : flight.waiters) {
        if (waiter.done == nullptr) continue;
        answers.push_back({std::move(waiter.done),
                           Failure(Status::TimedOut("shut down before it was committed"))});
      }
    }
    shared_->flights.clear();
    shared_->unanswered = 0;
  }
  Send(std::move(answers));
}

}  // namespace triad::broker
