#include "broker/service/offset_service.h"

#include <glog/logging.h>

#include <algorithm>
#include <deque>
#include <iterator>
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
using CommitFate = ReplicatedState::CommitFate;

Status Stale() {
  return Status::PermissionDenied("the queue is locked by another consumer since");
}

Status StatusOf(CommitFate fate) {
  switch (fate) {
    case CommitFate::kStored: return Status::Ok();
    case CommitFate::kStale: return Stale();
    case CommitFate::kNoTopic: return Status::NotFound("the topic was deleted meanwhile");
  }
  return Status::Internal("unknown fate of an offset commit");
}

}  // namespace

struct OffsetService::Shared : std::enable_shared_from_this<Shared> {
  Shared(Options o, const Clock& c, TimerQueue& t, Appender& a, const ReplicatedState& s,
         LeaderReads& r)
      : options(o), clock(c), timers(t), appender(a), state(s), reads(r) {}

  struct Waiter {
    std::uint64_t token = 0;
    Done done;
  };
  struct Pending {
    OffsetCommit commit;
    std::uint64_t token_max = 0;  // of all that were put in
    std::vector<Waiter> waiters;
    // Those of an earlier holder than `token`; they leave.
    std::vector<Waiter> TakeOlder(std::uint64_t token);
  };
  using Table = std::map<GroupQueue, Pending>;
  // A command on its way into the log.
  struct Batch {
    StateCommand command;
    std::vector<std::vector<Waiter>> waiters;  // one list per commit of the command
    std::vector<Done> after;                   // called once its outcome is known
    bool submitting = true;                    // its outcome waits until no lock is held
    std::optional<AppendOutcome> early;        // came while submitting
  };
  using BatchPtr = std::shared_ptr<Batch>;
  using Batches = std::vector<BatchPtr>;

  void FlushAll();
  Batches PutInFlight(Table table);
  void Submit(const Batches& batches);
  void Conclude(const Batches& batches);
  void OnOutcome(const BatchPtr& batch, AppendOutcome outcome);
  void Answer(const BatchPtr& batch, const AppendOutcome& outcome);

  const Options options;
  const Clock& clock;
  TimerQueue& timers;
  Appender& appender;
  const ReplicatedState& state;
  LeaderReads& reads;

  // Held from taking commits out until they are submitted: what is taken out first stands first in
  // `in_flight` and in the log. Before `mutex`; no callback runs under it.
  std::mutex submit_mutex;
  std::mutex mutex;  // a leaf
  std::map<GroupName, Table> pending;
  std::size_t pending_count = 0;  // waiters in `pending`
  bool timer_armed = false;
  std::deque<BatchPtr> in_flight;  // oldest first
};

std::vector<OffsetService::Shared::Waiter> OffsetService::Shared::Pending::TakeOlder(
    std::uint64_t token) {
  if (token <= token_max) return {};
  const auto older = std::stable_partition(
      waiters.begin(), waiters.end(),
      [token](const Waiter& waiter) { return waiter.token == 0 || waiter.token >= token; });
  std::vector<Waiter> taken(std::make_move_iterator(older), std::make_move_iterator(waiters.end()));
  waiters.erase(older, waiters.end());
  return taken;
}

void OffsetService::Shared::FlushAll() {
  Batches batches;
  {
    const std::lock_guard serial(submit_mutex);
    {
      const std::lock_guard lock(mutex);
      timer_armed = false;
      Table all;
      for (auto& [group, table] : pending) all.merge(table);
      pending.clear();
      pending_count = 0;
      batches = PutInFlight(std::move(all));
    }
    Submit(batches);
  }
  Conclude(batches);
}

// Under the lock that `table` was taken out with: it is seen in `pending` or in `in_flight`.
OffsetService::Shared::Batches OffsetService::Shared::PutInFlight(Table table) {
  Batches batches;
  for (auto& [key, entry] : table) {
    if (batches.empty() || batches.back()->waiters.size() == kCommitsPerCommand) {
      batches.push_back(std::make_shared<Batch>());
    }
    batches.back()->command.offsets.push_back(std::move(entry.commit));
    batches.back()->waiters.push_back(std::move(entry.waiters));
  }
  in_flight.insert(in_flight.end(), batches.begin(), batches.end());
  return batches;
}

void OffsetService::Shared::Submit(const Batches& batches) {
  for (const BatchPtr& batch : batches) {
    Proposal proposal;
    proposal.command = std::move(batch->command);
    proposal.deadline = clock.MonoNow() + kCommandBudget;
    proposal.done = [self = shared_from_this(), batch](AppendOutcome outcome) {
      self->OnOutcome(batch, std::move(outcome));
    };
    appender.Submit(std::move(proposal));
  }
}

void OffsetService::Shared::OnOutcome(const BatchPtr& batch, AppendOutcome outcome) {
  {
    const std::lock_guard lock(mutex);
    if (batch->submitting) {
      batch->early = std::move(outcome);
      return;
    }
  }
  Answer(batch, outcome);
}

// Behind Submit, without a lock: answers what has its outcome already.
void OffsetService::Shared::Conclude(const Batches& batches) {
  for (const BatchPtr& batch : batches) {
    std::optional<AppendOutcome> early;
    {
      const std::lock_guard lock(mutex);
      batch->submitting = false;
      early.swap(batch->early);
    }
    if (early) Answer(batch, *early);
  }
}

void OffsetService::Shared::Answer(const BatchPtr& batch, const AppendOutcome& outcome) {
  std::vector<Done> after;
  {
    const std::lock_guard lock(mutex);
    std::erase(in_flight, batch);
    after.swap(batch->after);
  }
  for (std::size_t i = 0; i < batch->waiters.size(); ++i) {
    Status status = outcome.status;
    const auto& fates = outcome.command.offsets;
    if (status.ok() && i < fates.size()) status = StatusOf(fates[i]);
    for (const Waiter& waiter : batch->waiters[i]) waiter.done(status);
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
  // Tokens only grow: one that is stale by what is applied here is stale for good.
  Status refused;
  if (commit.fence_token != 0 && commit.fence_token < shared_->state.LockToken(commit.key)) {
    refused = Stale();
  }
  bool arm = false;
  std::vector<Shared::Waiter> overtaken;
  if (refused.ok()) {
    const std::lock_guard lock(shared_->mutex);
    Shared::Table& table = shared_->pending[commit.key.group];
    const auto present = table.find(commit.key);
    if (shared_->pending_count >= shared_->options.max_pending) {
      refused = Status::Busy("too many offset commits wait for the log");
    } else if (commit.fence_token != 0 && present != table.end() &&
               commit.fence_token < present->second.token_max) {
      refused = Stale();  // must not take the place of the present holder's
    } else {
      auto& entry = table[commit.key];
      overtaken = entry.TakeOlder(commit.fence_token);
      shared_->pending_count -= overtaken.size();
      entry.token_max = std::max(entry.token_max, commit.fence_token);
      entry.waiters.push_back({commit.fence_token, std::move(done)});
      entry.commit = std::move(commit);
      ++shared_->pending_count;
      arm = !shared_->timer_armed;
      shared_->timer_armed = true;
    }
  }
  for (const Shared::Waiter& waiter : overtaken) waiter.done(Stale());
  if (!refused.ok()) {
    done(std::move(refused));
    return;
  }
  if (!arm) return;
  const auto shared = shared_;
  if (shared->timers.Schedule(shared->options.interval, [shared] { shared->FlushAll(); }) == 0) {
    shared->FlushAll();
  }
}

void OffsetService::CommitNow(std::vector<OffsetCommit> commits, TimePoint deadline, Done done) {
  struct Gathering {
    explicit Gathering(std::size_t n) : open(n) {}
    std::mutex mutex;
    std::size_t open;
    Status first_error;
  };
  CHECK(!commits.empty());
  const GroupName group = commits.front().key.group;
  auto gathering = std::make_shared<Gathering>(commits.size());
  for (OffsetCommit& commit : commits) {
    Commit(std::move(commit), deadline, [gathering, done](const Status& status) {
      Status result;
      {
        const std::lock_guard lock(gathering->mutex);
        if (!status.ok() && gathering->first_error.ok()) gathering->first_error = status;
        if (--gathering->open > 0) return;
        result = gathering->first_error;
      }
      done(std::move(result));
    });
  }
  Flush(group, deadline, [](const Status&) {});
}

void OffsetService::Flush(const GroupName& group, TimePoint /*deadline*/, Done done) {
  Shared::Batches batches;
  {
    const std::lock_guard serial(shared_->submit_mutex);
    {
      const std::lock_guard lock(shared_->mutex);
      const auto found = shared_->pending.find(group);
      if (found != shared_->pending.end()) {
        for (const auto& [key, entry] : found->second) {
          shared_->pending_count -= entry.waiters.size();
        }
        batches = shared_->PutInFlight(std::move(found->second));
        shared_->pending.erase(found);
      }
      if (!batches.empty()) {
        batches.back()->after.push_back(std::exchange(done, nullptr));
      } else if (!shared_->in_flight.empty()) {
        // Commands reach the log in order: after the last of them the group's own is settled too.
        shared_->in_flight.back()->after.push_back(
            [done = std::exchange(done, nullptr)](const Status&) { done(Status::Ok()); });
      }
    }
    shared_->Submit(batches);
  }
  shared_->Conclude(batches);
  if (done) done(Status::Ok());
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
    shared->reads.Confirm(TimeLeft(deadline, shared->clock.MonoNow()), read);
  });
}

std::size_t OffsetService::pending() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->pending_count;
}

}  // namespace triad::broker
