#include "broker/processor/forwarding_gate.h"

#include <glog/logging.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "broker/processor/dispatcher.h"
#include "broker/processor/response.h"

namespace triad::broker {
namespace {

// After a NotLeader answer: who leads is being settled, heartbeats come every 50 ms.
constexpr std::chrono::milliseconds kRetryDelay{20};

// The other side certainly has not got it (remoting/client.h: "the message says which").
bool NeverSent(const Status& status) {
  return status.message().starts_with("cannot ");
}

}  // namespace

LeaderGate::Policy LeaderGate::For(std::chrono::milliseconds budget, int code) {
  Policy policy;
  policy.budget = budget;
  policy.late = [budget, code](const Request& request) {
    return remoting::Command::ResponseTo(request.command, code,
                                         "no leader of the group could be reached within " +
                                             std::to_string(budget.count()) +
                                             " ms; nothing was done, try again");
  };
  return policy;
}

LeaderGate::Policy LeaderGate::Silent(std::chrono::milliseconds budget) {
  Policy policy;
  policy.budget = budget;
  policy.repeatable = true;
  return policy;
}

struct ForwardingGate::Shared : std::enable_shared_from_this<Shared> {
  Shared(Options o, const Clock& c, TimerQueue& t, remoting::Client& cl)
      : options(std::move(o)), clock(c), timers(t), client(cl) {}

  // One request on its way. Carried on by one party at a time: handler, client, timer or `held`.
  struct Item {
    RequestPtr request;
    Reply reply;
    Policy policy;
    Handler local;
    TimePoint deadline;
  };
  using ItemPtr = std::shared_ptr<Item>;

  void Route(const ItemPtr& item);
  void RunHere(const ItemPtr& item);
  void Forward(const ItemPtr& item, const std::string& address);
  void OnForwarded(const ItemPtr& item, Result<remoting::Command> answer);
  // Routes it again after `delay`, or at the next leader change. `seen`: the generation that the
  // decision to wait rests on.
  void Park(const ItemPtr& item, std::chrono::milliseconds delay, std::uint64_t seen);
  void RouteParked(std::uint64_t id);
  void RouteAllParked();
  void AnswerLate(const ItemPtr& item) const;
  void AnswerUnknown(const ItemPtr& item) const;
  std::string LeaderText() const;
  std::uint64_t Generation() const {
    const std::lock_guard lock(mutex);
    return generation;
  }

  const Options options;
  const Clock& clock;
  TimerQueue& timers;
  remoting::Client& client;

  std::atomic<bool> ready{false};  // info.ready, for the common case
  mutable std::mutex mutex;
  dledger::LeaderInfo info;
  std::uint64_t generation = 0;             // of `info`
  std::map<std::uint64_t, ItemPtr> parked;  // in order of parking
  std::uint64_t next_id = 1;
  std::size_t parked_bytes = 0;
  bool stopped = false;
};

void ForwardingGate::Shared::Route(const ItemPtr& item) {
  if (clock.MonoNow() >= item->deadline) {
    AnswerLate(item);
    return;
  }
  if (ready.load(std::memory_order_acquire)) {
    RunHere(item);
    return;
  }
  dledger::LeaderInfo now;
  std::uint64_t seen = 0;
  {
    const std::lock_guard lock(mutex);
    now = info;
    seen = generation;
  }
  const auto left = TimeLeft(item->deadline, clock.MonoNow());
  if (now.ready) {
    RunHere(item);
  } else if (now.role == dledger::Role::kLeader) {
    Park(item, left, seen);  // it leads and is ready within milliseconds
  } else if (item->request->forwarded) {
    item->reply(NotLeaderResponse(item->request->command));  // one hop only
  } else if (now.leader.empty() || now.leader == options.self ||
             now.leader_client_address.empty()) {
    Park(item, left, seen);
  } else {
    Forward(item, now.leader_client_address);
  }
}

void ForwardingGate::Shared::RunHere(const ItemPtr& item) {
  auto self = shared_from_this();
  item->local(item->request, [self, item](remoting::Command response) {
    // Of a forwarded request the first peer does the waiting.
    if (response.code == kNotLeaderResponse && !item->request->forwarded) {
      self->Park(item, kRetryDelay, self->Generation());
    } else {
      item->reply(std::move(response));
    }
  });
}

void ForwardingGate::Shared::Forward(const ItemPtr& item, const std::string& address) {
  const TimePoint now = clock.MonoNow();
  const auto elapsed =
      std::chrono::duration_cast<std::chrono::milliseconds>(now - item->request->arrived);
  auto outer = WrapForwarded(*item->request, std::max(elapsed, std::chrono::milliseconds(0)));
  if (!outer.ok()) {
    item->reply(ResponseOf(item->request->command, outer.status()));
    return;
  }
  auto self = shared_from_this();
  const auto left = TimeLeft(item->deadline, now);
  client.Call(address, std::move(outer.value()), std::max(left, std::chrono::milliseconds(1)),
              [self, item](Result<remoting::Command> answer) {
                self->OnForwarded(item, std::move(answer));
              });
}

void ForwardingGate::Shared::OnForwarded(const ItemPtr& item, Result<remoting::Command> answer) {
  if (answer.ok()) {
    remoting::Command response = std::move(answer.value());
    if (response.code == kNotLeaderResponse) {
      Park(item, kRetryDelay, Generation());
      return;
    }
    response.opaque = item->request->command.opaque;
    response.serialize_type = item->request->command.serialize_type;
    item->reply(std::move(response));
    return;
  }
  const Status& status = answer.status();
  const bool lost = status.code() == StatusCode::kUnavailable;
  if (lost && (item->policy.repeatable || NeverSent(status))) {
    Park(item, kRetryDelay, Generation());
  } else if ((lost || status.code() == StatusCode::kTimedOut) && !item->policy.repeatable) {
    AnswerUnknown(item);
  } else {  // busy, stopping, or nothing lost by saying so
    AnswerLate(item);
  }
}

void ForwardingGate::Shared::Park(const ItemPtr& item, std::chrono::milliseconds delay,
                                  std::uint64_t seen) {
  const std::size_t bytes = item->request->command.body.size();
  std::uint64_t id = 0;
  {
    const std::lock_guard lock(mutex);
    if (!stopped && parked.size() < options.max_held &&
        parked_bytes + bytes <= options.max_held_bytes) {
      id = next_id++;
      parked.emplace(id, item);
      parked_bytes += bytes;
      // A change since `seen` has already woken everybody else.
      if (generation != seen) delay = std::chrono::milliseconds(0);
    }
  }
  if (id == 0) {
    AnswerLate(item);
    return;
  }
  auto self = shared_from_this();
  delay = std::min(delay, TimeLeft(item->deadline, clock.MonoNow()));
  if (timers.Schedule(delay, [self, id] { self->RouteParked(id); }) == 0) RouteParked(id);
}

void ForwardingGate::Shared::RouteParked(std::uint64_t id) {
  ItemPtr item;
  {
    const std::lock_guard lock(mutex);
    const auto found = parked.find(id);
    if (found == parked.end()) return;  // a leader change was faster
    item = std::move(found->second);
    parked_bytes -= item->request->command.body.size();
    parked.erase(found);
  }
  Route(item);
}

void ForwardingGate::Shared::RouteAllParked() {
  std::map<std::uint64_t, ItemPtr> all;
  {
    const std::lock_guard lock(mutex);
    all.swap(parked);
    parked_bytes = 0;
  }
  for (const auto& [id, item] : all) Route(item);
}

void ForwardingGate::Shared::AnswerLate(const ItemPtr& item) const {
  const LeaderGate::Policy& policy = item->policy;
  if (!policy.late || (policy.silent && policy.silent(*item->request))) {
    KeepSilent(*item->request, item->reply);
    return;
  }
  remoting::Command response = policy.late(*item->request);
  response.remark += "; " + LeaderText();
  item->reply(std::move(response));
}

std::string ForwardingGate::Shared::LeaderText() const {
  const std::lock_guard lock(mutex);
  if (info.leader.empty()) return "nobody leads the group";
  return info.leader.value() + " leads in term " + std::to_string(info.term.value());
}

void ForwardingGate::Shared::AnswerUnknown(const ItemPtr& item) const {
  if (!item->policy.late) return;
  item->reply(remoting::Command::ResponseTo(
      item->request->command, remoting::kSystemError,
      "the connection to the leader broke before it answered; it may or may not have been done"));
}

ForwardingGate::ForwardingGate(Options options, const Clock& clock, TimerQueue& timers,
                               remoting::Client& client)
    : shared_(std::make_shared<Shared>(std::move(options), clock, timers, client)) {
  CHECK(!shared_->options.self.empty());
}

ForwardingGate::~ForwardingGate() = default;

void ForwardingGate::OnLeaderChange(const dledger::LeaderInfo& info) {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->info = info;
    shared_->ready.store(info.ready, std::memory_order_release);
    ++shared_->generation;
    if (shared_->parked.empty()) return;
  }
  // On the timer's thread: the log thread has better things to do.
  shared_->timers.Schedule(std::chrono::milliseconds(0),
                           [shared = shared_] { shared->RouteAllParked(); });
}

void ForwardingGate::Stop() {
  std::map<std::uint64_t, Shared::ItemPtr> all;
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stopped = true;
    all.swap(shared_->parked);
    shared_->parked_bytes = 0;
  }
  for (const auto& [id, item] : all) shared_->AnswerLate(item);
}

void ForwardingGate::Route(RequestPtr request, Reply reply, Policy policy, Handler local) {
  auto item = std::make_shared<Shared::Item>();
  item->deadline = request->arrived + policy.budget;
  item->request = std::move(request);
  item->reply = std::move(reply);
  item->policy = std::move(policy);
  item->local = std::move(local);
  shared_->Route(item);
}

std::size_t ForwardingGate::held() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->parked.size();
}

}  // namespace triad::broker
