#include "broker/service/offset_service.h"

#include <glog/logging.h>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

namespace triad::broker {
namespace {

// Keeps an entry well below its 1 MiB.
constexpr std::size_t kCommitsPerCommand = 2000;
// How long a gathered command may wait for the log; its senders' budgets are of this size.
constexpr std::chrono::milliseconds kCommandBudget{2500};

using Done = std::function<void(Status)>;

std::chrono::milliseconds Until(TimePoint deadline, TimePoint now) {
  return std::max(std::chrono::ceil<std::chrono::milliseconds>(deadline - now),
                  std::chrono::milliseconds(1));
}

}  // namespace

struct OffsetService::Shared : std::enable_shared_from_this<Shared> {
  Shared(Options o, const Clock& c, TimerQueue& t, Appender& a, const ReplicatedState& s,
         LeaderReads& r)
      : options(o), clock(c), timers(t), appender(a), state(s), reads(r) {}

  struct Pending {
    OffsetCommit commit;
    std::vector<Done> waiters;
  };
  using Table = std::map<GroupQueue, Pending>;
  // A command on its way into the log.
  struct Batch {
    std::vector<std::vector<Done>> waiters;  // one list per commit of the command
    std::vector<Done> after;                 // called once its outcome is known
  };
  using BatchPtr = std::shared_ptr<Batch>;

  void FlushAll();
  void ProposeAll(Table table, Done after);
  void Propose(StateCommand command, const BatchPtr& batch);
  void OnOutcome(const BatchPtr& batch, const AppendOutcome& outcome);

  const Options options;
  const Clock& clock;
  TimerQueue& timers;
  Appender& appender;
  const ReplicatedState& state;
  LeaderReads& reads;

  std::mutex mutex;
  std::map<GroupName, Table> pending;
  std::size_t pending_count = 0;  // waiters in `pending`
  bool timer_armed = false;
  std::deque<BatchPtr> in_flight;  // oldest first
};

void OffsetService::Shared::FlushAll() {
  Table all;
  {
    const std::lock_guard lock(mutex);
    timer_armed = false;
    for (auto& [group, table] : pending) all.merge(table);
    pending.clear();
    pending_count = 0;
  }
  if (!all.empty()) ProposeAll(std::move(all), nullptr);
}

void OffsetService::Shared::ProposeAll(Table table, Done after) {
  StateCommand command;
  auto batch = std::make_shared<Batch>();
  std::size_t left = table.size();
  for (auto& [key, entry] : table) {
    command.offsets.push_back(std::move(entry.commit));
    batch->waiters.push_back(std::move(entry.waiters));
    --left;
    if (left > 0 && command.offsets.size() < kCommitsPerCommand) continue;
    if (left == 0 && after) batch->after.push_back(std::move(after));
    Propose(std::move(command), batch);
    command = StateCommand();
    batch = std::make_shared<Batch>();
  }
}

void OffsetService::Shared::Propose(StateCommand command, const BatchPtr& batch) {
  {
    const std::lock_guard lock(mutex);
    in_flight.push_back(batch);
  }
  Proposal proposal;
  proposal.command = std::move(command);
  proposal.deadline = clock.MonoNow() + kCommandBudget;
  proposal.done = [self = shared_from_this(), batch](const AppendOutcome& outcome) {
    self->OnOutcome(batch, outcome);
  };
  appender.Submit(std::move(proposal));
}

void OffsetService::Shared::OnOutcome(const BatchPtr& batch, const AppendOutcome& outcome) {
  std::vector<Done> after;
  {
    const std::lock_guard lock(mutex);
    std::erase(in_flight, batch);
    after.swap(batch->after);
  }
  for (std::size_t i = 0; i < batch->waiters.size(); ++i) {
    Status status = outcome.status;
    const auto& accepted = outcome.command.offsets_accepted;
    if (status.ok() && i < accepted.size() && !accepted[i]) {
      status = Status::PermissionDenied("the queue is locked by another consumer since");
    }
    for (const Done& done : batch->waiters[i]) done(status);
  }
  for (const Done& done : after) done(outcome.status);
}

OffsetService::OffsetService(Options options, const Clock& clock, TimerQueue& timers,
                             Appender& appender, const ReplicatedState& state, LeaderReads& reads)
    : shared_(std::make_shared<Shared>(options, clock, timers, appender, state, reads)) {
  CHECK_GT(options.max_pending, 0u);
}

OffsetService::~OffsetService() = default;

void OffsetService::Commit(OffsetCommit commit, TimePoint deadline, Done done) {
  if (shared_->clock.MonoNow() >= deadline) {
    done(Status::Unavailable("the offset commit came too late"));
    return;
  }
  bool arm = false;
  {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->pending_count < shared_->options.max_pending) {
      auto& entry = shared_->pending[commit.key.group][commit.key];
      entry.commit = std::move(commit);
      entry.waiters.push_back(std::move(done));
      done = nullptr;
      ++shared_->pending_count;
      arm = !shared_->timer_armed;
      shared_->timer_armed = true;
    }
  }
  if (done) {
    done(Status::Busy("too many offset commits wait for the log"));
    return;
  }
  if (!arm) return;
  const auto shared = shared_;
  if (shared->timers.Schedule(shared->options.interval, [shared] { shared->FlushAll(); }) == 0) {
    shared->FlushAll();
  }
}

void OffsetService::Flush(const GroupName& group, TimePoint /*deadline*/, Done done) {
  Shared::Table table;
  {
    const std::lock_guard lock(shared_->mutex);
    const auto found = shared_->pending.find(group);
    if (found != shared_->pending.end()) {
      table.swap(found->second);
      shared_->pending.erase(found);
      for (const auto& [key, entry] : table) shared_->pending_count -= entry.waiters.size();
    } else if (!shared_->in_flight.empty()) {
      // Commands reach the log in order: after the last of them the group's own is settled too.
      shared_->in_flight.back()->after.push_back(
          [done = std::move(done)](const Status&) { done(Status::Ok()); });
      return;
    }
  }
  if (table.empty()) {
    done(Status::Ok());
    return;
  }
  shared_->ProposeAll(std::move(table), std::move(done));
}

void OffsetService::Query(const GroupQueue& key, TimePoint deadline,
                          std::function<void(Result<std::optional<QueueOffset>>)> done) {
  const auto shared = shared_;
  auto read = [shared, key, done](const Status& confirmed) {
    if (confirmed.ok()) {
      done(shared->state.FindOffset(key));
    } else {
      done(confirmed);
    }
  };
  Flush(key.group, deadline, [shared, deadline, read, done](const Status& flushed) {
    if (flushed.code() == StatusCode::kNotLeader) {
      done(flushed);
      return;
    }
    // Also after a failed commit: it was not acknowledged, what is stored is what counts.
    shared->reads.Confirm(Until(deadline, shared->clock.MonoNow()), read);
  });
}

std::size_t OffsetService::pending() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->pending_count;
}

}  // namespace triad::broker
