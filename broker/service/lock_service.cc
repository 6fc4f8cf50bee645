#include "broker/service/lock_service.h"

#include <glog/logging.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "common/mutant.h"

namespace triad::broker {
namespace {

constexpr std::size_t kReleasesPerCommand = 2000;  // keeps an entry well below its 1 MiB

using Granted = std::function<void(Result<std::vector<LockService::Held>>)>;

}  // namespace

struct LockService::Shared : std::enable_shared_from_this<Shared> {
  Shared(const Clock& c, Appender& a, const ReplicatedState& s, LeaderReads& r, OffsetService& o,
         std::size_t max)
      : clock(c), appender(a), state(s), reads(r), offsets(o), max_leases(max) {}

  struct Lease {
    ClientId client;
    std::uint64_t token = 0;
    TimePoint renewed;
    bool settled = false;  // its grant is committed and not being released; else tentative
    bool live(TimePoint now) const { return now - renewed < kLockLease; }
  };
  // What one request may get.
  struct Decision {
    Term term;                         // in which it was decided, and alone counts
    std::vector<LockOutcome> grants;   // to be committed
    std::vector<GroupQueue> renewals;  // held already: to be confirmed
    Status refused;                    // not OK: nothing was decided
  };

  Decision Decide(const GroupName& group, const ClientId& client,
                  const std::vector<TopicQueue>& queues);
  void Grant(const GroupName& group, const ClientId& client, std::vector<TopicQueue> queues,
             TimePoint deadline, Granted done);
  void Settle(Term at, const std::vector<LockOutcome>& grants, const AppendOutcome& outcome);
  std::vector<std::uint64_t> RecordedTokens(const GroupName& group,
                                            const std::vector<TopicQueue>& queues) const;
  std::vector<Held> HeldOf(const GroupName& group, const ClientId& client,
                           const std::vector<TopicQueue>& queues);
  void Release(Term at, Proposal proposal, std::function<void(Status)> done);

  const Clock& clock;
  Appender& appender;
  const ReplicatedState& state;
  LeaderReads& reads;
  OffsetService& offsets;
  const std::size_t max_leases;

  std::mutex mutex;
  Term term;  // 0: this peer does not serve
  std::map<GroupQueue, Lease> leases;
  std::uint64_t next_token = 1;
};

LockService::Shared::Decision LockService::Shared::Decide(const GroupName& group,
                                                          const ClientId& client,
                                                          const std::vector<TopicQueue>& queues) {
  const TimePoint now = clock.MonoNow();
  const std::vector<std::uint64_t> recorded = RecordedTokens(group, queues);
  Decision decision;
  const std::lock_guard lock(mutex);
  if (term == Term{}) {
    decision.refused = Status::NotLeader("this peer grants no locks");
    return decision;
  }
  decision.term = term;
  for (std::size_t i = 0; i < queues.size(); ++i) {
    const GroupQueue key{group, queues[i]};
    const auto found = leases.find(key);
    const bool mine = found != leases.end() && found->second.client == client;
    // Its record may be gone with its topic or group: then the next leader would not know of it.
    const bool is_recorded = mine && recorded[i] == found->second.token;
    if (is_recorded && found->second.settled && found->second.live(now)) {
      decision.renewals.push_back(key);
      continue;
    }
    const bool anothers = found != leases.end() && !mine && found->second.live(now);
    if (anothers || (found == leases.end() && leases.size() >= max_leases)) continue;
    LockOutcome grant{key, client, next_token++};
    leases[key] = Lease{client, grant.token, now, false};  // keeps the others away meanwhile
    decision.grants.push_back(std::move(grant));
  }
  return decision;
}

// What the applied state says the grants of `queues` are.
std::vector<std::uint64_t> LockService::Shared::RecordedTokens(
    const GroupName& group, const std::vector<TopicQueue>& queues) const {
  std::vector<std::uint64_t> tokens;
  tokens.reserve(queues.size());
  for (const TopicQueue& queue : queues) tokens.push_back(state.LockToken({group, queue}));
  return tokens;
}

void LockService::Shared::Grant(const GroupName& group, const ClientId& client,
                                std::vector<TopicQueue> queues, TimePoint deadline, Granted done) {
  Decision decision = Decide(group, client, queues);
  if (!decision.refused.ok()) {
    done(std::move(decision.refused));
    return;
  }
  const auto self = shared_from_this();
  auto finish = [self, group, client, queues, done](const Status& status) {
    if (!status.ok()) {
      done(status);
      return;
    }
    done(self->HeldOf(group, client, queues));
  };
  if (decision.grants.empty()) {
    if (decision.renewals.empty()) {
      done(std::vector<Held>());
      return;
    }
    // Renewals are leader-local, so the leadership has to be real.
    reads.Confirm(TimeLeft(deadline, clock.MonoNow()), finish);
    return;
  }
  Proposal proposal;
  proposal.command.locks = decision.grants;
  proposal.deadline = deadline;
  proposal.only_in = decision.term;
  proposal.done = [self, at = decision.term, grants = std::move(decision.grants),
                   finish](const AppendOutcome& outcome) {
    self->Settle(at, grants, outcome);
    finish(outcome.status);  // a commit confirms the leadership as well as a ReadIndex
  };
  appender.Submit(std::move(proposal));
}

void LockService::Shared::Settle(Term at, const std::vector<LockOutcome>& grants,
                                 const AppendOutcome& outcome) {
  const TimePoint now = clock.MonoNow();
  const std::vector<bool>& accepted = outcome.command.locks_accepted;
  const std::lock_guard lock(mutex);
  if (term != at) return;  // another term has read its table from the state
  for (std::size_t i = 0; i < grants.size(); ++i) {
    const auto found = leases.find(grants[i].key);
    if (found == leases.end() || found->second.token != grants[i].token) continue;
    const bool refused = i < accepted.size() && !accepted[i];
    if (outcome.status.ok() && !refused) {
      found->second.settled = true;
      found->second.renewed = now;
    } else if (outcome.status.code() != StatusCode::kTimedOut) {
      leases.erase(found);  // certainly not in the log, or without effect
    }  // unknown: it keeps others away until the lease is over, or its client asks again
  }
}

std::vector<LockService::Held> LockService::Shared::HeldOf(const GroupName& group,
                                                           const ClientId& client,
                                                           const std::vector<TopicQueue>& queues) {
  const TimePoint now = clock.MonoNow();
  const std::vector<std::uint64_t> recorded = RecordedTokens(group, queues);
  std::vector<Held> held;
  const std::lock_guard lock(mutex);
  for (std::size_t i = 0; i < queues.size(); ++i) {
    const auto found = leases.find({group, queues[i]});
    if (found == leases.end() || found->second.token != recorded[i]) continue;
    Lease& lease = found->second;
    if (lease.client != client || !lease.settled || !lease.live(now)) continue;
    lease.renewed = now;
    held.push_back({queues[i], lease.token});
  }
  return held;
}

// Puts the releases in `proposal` into the log; those that stand there leave the table.
void LockService::Shared::Release(Term at, Proposal proposal, std::function<void(Status)> done) {
  proposal.only_in = at;
  proposal.done = [self = shared_from_this(), at, released = proposal.command.locks,
                   done = std::move(done)](const AppendOutcome& outcome) {
    if (outcome.status.ok()) {
      const std::lock_guard lock(self->mutex);
      for (const LockOutcome& one : released) {
        const auto found = self->leases.find(one.key);
        if (self->term != at || found == self->leases.end()) continue;
        if (found->second.token == one.token) self->leases.erase(found);
      }
    }
    done(outcome.status);
  };
  appender.Submit(std::move(proposal));
}

LockService::LockService(const Clock& clock, Appender& appender, const ReplicatedState& state,
                         LeaderReads& reads, OffsetService& offsets, std::size_t max_leases)
    : shared_(std::make_shared<Shared>(clock, appender, state, reads, offsets, max_leases)) {
  CHECK_GT(max_leases, 0u);
}

LockService::~LockService() = default;

void LockService::OnLeaderTerm(Term term) {
  const TimePoint now = shared_->clock.MonoNow();
  std::map<GroupQueue, Shared::Lease> leases;
  if (term != Term{} && !TRIAD_MUTANT(22)) {
    // How long the old leader had not heard of a holder is unknown: every lease counts as fresh.
    for (const ReplicatedState::Lock& lock : shared_->state.Locks()) {
      if (lock.client.empty()) continue;
      leases[lock.key] = Shared::Lease{lock.client, lock.token, now, true};
    }
  }
  const std::uint64_t next_token = shared_->state.next_fence_token();
  const std::lock_guard lock(shared_->mutex);
  if (shared_->term == term) return;
  shared_->term = term;
  shared_->leases.swap(leases);
  shared_->next_token = std::max<std::uint64_t>(next_token, 1);
}

void LockService::Lock(const GroupName& group, const ClientId& client,
                       std::vector<TopicQueue> queues, TimePoint deadline, Granted done) {
  // What the group has committed so far stands in front of the grant: the new holder reads it.
  const auto shared = shared_;
  shared->offsets.Flush(group, deadline,
                        [shared, group, client, queues = std::move(queues), deadline,
                         done = std::move(done)](const Status& flushed) {
                          if (flushed.code() == StatusCode::kNotLeader) {
                            done(flushed);
                            return;
                          }
                          shared->Grant(group, client, queues, deadline, done);
                        });
}

void LockService::Unlock(const GroupName& group, const ClientId& client,
                         std::vector<TopicQueue> queues, TimePoint deadline,
                         std::function<void(Status)> done) {
  const auto shared = shared_;
  auto release = [shared, group, client, queues = std::move(queues), deadline,
                  done = std::move(done)](const Status& flushed) {
    if (flushed.code() == StatusCode::kNotLeader) {
      done(flushed);
      return;
    }
    Proposal proposal;
    proposal.deadline = deadline;
    Term at;
    {
      const std::lock_guard lock(shared->mutex);
      at = shared->term;
      for (const TopicQueue& queue : queues) {
        const auto found = shared->leases.find({group, queue});
        if (found == shared->leases.end() || found->second.client != client) continue;
        proposal.command.locks.push_back({found->first, ClientId(), found->second.token});
        // Nothing to renew any more: who asks again meanwhile gets a grant of its own.
        found->second.settled = false;
      }
    }
    if (at == Term{}) {
      done(Status::NotLeader("this peer releases no locks"));
      return;
    }
    if (proposal.command.locks.empty()) {
      done(Status::Ok());
      return;
    }
    shared->Release(at, std::move(proposal), done);
  };
  shared->offsets.Flush(group, deadline, std::move(release));
}

void LockService::ReleaseExpired(TimePoint deadline) {
  const TimePoint now = shared_->clock.MonoNow();
  Proposal proposal;
  proposal.deadline = deadline;
  Term at;
  {
    const std::lock_guard lock(shared_->mutex);
    at = shared_->term;
    for (auto& [key, lease] : shared_->leases) {
      if (lease.live(now)) continue;
      if (proposal.command.locks.size() == kReleasesPerCommand) break;
      proposal.command.locks.push_back({key, ClientId(), lease.token});
      lease.settled = false;  // who asks now gets a grant of its own, behind the release
    }
  }
  if (at == Term{} || proposal.command.locks.empty()) return;
  shared_->Release(at, std::move(proposal),
                   [](const Status& status) { IgnoreError(status, "it is tried again"); });
}

std::size_t LockService::leases() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->leases.size();
}

bool LockService::GroupHoldsLease(const GroupName& group) const {
  const TimePoint now = shared_->clock.MonoNow();
  const std::lock_guard lock(shared_->mutex);
  for (auto it = shared_->leases.lower_bound({group, TopicQueue{}});
       it != shared_->leases.end() && it->first.group == group; ++it) {
    if (it->second.live(now)) return true;
  }
  return false;
}

}  // namespace triad::broker
