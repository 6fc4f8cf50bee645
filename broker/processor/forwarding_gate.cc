#include "broker/processor/forwarding_gate.h"

#include <glog/logging.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

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

  // One request on its way. Carried on by one party at a time: handler, client, timer or lane.
  struct Item {
    RequestPtr request;
    Reply reply;
    Policy policy;
    Handler local;
    TimePoint deadline;
    TimePoint came;             // to this peer
    std::uint64_t id = 0;       // of its first holding; 0: it was never held
    std::uint64_t held_at = 0;  // of its latest one, in the same count
    bool outcome_open = false;  // a leader has got it and may have done it
    bool is_behind = false;     // in a lane: those in front of it wake the lane
  };
  using ItemPtr = std::shared_ptr<Item>;
  using Order = std::pair<TimePoint, std::uint64_t>;  // of coming, then of the first holding
  // The held requests of one connection. It exists as long as there are any, or one that was held
  // is being routed.
  struct Lane {
    std::map<Order, ItemPtr> items;
    bool draining = false;  // somebody routes its items, the oldest first
  };
  struct Wait {
    std::chrono::milliseconds delay;
    std::uint64_t seen = 0;  // the generation that the decision to wait rests on
  };

  void Come(const ItemPtr& item, TimePoint now);
  // Passes it on or answers it; a Wait when it can go nowhere yet.
  std::optional<Wait> Route(const ItemPtr& item, TimePoint now);
  void RunHere(const ItemPtr& item);
  void Forward(const ItemPtr& item, const std::string& address);
  void OnForwarded(const ItemPtr& item, Result<remoting::Command> answer);
  // Into its lane; its lane is routed again after the wait, or at the next leader change.
  void Park(const ItemPtr& item, Wait wait);
  // Only behind others of its connection: false when there are none.
  bool ParkBehind(const ItemPtr& item);
  Order Insert(const ItemPtr& item, Lane* lane);  // locked
  bool HasRoomFor(const Item& item) const;        // locked
  void Wake(const ItemPtr& item, Order order, std::chrono::milliseconds delay);
  void OnTimer(const std::string& connection, Order order);
  // Out of its lane, if its deadline is `now` or earlier; null: it is not, or not there any more.
  ItemPtr TakeLate(const std::string& connection, Order order, TimePoint now);
  void Drain(const std::string& connection);
  void DrainAll();
  void AnswerLate(const ItemPtr& item) const;
  void AnswerUnknown(const ItemPtr& item, std::string_view what) const;
  std::string LeaderText() const;
  std::uint64_t Generation() const {
    const std::lock_guard lock(mutex);
    return generation;
  }

  const Options options;
  const Clock& clock;
  TimerQueue& timers;
  remoting::Client& client;

  std::atomic<bool> ready{false};       // info.ready, for the common case
  std::atomic<std::size_t> lanes_n{0};  // lanes.size(), likewise
  mutable std::mutex mutex;
  dledger::LeaderInfo info;
  std::uint64_t generation = 0;                 // of `info`
  std::unordered_map<std::string, Lane> lanes;  // by the client's address
  std::uint64_t next_id = 1;
  std::size_t held = 0;
  std::size_t held_bytes = 0;
  bool stopped = false;
};

void ForwardingGate::Shared::Come(const ItemPtr& item, TimePoint now) {
  // A thread sees the lanes of its own connections.
  if (lanes_n.load(std::memory_order_relaxed) != 0 && ParkBehind(item)) return;
  if (const auto wait = Route(item, now)) Park(item, *wait);
}

std::optional<ForwardingGate::Shared::Wait> ForwardingGate::Shared::Route(const ItemPtr& item,
                                                                          TimePoint now) {
  if (now >= item->deadline) {
    AnswerLate(item);
    return std::nullopt;
  }
  if (ready.load(std::memory_order_acquire)) {
    RunHere(item);
    return std::nullopt;
  }
  dledger::LeaderInfo leader;
  Wait wait{.delay = TimeLeft(item->deadline, now)};
  {
    const std::lock_guard lock(mutex);
    leader = info;
    wait.seen = generation;
  }
  if (leader.ready) {
    RunHere(item);
  } else if (leader.role == dledger::Role::kLeader) {
    return wait;  // it leads and is ready within milliseconds
  } else if (item->request->forwarded) {
    item->reply(NotLeaderResponse(item->request->command));  // one hop only
  } else if (leader.leader.empty() || leader.leader == options.self ||
             leader.leader_client_address.empty()) {
    return wait;
  } else {
    Forward(item, leader.leader_client_address);
  }
  return std::nullopt;
}

void ForwardingGate::Shared::RunHere(const ItemPtr& item) {
  auto self = shared_from_this();
  item->local(item->request, [self, item](remoting::Command response) {
    // Of a forwarded request the first peer does the waiting.
    if (response.code == kNotLeaderResponse && !item->request->forwarded) {
      self->Park(item, {.delay = kRetryDelay, .seen = self->Generation()});
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
      Park(item, {.delay = kRetryDelay, .seen = Generation()});
      return;
    }
    response.opaque = item->request->command.opaque;
    response.serialize_type = item->request->command.serialize_type;
    item->reply(std::move(response));
    return;
  }
  const Status& status = answer.status();
  const bool is_lost = status.code() == StatusCode::kUnavailable;
  const bool is_late = status.code() == StatusCode::kTimedOut;
  const bool is_open = (is_lost && !NeverSent(status)) || is_late;
  item->outcome_open = item->outcome_open || is_open;
  if (is_lost && (item->policy.repeatable || !is_open)) {
    Park(item, {.delay = kRetryDelay, .seen = Generation()});
  } else if (is_open && !item->policy.repeatable) {
    AnswerUnknown(item, is_late ? "the leader did not answer in time"
                                : "the connection to the leader broke before it answered");
  } else {  // at the end of its budget, busy or stopping
    AnswerLate(item);
  }
}

bool ForwardingGate::Shared::HasRoomFor(const Item& item) const {
  return !stopped && held < options.max_held &&
         held_bytes + item.request->command.body.size() <= options.max_held_bytes;
}

ForwardingGate::Shared::Order ForwardingGate::Shared::Insert(const ItemPtr& item, Lane* lane) {
  item->held_at = next_id++;
  if (item->id == 0) item->id = item->held_at;
  const Order order{item->came, item->id};
  lane->items.emplace(order, item);
  ++held;
  held_bytes += item->request->command.body.size();
  return order;
}

void ForwardingGate::Shared::Park(const ItemPtr& item, Wait wait) {
  std::optional<Order> order;
  {
    const std::lock_guard lock(mutex);
    if (HasRoomFor(*item)) {
      item->is_behind = false;
      order = Insert(item, &lanes[item->request->client_address]);
      lanes_n.store(lanes.size(), std::memory_order_relaxed);
      // A change since `seen` has already woken everybody else.
      if (generation != wait.seen) wait.delay = std::chrono::milliseconds(0);
    }
  }
  if (order) {
    Wake(item, *order, wait.delay);
  } else {
    AnswerLate(item);
  }
}

bool ForwardingGate::Shared::ParkBehind(const ItemPtr& item) {
  std::optional<Order> order;
  {
    const std::lock_guard lock(mutex);
    const auto lane = lanes.find(item->request->client_address);
    if (lane == lanes.end()) return false;
    if (HasRoomFor(*item)) {
      item->is_behind = true;
      order = Insert(item, &lane->second);
    }
  }
  if (order) {
    Wake(item, *order, std::chrono::milliseconds::max());
  } else {
    AnswerLate(item);
  }
  return true;
}

void ForwardingGate::Shared::Wake(const ItemPtr& item, Order order,
                                  std::chrono::milliseconds delay) {
  auto self = shared_from_this();
  const std::string& connection = item->request->client_address;
  delay = std::min(delay, TimeLeft(item->deadline, clock.MonoNow()));
  const TimerQueue::Id timer =
      timers.Schedule(delay, [self, connection, order] { self->OnTimer(connection, order); });
  if (timer != 0) return;
  // Nobody would look at it again.
  if (const ItemPtr unheld = TakeLate(connection, order, TimePoint::max())) AnswerLate(unheld);
  Drain(connection);
}

ForwardingGate::Shared::ItemPtr ForwardingGate::Shared::TakeLate(const std::string& connection,
                                                                 Order order, TimePoint now) {
  const std::lock_guard lock(mutex);
  const auto lane = lanes.find(connection);
  if (lane == lanes.end()) return nullptr;
  const auto found = lane->second.items.find(order);
  if (found == lane->second.items.end() || found->second->deadline > now) return nullptr;
  ItemPtr item = std::move(found->second);
  lane->second.items.erase(found);
  --held;
  held_bytes -= item->request->command.body.size();
  return item;
}

// Its wait is over, or its budget: then it need not wait for those in front of it.
void ForwardingGate::Shared::OnTimer(const std::string& connection, Order order) {
  if (const ItemPtr late = TakeLate(connection, order, clock.MonoNow())) AnswerLate(late);
  Drain(connection);
}

// Routes what the lane holds, the oldest first, until one has to wait again.
void ForwardingGate::Shared::Drain(const std::string& connection) {
  std::optional<Order> last;
  std::uint64_t routed_at = 0;  // what is held from then on has a larger number
  std::unique_lock lock(mutex);
  while (true) {
    const auto lane = lanes.find(connection);
    if (lane == lanes.end() || (lane->second.draining && !last)) return;
    auto& items = lane->second.items;
    // One that came back has its own wait now, and the others are behind it.
    const bool is_back = last && !items.empty() && !items.begin()->second->is_behind &&
                         items.begin()->first <= *last &&
                         items.begin()->second->held_at > routed_at;
    lane->second.draining = !items.empty() && !is_back;
    if (items.empty()) {
      lanes.erase(lane);
      lanes_n.store(lanes.size(), std::memory_order_relaxed);
      return;
    }
    if (is_back) return;
    const ItemPtr item = std::move(items.begin()->second);
    last = items.begin()->first;
    routed_at = next_id++;
    items.erase(items.begin());
    --held;
    held_bytes -= item->request->command.body.size();
    lock.unlock();
    if (const auto wait = Route(item, clock.MonoNow())) Park(item, *wait);
    lock.lock();
  }
}

void ForwardingGate::Shared::DrainAll() {
  std::vector<std::pair<Order, std::string>> all;
  {
    const std::lock_guard lock(mutex);
    all.reserve(lanes.size());
    for (const auto& [connection, lane] : lanes) {
      if (!lane.items.empty()) all.emplace_back(lane.items.begin()->first, connection);
    }
  }
  std::ranges::sort(all);
  for (const auto& [order, connection] : all) Drain(connection);
}

void ForwardingGate::Shared::AnswerLate(const ItemPtr& item) const {
  const LeaderGate::Policy& policy = item->policy;
  if (!policy.late || (policy.silent && policy.silent(*item->request))) {
    KeepSilent(*item->request, item->reply);
    return;
  }
  remoting::Command response = policy.late(*item->request);
  if (item->outcome_open) {
    response.remark = "no leader of the group answered within " +
                      std::to_string(policy.budget.count()) +
                      " ms; one has got it, it may or may not have been done; try again";
  }
  response.remark += "; " + LeaderText();
  item->reply(std::move(response));
}

std::string ForwardingGate::Shared::LeaderText() const {
  const std::lock_guard lock(mutex);
  if (info.leader.empty()) return "nobody leads the group";
  return info.leader.value() + " leads in term " + std::to_string(info.term.value());
}

void ForwardingGate::Shared::AnswerUnknown(const ItemPtr& item, std::string_view what) const {
  if (!item->policy.late) return;
  item->reply(remoting::Command::ResponseTo(
      item->request->command, remoting::kSystemError,
      std::string(what) + " (budget " + std::to_string(item->policy.budget.count()) +
          " ms); it may or may not have been done; " + LeaderText()));
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
    if (shared_->lanes.empty()) return;
  }
  // On the timer's thread: the log thread has better things to do.
  shared_->timers.Schedule(std::chrono::milliseconds(0),
                           [shared = shared_] { shared->DrainAll(); });
}

void ForwardingGate::Stop() {
  std::vector<Shared::ItemPtr> all;
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stopped = true;
    for (auto& [connection, lane] : shared_->lanes) {
      for (auto& [order, item] : lane.items) all.push_back(std::move(item));
      lane.items.clear();
    }
    std::erase_if(shared_->lanes, [](const auto& lane) { return !lane.second.draining; });
    shared_->lanes_n.store(shared_->lanes.size(), std::memory_order_relaxed);
    shared_->held = 0;
    shared_->held_bytes = 0;
  }
  for (const auto& item : all) shared_->AnswerLate(item);
}

void ForwardingGate::Route(RequestPtr request, Reply reply, Policy policy, Handler local) {
  auto item = std::make_shared<Shared::Item>();
  item->deadline = request->arrived + policy.budget;
  const TimePoint now = shared_->clock.MonoNow();
  // What the short way of sends brings back arrived before those that are held meanwhile. The
  // arrival at another peer is known in milliseconds only.
  item->came = request->forwarded ? now : request->arrived;
  item->request = std::move(request);
  item->reply = std::move(reply);
  item->policy = std::move(policy);
  item->local = std::move(local);
  shared_->Come(item, now);
}

bool ForwardingGate::leads() const {
  return shared_->ready.load(std::memory_order_acquire) &&
         shared_->lanes_n.load(std::memory_order_relaxed) == 0;
}

std::size_t ForwardingGate::held() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->held;
}

}  // namespace triad::broker
