#include "broker/store/appender.h"

#include <algorithm>

#include "broker/store/appender_parts.h"
#include "common/mutant.h"

namespace triad::broker {
namespace {

// Of this thread: between BeginGather and EndGather, and the submits since the last wake.
thread_local bool is_gathering = false;
thread_local std::size_t gathered = 0;

// Only what StateCommand says may be concatenated shares an entry's command.
bool IsExclusive(const StateCommand& command) {
  return !command.put_topics.empty() || !command.delete_topics.empty() ||
         !command.put_groups.empty() || !command.delete_groups.empty() ||
         !command.set_delay_levels.empty();
}

// The slice of an entry's result that belongs to one proposal.
template <typename T>
std::vector<T> Slice(const std::vector<T>& all, std::size_t* at, std::size_t count) {
  CHECK_LE(*at + count, all.size());
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(*at);
  *at += count;
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

}  // namespace

Result<Appender::Shared::Pending> Appender::Shared::Encode(Proposal proposal,
                                                           const HostPort& store_host) {
  CHECK(proposal.done != nullptr);
  CHECK(proposal.dedup.keys.empty() || proposal.dedup.keys.size() == proposal.messages.size());
  CHECK(proposal.dedup.keys.empty() || proposal.command.empty());
  Pending pending;
  pending.dedup = std::move(proposal.dedup);
  pending.command = EncodeStateCommand(proposal.command);
  pending.exclusive = IsExclusive(proposal.command);
  pending.offset_count = proposal.command.offsets.size();
  pending.lock_count = proposal.command.locks.size();
  pending.delete_topics = std::move(proposal.command.delete_topics);
  for (TopicConfig& topic : proposal.command.put_topics) {
    pending.put_topics.push_back(std::move(topic.name));
  }
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
  for (const MessageDraft& draft : proposal.messages) {
    const std::size_t begin = pending.records.size();
    EncodeMessage(draft, open_place, &pending.records);
    pending.slots.push_back(
        {static_cast<std::uint32_t>(pending.records.size() - begin), draft.queue_id});
  }
  return pending;
}

Appender::Appender(AppenderOptions options, const Clock& clock)
    : shared_(std::make_unique<Shared>(std::move(options), clock)) {
  CHECK_GT(shared_->max_waiting, 0u);
  CHECK_GT(shared_->options.max_entry_bytes, 0u);
}

Appender::~Appender() = default;

void Appender::set_wake(std::function<void()> wake, std::function<void()> wake_now) {
  shared_->wake = std::move(wake);
  shared_->wake_now = wake_now ? std::move(wake_now) : shared_->wake;
}

void Appender::set_state(const ReplicatedState* state) {
  shared_->keys.set_state(state);
}

// ---- any thread ---------------------------------------------------------------------------------

void Appender::Submit(Proposal proposal) {
  Shared::Done done = std::move(proposal.done);
  proposal.done = [](AppendOutcome) {};
  Result<Shared::Pending> pending =
      Shared::Encode(std::move(proposal), shared_->options.store_host);
  if (!pending.ok()) return done(Failure(pending.status()));
  pending->done = std::move(done);
  Status taken = shared_->Take(&pending.value());
  if (!taken.ok()) return pending->done(Failure(std::move(taken)));
  NoteSubmitted(1);
}

void Appender::Submit(RecordBatch batch) {
  CHECK(batch.done != nullptr);
  Shared::Pending pending;
  pending.records = std::move(batch.records);
  pending.slots = std::move(batch.slots);
  pending.deadline = batch.deadline;
  pending.returns_records = true;
  pending.requests = pending.slots.size();
  pending.done = std::move(batch.done);
  const std::size_t requests = pending.requests;
  Status taken = shared_->Take(&pending);
  if (!taken.ok()) {
    Shared::Answer refusal = Shared::Refuse(std::move(pending), std::move(taken));
    return refusal.done(std::move(refusal.outcome));
  }
  NoteSubmitted(requests);
}

void Appender::NoteSubmitted(std::size_t requests) {
  gathered += requests;
  if (!is_gathering || gathered >= kGatherMax) WakeForGathered();
}

void Appender::BeginGather() {
  is_gathering = true;
}

void Appender::EndGather() {
  is_gathering = false;
  if (std::exchange(gathered, 0) > 0 && shared_->wake_now) shared_->wake_now();
}

void Appender::SetWaitingMax(std::size_t requests) {
  CHECK_GT(requests, 0u);
  const std::lock_guard hold(shared_->mutex);
  shared_->max_waiting = requests;
}

void Appender::WakeForGathered() {
  gathered = 0;
  if (shared_->wake) shared_->wake();
}

Status Appender::Shared::Take(Pending* pending) {
  const std::size_t bytes = pending->bytes();
  const std::lock_guard hold(mutex);
  if (!open) return Status::NotLeader("no term is open for writing here");
  if (pending->only_in != Term{} && pending->only_in != open_term) {
    return Status::NotLeader("the term it was made for is over");
  }
  if (waiting_requests + unanswered >= max_waiting) {
    return Status::Busy("append queue: " + std::to_string(max_waiting) + " are waiting");
  }
  if (waiting_bytes + bytes > options.max_waiting_bytes) {
    return Status::Busy("append queue: " + std::to_string(waiting_bytes) + " bytes are waiting");
  }
  waiting_bytes += bytes;
  waiting_requests += pending->requests;
  earliest_deadline = std::min(earliest_deadline, pending->deadline);
  waiting.push_back(std::move(*pending));
  return Status::Ok();
}

std::size_t Appender::waiting() const {
  const std::lock_guard hold(shared_->mutex);
  return shared_->waiting_requests + shared_->unanswered;
}

// ---- log thread ---------------------------------------------------------------------------------

void Appender::OpenTerm(Term term, std::vector<std::pair<TopicQueue, QueueOffset>> next_offsets) {
  CHECK_GT(term, shared_->term);
  shared_->term = term;
  if (!TRIAD_MUTANT(24)) shared_->tail.clear();
  shared_->tail.reserve(next_offsets.size());
  for (auto& [queue, next] : next_offsets) {
    if (TRIAD_MUTANT(24) && shared_->tail.contains(queue)) continue;
    shared_->tail[std::move(queue)] = next;
  }
  shared_->deleted.clear();
  shared_->keys.Clear();  // whatever was in an earlier term's tail is applied, or never will be
  const std::lock_guard hold(shared_->mutex);
  CHECK(!shared_->open);
  CHECK(shared_->waiting.empty());
  shared_->open = true;
  shared_->open_term = term;
}

void Appender::CloseTerm() {
  std::vector<Shared::Answer> answers;
  {
    const std::lock_guard hold(shared_->mutex);
    shared_->open = false;
    shared_->DropWaiting("leadership was lost before it was appended", &answers);
  }
  Shared::Send(std::move(answers));
}

// Of one that is certainly not in the log.
Appender::Shared::Answer Appender::Shared::Refuse(Pending pending, Status why) {
  Answer answer{std::move(pending.done), Failure(std::move(why))};
  if (pending.returns_records) answer.outcome.records = std::move(pending.records);
  return answer;
}

void Appender::Shared::DropWaiting(const char* why, std::vector<Answer>* answers) {
  for (Pending& pending : waiting) {
    answers->push_back(Refuse(std::move(pending), Status::NotLeader(why)));
  }
  waiting.clear();
  waiting_bytes = 0;
  waiting_requests = 0;
}

// ---- apply thread -------------------------------------------------------------------------------

void Appender::OnApplied(LogIndex index, Term term, const ReplicatedState::CommandResult& command) {
  shared_->applied.store(index.value(), std::memory_order_release);
  Shared::Send(shared_->TakeFates(index, term, command));
}

// An entry with this term is committed here, so none of a smaller term can follow it: every flight
// of a smaller term that has not been applied never will be.
std::vector<Appender::Shared::Answer> Appender::Shared::TakeFates(
    LogIndex index, Term applied_term, const ReplicatedState::CommandResult& command) {
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
    answers.reserve(answers.size() + flight.waiters.size());
    for (Waiter& waiter : flight.waiters) {
      AppendOutcome outcome;
      outcome.term = flight.term;
      if (committed) {
        outcome.command.offsets = Slice(command.offsets, &offsets_at, waiter.offset_count);
        outcome.command.locks_accepted =
            Slice(command.locks_accepted, &locks_at, waiter.lock_count);
        // Only an exclusive proposal changes topics, and it is alone with its command.
        if (flight.waiters.size() == 1) outcome.command.topics_changed = command.topics_changed;
        outcome.messages = std::move(waiter.messages);
      } else {
        outcome.status = Status::NotLeader("another leader's entry took its place in the log");
        outcome.records = std::move(waiter.records);
      }
      if (waiter.done == nullptr) continue;
      unanswered -= waiter.requests;
      answers.push_back({std::move(waiter.done), std::move(outcome)});
    }
  }
  return answers;
}

void Appender::OnSkipped(LogIndex upto) {
  shared_->applied.store(upto.value(), std::memory_order_release);
  std::vector<Shared::Answer> answers;
  {
    const std::lock_guard hold(shared_->mutex);
    // Indexes do not ascend here: a leader that was elected again may have built at an old one.
    for (Shared::Flight& flight : shared_->flights) {
      if (flight.index > upto) continue;
      for (Shared::Waiter& waiter : flight.waiters) {
        if (waiter.done == nullptr) continue;
        shared_->unanswered -= waiter.requests;
        AppendOutcome outcome = Failure(Status::TimedOut("this peer took over another's state"));
        outcome.term = flight.term;
        answers.push_back({std::move(waiter.done), std::move(outcome)});
      }
    }
    std::erase_if(shared_->flights,
                  [upto](const Shared::Flight& flight) { return flight.index <= upto; });
  }
  Shared::Send(std::move(answers));
}

void Appender::ExpireWaiters() {
  std::vector<Shared::Answer> answers;
  {
    const TimePoint now = shared_->clock.MonoNow();
    const std::lock_guard hold(shared_->mutex);
    if (now < shared_->earliest_deadline) return;
    TimePoint earliest = TimePoint::max();
    std::deque<Shared::Pending> kept;
    for (Shared::Pending& pending : shared_->waiting) {
      if (pending.deadline > now) {
        earliest = std::min(earliest, pending.deadline);
        kept.push_back(std::move(pending));
        continue;
      }
      shared_->waiting_bytes -= pending.bytes();
      shared_->waiting_requests -= pending.requests;
      answers.push_back(Shared::Refuse(
          std::move(pending), Status::Unavailable("its deadline passed before it was appended")));
    }
    shared_->waiting = std::move(kept);
    for (Shared::Flight& flight : shared_->flights) {
      for (Shared::Waiter& waiter : flight.waiters) {
        if (waiter.done == nullptr) continue;
        if (waiter.deadline > now) {
          earliest = std::min(earliest, waiter.deadline);
          continue;
        }
        shared_->unanswered -= waiter.requests;
        AppendOutcome outcome = Failure(Status::TimedOut("appended, but not committed in time"));
        outcome.term = flight.term;
        answers.push_back({std::exchange(waiter.done, nullptr), std::move(outcome)});
      }
    }
    shared_->earliest_deadline = earliest;
  }
  Shared::Send(std::move(answers));
}

void Appender::Abandon() {
  std::vector<Shared::Answer> answers;
  {
    const std::lock_guard hold(shared_->mutex);
    shared_->open = false;
    shared_->DropWaiting("this peer is shutting down", &answers);
    for (Shared::Flight& flight : shared_->flights) {
      for (Shared::Waiter& waiter : flight.waiters) {
        if (waiter.done == nullptr) continue;
        answers.push_back({std::move(waiter.done),
                           Failure(Status::TimedOut("shut down before it was committed"))});
      }
    }
    shared_->flights.clear();
    shared_->unanswered = 0;
  }
  Shared::Send(std::move(answers));
}

}  // namespace triad::broker
