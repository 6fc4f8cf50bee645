#include "broker/service/delay_service.h"

#include <glog/logging.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "broker/service/delay_topic.h"
#include "broker/store/delay_levels.h"
#include "common/log_rate_limiter.h"

namespace triad::broker {
namespace {

// Looked at again after so long at the latest: log time may run differently from the timer.
constexpr std::chrono::milliseconds kLookAgain{1000};
constexpr std::chrono::milliseconds kRetry{100};

// What a step found.
struct Due {
  Proposal proposal;
  QueueOffset next;                // behind the last unit that is dealt with
  std::chrono::milliseconds wait;  // until the first one that is not due; < 0: the queue is empty
  Status status;
};

}  // namespace

struct DelayService::Shared : std::enable_shared_from_this<DelayService::Shared> {
  // One level. `busy`: a step is on its way; `again`: something arrived meanwhile.
  struct Level {
    bool busy = false;
    bool again = false;
    TimerQueue::Id timer = 0;
  };

  Shared(const Clock& the_clock, TimerQueue& the_timers, MessageStore& the_store)
      : clock(the_clock), timers(the_timers), store(the_store) {}

  void Kick(std::size_t index, std::uint64_t generation);
  void Step(std::size_t index, std::uint64_t generation);
  Due Collect(std::size_t index);
  bool Take(const QueueUnit& unit, std::size_t* bytes, Due* due);
  void Submit(std::size_t index, std::uint64_t generation, Due due);
  void EndStep(std::size_t index, std::uint64_t generation, std::chrono::milliseconds wait);
  void Note(std::string_view what, const std::string& why);

  const Clock& clock;
  TimerQueue& timers;
  MessageStore& store;

  std::mutex mutex;              // a leaf
  std::uint64_t generation = 0;  // of the present leadership; steps of an older one end in silence
  Term term;                     // 0: not leading
  std::vector<Level> levels;
  std::atomic<bool> leading{false};
};

DelayService::DelayService(const Clock& clock, TimerQueue& timers, MessageStore& store)
    : shared_(std::make_shared<Shared>(clock, timers, store)) {}

DelayService::~DelayService() {
  Stop();
}

void DelayService::OnLeaderTerm(Term term) {
  std::size_t count = 0;
  std::uint64_t generation = 0;
  {
    const std::lock_guard hold(shared_->mutex);
    if (term == shared_->term) return;
    shared_->term = term;
    generation = ++shared_->generation;
    // The table is bounded; a level that nobody uses costs one look.
    if (term != Term(0)) count = kDelayLevelsMax;
    shared_->levels.assign(count, Shared::Level());
    shared_->leading = term != Term(0);
  }
  for (std::size_t i = 0; i < count; ++i) shared_->Kick(i, generation);
}

void DelayService::OnArrival(const TopicQueue& queue) {
  if (!shared_->leading.load(std::memory_order_relaxed)) return;
  if (queue.topic.value() != kScheduleTopic || queue.queue_id.value() < 0) return;
  const auto index = static_cast<std::size_t>(queue.queue_id.value());  // Kick knows the bound
  std::uint64_t generation = 0;
  {
    const std::lock_guard hold(shared_->mutex);
    if (shared_->term == Term(0)) return;
    generation = shared_->generation;
  }
  shared_->Kick(index, generation);
}

void DelayService::Stop() {
  const std::lock_guard hold(shared_->mutex);
  ++shared_->generation;
  shared_->term = Term(0);
  shared_->levels.clear();
  shared_->leading = false;
}

// Begins a step of the level, unless one is on its way.
void DelayService::Shared::Kick(std::size_t index, std::uint64_t of) {
  {
    const std::lock_guard hold(mutex);
    if (of != generation || index >= levels.size()) return;
    Level& level = levels[index];
    level.again = level.busy;
    if (level.busy) return;
    level.busy = true;
  }
  const bool taken =
      store.node().PostReader([self = shared_from_this(), index, of] { self->Step(index, of); });
  if (!taken) EndStep(index, of, kRetry);
}

void DelayService::Shared::Step(std::size_t index, std::uint64_t of) {
  {
    const std::lock_guard hold(mutex);
    if (of != generation) return;
  }
  Due due = Collect(index);
  if (!due.status.ok()) {
    Note("a delayed message cannot be read", due.status.ToString());
    EndStep(index, of, kLookAgain);
    return;
  }
  if (due.proposal.command.empty()) {
    EndStep(index, of, due.wait);
    return;
  }
  Submit(index, of, std::move(due));
}

// What is due in the level, from its progress on.
Due DelayService::Shared::Collect(std::size_t index) {
  const auto level = static_cast<std::int32_t>(index) + 1;
  const TopicQueue queue{Topic(std::string(kScheduleTopic)),
                         QueueId(static_cast<std::int32_t>(index))};
  const QueueRange range = store.RangeOf(queue);
  const QueueOffset progress = std::max(store.state().DelayProgress(level), range.min);
  Due due;
  due.next = progress;
  due.wait = std::chrono::milliseconds(-1);
  if (progress >= range.max) return due;
  auto units = store.queues().Read(queue, progress, kStepMessages);
  if (!units.ok()) {
    due.status = units.status();
    return due;
  }
  const std::int64_t now_ms = store.node().LogTimeMs();
  std::size_t bytes = 0;
  for (const QueueUnit& unit : *units) {
    due.wait = std::chrono::milliseconds(std::max<std::int64_t>(unit.tag_code - now_ms, 0));
    if (unit.tag_code > now_ms || !Take(unit, &bytes, &due)) break;
    ++due.next;
  }
  if (due.next > progress) {
    due.status = Status::Ok();  // what could be read goes first
    due.proposal.command.delays.emplace_back(level, due.next);
  }
  return due;
}

// Adds the unit's message to the step. False: it has to wait for the next one.
bool DelayService::Shared::Take(const QueueUnit& unit, std::size_t* bytes, Due* due) {
  const auto loaded = store.ReadMessage(unit);
  if (!loaded.ok()) {
    if (loaded.status().code() == StatusCode::kNotFound) return true;  // retention was faster
    due->status = loaded.status();
    return false;
  }
  const auto message = ParseMessage(loaded->record, false);
  if (!message.ok()) {
    due->status = message.status();
    return false;
  }
  auto draft = Unpark(*message);
  if (!draft.ok()) {
    Note("a delayed message is dropped", draft.status().ToString());
    return true;
  }
  if (!store.state().FindTopic(draft->topic)) {
    Note("a delayed message is dropped", "topic " + draft->topic.value() + " was deleted");
    return true;
  }
  if (*bytes > 0 && *bytes + loaded->record.size() > kStepBytes) return false;
  *bytes += loaded->record.size();
  due->proposal.messages.push_back(std::move(draft).value());
  return true;
}

void DelayService::Shared::Submit(std::size_t index, std::uint64_t of, Due due) {
  // No deadline: a second proposal while the fate of the first is open would deliver twice.
  due.proposal.deadline = TimePoint::max();
  {
    const std::lock_guard hold(mutex);
    if (of != generation) return;
    due.proposal.only_in = term;  // the progress that it was collected from is that term's
  }
  due.proposal.done = [self = shared_from_this(), index, of](const AppendOutcome& outcome) {
    if (outcome.status.ok()) {
      self->EndStep(index, of, std::chrono::milliseconds(0));
      return;
    }
    if (outcome.status.code() != StatusCode::kNotLeader) {
      self->Note("a step of the delay service failed", outcome.status.ToString());
    }
    self->EndStep(index, of, kRetry);
  };
  store.appender().Submit(std::move(due.proposal));
}

// The next step begins in `wait`; < 0: when something arrives.
void DelayService::Shared::EndStep(std::size_t index, std::uint64_t of,
                                   std::chrono::milliseconds wait) {
  TimerQueue::Id old_timer = 0;
  {
    const std::lock_guard hold(mutex);
    if (of != generation || index >= levels.size()) return;
    Level& level = levels[index];
    level.busy = false;
    if (std::exchange(level.again, false)) wait = std::chrono::milliseconds(0);
    old_timer = std::exchange(level.timer, 0);
  }
  if (old_timer != 0) timers.Cancel(old_timer);
  if (wait.count() < 0) return;
  if (wait.count() == 0) {
    Kick(index, of);
    return;
  }
  const TimerQueue::Id timer =
      timers.Schedule(std::min(wait, kLookAgain), [weak = weak_from_this(), index, of] {
        if (const auto self = weak.lock()) self->Kick(index, of);
      });
  if (timer == 0) Note("no timer for a delay level", "it waits for the next arrival");
  const std::lock_guard hold(mutex);
  if (of == generation && index < levels.size()) levels[index].timer = timer;
}

void DelayService::Shared::Note(std::string_view what, const std::string& why) {
  static LogRateLimiter limiter{std::chrono::seconds(5)};
  if (const auto suppressed = limiter.Allow(clock.MonoNow())) {
    LOG(WARNING) << what << ": " << why << SuppressedNote(*suppressed);
  }
}

}  // namespace triad::broker
