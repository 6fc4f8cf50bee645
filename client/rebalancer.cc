#include "client/rebalancer.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "client/allocate.h"
#include "client/message_codec.h"
#include "common/log_rate_limiter.h"

namespace triad::client {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kUnsettled{500};  // a round that could not do all: again soon
constexpr milliseconds kNoRoute{1000};
constexpr milliseconds kListenerGrace{500};  // how long one round waits for a listener
constexpr std::chrono::seconds kPullIdleMax{120};
constexpr milliseconds kHalfAnHour{30 * 60 * 1000};

// Whether the broker may take the same commit a little later; a refusal stays one.
bool MayPass(const Status& failure) {
  return failure.code() == StatusCode::kUnavailable || failure.code() == StatusCode::kTimedOut ||
         failure.code() == StatusCode::kBusy || failure.code() == StatusCode::kInternal;
}

}  // namespace

Rebalancer::Rebalancer(ConsumerContextPtr context, std::shared_ptr<QueueTable> table,
                       std::shared_ptr<ConsumeService> service,
                       std::map<MessageQueue, std::int64_t> local_offsets)
    : context_(std::move(context)),
      table_(std::move(table)),
      service_(std::move(service)),
      local_offsets_(std::move(local_offsets)) {}

Rebalancer::~Rebalancer() {
  Stop();
}

void Rebalancer::Start() {
  // An answer to a pull may come after this object's end.
  puller_ = std::make_shared<Puller>(
      context_, service_,
      [weak = weak_from_this()](const ProcessQueuePtr& queue, std::int64_t offset) {
        if (const auto self = weak.lock()) self->MoveOffset(queue, offset);
      });
  next_round_ = MonoNow();
  thread_ = std::thread([this] { Run(); });
}

void Rebalancer::Stop() {
  {
    std::lock_guard hold(mutex_);
    stopped_ = true;
    woken_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Rebalancer::Wake(milliseconds delay) {
  std::lock_guard hold(mutex_);
  const TimePoint at = MonoNow() + delay;
  if (at >= next_round_) return;
  next_round_ = at;
  woken_.notify_all();
}

void Rebalancer::MoveOffset(const ProcessQueuePtr& queue, std::int64_t offset) {
  queue->Drop();
  {
    std::lock_guard hold(mutex_);
    moves_.push_back(Move{queue, offset});
  }
  Wake(milliseconds(0));
}

void Rebalancer::Lost(const ProcessQueuePtr& queue) {
  queue->Drop();
  {
    std::lock_guard hold(mutex_);
    moves_.push_back(Move{queue, std::nullopt});
  }
  Wake(milliseconds(0));
}

void Rebalancer::Surplus(const std::vector<MessageQueue>& queues) {
  {
    std::lock_guard hold(mutex_);
    surplus_.insert(queues.begin(), queues.end());
  }
  Wake(milliseconds(0));
}

void Rebalancer::Run() {
  std::unique_lock hold(mutex_);
  while (!stopped_) {
    const TimePoint now = MonoNow();
    if (now < next_round_) {
      woken_.wait_until(hold, std::min(next_round_, now + std::chrono::hours(1)));
      continue;
    }
    next_round_ = now + context_->options.rebalance_interval;
    hold.unlock();
    Round();
    hold.lock();
  }
}

void Rebalancer::Round() {
  changed_assignment_ = false;
  DoMoves();
  GiveSurplusBack();
  for (const auto& [topic, subscription] : context_->subscriptions) {
    if (context_->stopping) return;
    RebalanceTopic(topic);
  }
  if (!changed_assignment_) return;
  const std::int64_t now_ms = SystemClock().WallNowMs();
  context_->sub_version = std::max(context_->sub_version + 1, now_ms);
  context_->instance->HeartbeatSoon();
}

// Here alone queues are taken and released, so none is taken meanwhile.
void Rebalancer::GiveSurplusBack() {
  std::set<MessageQueue> surplus;
  {
    std::lock_guard hold(mutex_);
    surplus.swap(surplus_);
  }
  std::map<MessageQueue, std::uint64_t> unused;
  for (const MessageQueue& queue : surplus) {
    if (table_->Find(queue) == nullptr) unused[queue] = 0;
  }
  GiveBack(unused);
}

void Rebalancer::DoMoves() {
  std::vector<Move> moves;
  {
    std::lock_guard hold(mutex_);
    moves.swap(moves_);
  }
  for (const Move& move : moves) {
    if (DoMove(move)) continue;
    {
      std::lock_guard hold(mutex_);
      moves_.push_back(move);
    }
    Wake(kUnsettled);
  }
}

bool Rebalancer::DoMove(const Move& move) {
  if (!move.queue->WaitIdle(kListenerGrace)) return false;
  const MessageQueue& name = move.queue->queue();
  if (table_->Find(name) != move.queue) return true;  // released meanwhile
  if (move.offset) {
    LOG(WARNING) << "queue " << name.topic << "@" << name.broker_name << ":" << name.queue_id
                 << " of group " << context_->options.group << " moves to offset " << *move.offset
                 << ", as the broker says";
    if (context_->clustering()) {
      const Status committed = context_->calls->CommitOffset(
          context_->options.group, name, *move.offset, move.queue->fence_token());
      if (!committed.ok()) {
        const bool again = MayPass(committed);
        LOG(WARNING) << "offset not committed: " << committed
                     << (again ? "; trying again" : "; the queue starts where the broker says");
        if (again) return false;
      }
    } else {
      context_->offsets.Update(name, *move.offset, false);
    }
  }
  if (context_->clustering()) context_->offsets.Remove(name);
  table_->Remove(name);
  return true;
}

// ---- who holds what -----------------------------------------------------------------------------

std::optional<std::vector<MessageQueue>> Rebalancer::WantedQueues(const std::string& topic) {
  static LogRateLimiter lines(std::chrono::seconds(10));
  const Result<RoutePtr> route = context_->instance->routes().Get(topic, false);
  if (!route.ok()) {
    if (auto suppressed = lines.Allow(MonoNow())) {
      LOG(WARNING) << "group " << context_->options.group << " waits: " << route.status()
                   << SuppressedNote(*suppressed);
    }
    Wake(kNoRoute);
    return std::nullopt;
  }
  if (!context_->clustering()) return (*route)->subscribe;
  const auto members = context_->calls->Members(context_->options.group, *route);
  if (!members.ok()) {
    context_->instance->HeartbeatSoon();
    Wake(kUnsettled);
    return std::nullopt;
  }
  const std::string& self = context_->instance->client_id();
  if (!std::binary_search(members->begin(), members->end(), self)) {
    // The broker has not heard of us yet. Ours stay ours until it has.
    context_->instance->HeartbeatSoon();
    Wake(kUnsettled);
    return std::nullopt;
  }
  return AllocateAveragely((*route)->subscribe, *members, self);
}

void Rebalancer::RebalanceTopic(const std::string& topic) {
  const std::optional<std::vector<MessageQueue>> wanted = WantedQueues(topic);
  if (!wanted) return;
  const std::set<MessageQueue> mine(wanted->begin(), wanted->end());
  for (const ProcessQueuePtr& queue : table_->All()) {
    if (queue->queue().topic != topic) continue;
    const bool stuck = !context_->suspended && MonoNow() - queue->last_pull() > kPullIdleMax;
    if (mine.contains(queue->queue()) && !queue->dropped() && !stuck) continue;
    if (!ReleaseQueue(queue)) Wake(kUnsettled);
  }
  std::vector<MessageQueue> fresh;
  for (const MessageQueue& queue : mine) {
    if (table_->Find(queue) == nullptr) fresh.push_back(queue);
  }
  if (!fresh.empty()) StartQueues(fresh);
}

bool Rebalancer::ReleaseQueue(const ProcessQueuePtr& queue) {
  {
    std::lock_guard hold(mutex_);  // a move of this queue is under way: it releases it
    for (const Move& move : moves_) {
      if (move.queue == queue) return false;
    }
  }
  queue->Drop();
  if (!queue->WaitIdle(kListenerGrace)) return false;
  CommitBeforeRelease(queue);
  table_->Remove(queue->queue());
  if (context_->clustering()) context_->offsets.Remove(queue->queue());
  changed_assignment_ = true;
  return true;
}

bool Rebalancer::CommitBeforeRelease(const ProcessQueuePtr& queue) {
  if (!context_->clustering()) return true;
  const MessageQueue& name = queue->queue();
  const std::string& group = context_->options.group;
  const bool may_commit = !context_->orderly || queue->HasLock(MonoNow());
  bool answered = true;
  const std::optional<std::int64_t> offset = context_->offsets.Uncommitted(name);
  if (may_commit && offset) {
    const Status committed =
        context_->calls->CommitOffset(group, name, *offset, queue->fence_token());
    if (committed.ok()) {
      context_->offsets.Committed(name, *offset);
    } else {
      LOG(WARNING) << "offset " << *offset << " of " << name.topic << ":" << name.queue_id
                   << " could not be committed (" << committed << "); its messages will come again";
      answered = !MayPass(committed);
    }
  }
  if (!context_->orderly) return answered;
  const Status unlocked = context_->calls->Unlock(group, name.broker_name, {name});
  if (!unlocked.ok()) {
    LOG(WARNING) << "the lock of " << name.topic << ":" << name.queue_id
                 << " could not be released (" << unlocked << "); it ends with its lease";
  }
  return answered && (unlocked.ok() || !MayPass(unlocked));
}

void Rebalancer::ReleaseAll() {
  std::set<std::string> silent;  // broker groups that did not answer: each is waited for once
  for (const ProcessQueuePtr& queue : table_->All()) {
    const std::string& broker_name = queue->queue().broker_name;
    queue->Drop();
    if (!silent.contains(broker_name) && !CommitBeforeRelease(queue)) silent.insert(broker_name);
    table_->Remove(queue->queue());
  }
}

// ---- new queues ---------------------------------------------------------------------------------

void Rebalancer::StartQueues(const std::vector<MessageQueue>& queues) {
  std::map<MessageQueue, std::uint64_t> tokens;
  const TimePoint locked_at =
      MonoNow();  // before the request: a lease never seems longer than it is
  if (context_->orderly && context_->clustering()) {
    tokens = LockNew(queues);
    if (tokens.size() < queues.size()) Wake(kUnsettled);
  }
  ProcessQueue::Limits limits;
  limits.max_messages = context_->options.max_cached_messages;
  limits.max_bytes = context_->options.max_cached_bytes;
  if (context_->orderly) limits.max_span = 0;
  for (const MessageQueue& name : queues) {
    if (context_->stopping) break;
    const bool locks = context_->orderly && context_->clustering();
    if (locks && !tokens.contains(name)) continue;
    bool stored = false;
    const Result<std::int64_t> start = FindStart(name, &stored);
    if (!start.ok()) {
      LOG(WARNING) << "queue " << name.topic << ":" << name.queue_id
                   << " is not started yet: " << start.status();
      Wake(kUnsettled);
      continue;
    }
    context_->offsets.Begin(name, *start, stored);
    auto queue = std::make_shared<ProcessQueue>(name, limits);
    queue->NotePull(MonoNow());
    if (locks) queue->SetLocked(tokens.at(name), locked_at);
    if (context_->orderly && !locks) queue->SetAlwaysLocked();
    table_->Add(queue);
    changed_assignment_ = true;
    puller_->Start(queue, *start);
    tokens.erase(name);
  }
  GiveBack(tokens);
}

// Locks of queues that were not started after all: nobody else would get them before the lease
// ends.
void Rebalancer::GiveBack(const std::map<MessageQueue, std::uint64_t>& locked) {
  std::map<std::string, std::vector<MessageQueue>> by_broker;
  for (const auto& [queue, token] : locked) by_broker[queue.broker_name].push_back(queue);
  for (const auto& [broker_name, names] : by_broker) {
    IgnoreError(context_->calls->Unlock(context_->options.group, broker_name, names),
                "the lock ends with its lease");
  }
}

std::map<MessageQueue, std::uint64_t> Rebalancer::LockNew(const std::vector<MessageQueue>& queues) {
  std::map<std::string, std::vector<MessageQueue>> by_broker;
  for (const MessageQueue& queue : queues) by_broker[queue.broker_name].push_back(queue);
  std::map<MessageQueue, std::uint64_t> locked;
  for (const auto& [broker_name, names] : by_broker) {
    const auto held = context_->calls->Lock(context_->options.group, broker_name, names);
    if (held.ok()) locked.insert(held->begin(), held->end());
  }
  return locked;
}

Result<std::int64_t> Rebalancer::FindStart(const MessageQueue& queue, bool* stored) {
  if (!context_->clustering()) {
    if (const auto running = context_->offsets.Find(queue)) return *running;
    const auto local = local_offsets_.find(queue);
    if (local != local_offsets_.end()) return local->second;
    return StartWithoutOffset(queue);
  }
  const auto known = context_->calls->QueryOffset(context_->options.group, queue);
  if (!known.ok()) return known.status();
  if (known->has_value()) {
    *stored = true;
    return **known;
  }
  return StartWithoutOffset(queue);
}

Result<std::int64_t> Rebalancer::StartWithoutOffset(const MessageQueue& queue) {
  const bool retry = queue.topic.starts_with(kRetryPrefix);
  switch (context_->options.consume_from) {
    case ConsumeFrom::kLastOffset:
      if (retry) return std::int64_t{0};
      return context_->calls->MaxOffset(queue);
    case ConsumeFrom::kFirstOffset:
      return std::int64_t{0};  // corrected by the broker when older messages are gone
    case ConsumeFrom::kTimestamp: break;
  }
  if (retry) return context_->calls->MaxOffset(queue);
  std::int64_t time_ms = context_->options.consume_timestamp_ms;
  if (time_ms == 0) time_ms = context_->started_at_ms - kHalfAnHour.count();
  return context_->calls->OffsetByTime(queue, time_ms);
}

}  // namespace triad::client
