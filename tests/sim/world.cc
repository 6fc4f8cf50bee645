#include "tests/sim/world.h"

#include <glog/logging.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

#include "common/mutant.h"
#include "tests/sim/git_commit.h"

namespace triad::sim {
namespace {

constexpr std::uint64_t kFullScanEvery = 1000;

std::vector<SimNode> MakeNodes(const Options& options) {
  std::vector<SimNode> nodes;
  for (int n = 0; n < options.nodes(); ++n) {
    CoreConfig config;
    config.self = IdOf(n);
    config.initial_membership = options.Founders();
    config.heartbeat_ticks = options.heartbeat_ticks;
    config.election_ticks_min = options.election_ticks_min;
    config.election_ticks_max = options.election_ticks_max;
    config.max_inflight_bytes = options.max_inflight_bytes;
    config.max_append_bytes = options.max_append_bytes;
    config.max_window_bytes = options.max_window_bytes;
    if (options.preferred >= 0) config.preferred_leader = IdOf(options.preferred);
    config.preferred_wait_ticks = options.preferred_wait_ticks;
    nodes.emplace_back(n, std::move(config));
  }
  return nodes;
}

}  // namespace

std::span<const CountName> CountNames() {
  static constexpr std::array<CountName, 34> names = {{
      {"steps", &Counts::steps, 10'000'000},
      {"proposals", &Counts::proposals, 500'000},
      {"committed", &Counts::committed, 500'000},
      {"reads", &Counts::reads, 50'000},
      {"elections", &Counts::elections, 20'000},
      {"crashes", &Counts::crashes, 20'000},
      {"power_losses", &Counts::power_losses, 10'000},
      {"wipes", &Counts::wipes, 500},
      {"recoveries", &Counts::recoveries, 500},
      {"transfers", &Counts::transfers, 2'000},
      {"transfers_failed", &Counts::transfers_failed, 500},
      {"cuts", &Counts::cuts, 10'000},
      {"pauses", &Counts::pauses, 4'000},
      {"rings", &Counts::rings, 1'000},
      {"disconnects", &Counts::disconnects, 5'000},
      {"leftovers", &Counts::leftovers, 500},
      {"drops", &Counts::drops, 200'000},
      {"duplicates", &Counts::duplicates, 50'000},
      {"replays", &Counts::replays, 50'000},
      {"disk_hangs", &Counts::disk_hangs, 2'000},
      {"failed_loads", &Counts::failed_loads, 1'000},
      {"changes", &Counts::changes, 10'000},
      {"learners_added", &Counts::learners_added, 2'000},
      {"promotions", &Counts::promotions, 1'000},
      {"removals", &Counts::removals, 1'000},
      {"leaders_removed", &Counts::leaders_removed, 100},
      {"dead_removed", &Counts::dead_removed, 100},
      {"changes_refused", &Counts::changes_refused, 1'000},
      {"changes_unknown", &Counts::changes_unknown, 20},
      {"memberships_truncated", &Counts::memberships_truncated, 5},
      {"purges", &Counts::purges, 5'000},
      {"snapshots_installed", &Counts::snapshots_installed, 500},
      {"snapshots_refused", &Counts::snapshots_refused, 50},
      {"snapshots_failed", &Counts::snapshots_failed, 50},
  }};
  return names;
}

void Counts::Add(const Counts& other) {
  for (const CountName& name : CountNames()) this->*name.count += other.*name.count;
}

World::World(const Options& options, bool print, std::uint64_t until)
    : options_(options),
      until_(until),
      trace_(print),
      nodes_(MakeNodes(options)),
      peers_(nodes_.size()),
      oracle_(options_, nodes_),
      network_(options_, options.seed ^ 0x6e6574u),
      disk_dice_(options.seed ^ 0x6469736bu),
      client_dice_(options.seed ^ 0x636c69656e74u),
      nemesis_dice_(options.seed ^ 0x6e656d65736973u) {
  for (int n = 0; n < options_.nodes(); ++n) {
    peer(n).tick_every = dledger::kTickMs * kMillisecond;
    if (options_.skewed_clocks) {
      peer(n).tick_every = nemesis_dice_.Between(5 * kMillisecond, 20 * kMillisecond);
    }
    if (n < options_.voters + options_.learners) OnRestart(n);
  }
  ScheduleWork();
  ScheduleMembers();
  ScheduleNemesis();
}

bool World::Run() {
  while (!oracle_.violation().has_value() && !events_.empty() && counts_.steps < until_) {
    const Event event = events_.top();
    events_.pop();
    if (!healed_ && event.at >= options_.fault_time) Heal();
    if (healed_ && event.at > well_until_) {
      oracle_.Fail("liveness",
                   "the group does not serve 20 election timeouts and a catch-up after healing");
      break;
    }
    now_ = std::max(now_, event.at);
    Dispatch(event);
    if (healed_ && event.kind == EventKind::kTick && IsWell()) break;
  }
  if (!oracle_.violation().has_value()) oracle_.FullScan();
  counts_.committed = oracle_.committed().value();
  return !oracle_.violation().has_value();
}

void World::Push(Micros at, EventKind kind, int n, std::uint64_t detail, std::uint32_t slot) {
  events_.push(Event{
      .at = at, .sequence = ++sequence_, .kind = kind, .node = n, .detail = detail, .slot = slot});
}

// Meant for an earlier life of the peer.
bool World::IsStale(const Event& event) const {
  switch (event.kind) {
    case EventKind::kTick:
    case EventKind::kDiskDone:
    case EventKind::kStorageNotice:
    case EventKind::kLoaded:
    case EventKind::kNoop:
      return !node(event.node).up() || node(event.node).incarnation() != event.detail >> 32;
    default: return false;
  }
}

void World::Dispatch(const Event& event) {
  if (IsStale(event)) return;
  const bool at_peer = event.node >= 0 && event.kind != EventKind::kDiskDone;
  if (at_peer && now_ < peer(event.node).paused_until) {
    Push(peer(event.node).paused_until, event.kind, event.node, event.detail, event.slot);
    return;
  }
  switch (event.kind) {
    case EventKind::kTick:
      Push(now_ + peer(event.node).tick_every, EventKind::kTick, event.node, event.detail);
      trace_.Add({.at = now_, .kind = EventKind::kTick, .node = event.node});
      StepNode(event.node, dledger::Tick{});
      if (node(event.node).up()) oracle_.OnTicked(event.node);
      return;
    case EventKind::kDeliver: return Deliver(event);
    case EventKind::kDiskDone: return OnDiskDone(event);
    case EventKind::kStorageNotice:
      trace_.Add({.at = now_, .kind = event.kind, .node = event.node, .a = event.slot});
      StepNode(event.node, dledger::StorageDone{.token = event.slot});
      return;
    case EventKind::kLoaded:
      trace_.Add({.at = now_, .kind = event.kind, .node = event.node, .a = event.slot});
      StepNode(event.node, std::exchange(loads_[event.slot], {}));
      return;
    case EventKind::kDisconnected:
      if (!node(event.node).up()) return;
      trace_.Add({.at = now_, .kind = event.kind, .node = event.node, .a = event.detail});
      StepNode(event.node, dledger::Disconnected{.peer = IdOf(static_cast<int>(event.detail))});
      return;
    case EventKind::kRestart:
      if (!node(event.node).up() && event.node != left_down_) OnRestart(event.node);
      return;
    case EventKind::kNoop: return Noop(event);
    case EventKind::kPropose: return Propose();
    case EventKind::kRead: return Read();
    case EventKind::kTransfer: return Transfer();
    case EventKind::kChange: return ChangeMembers();
    case EventKind::kPurge: return Purge();
    case EventKind::kSnapshot: return OnSnapshot(event);
    case EventKind::kSnapshotSent: return OnSnapshotSent(event);
    case EventKind::kNemesis:
      if (!healed_) Nemesis(event.detail);
      return;
    default: LOG(FATAL) << "no such event";
  }
}

void World::Deliver(const Event& event) {
  Flight flight = Take(event.slot);
  const bool is_left = network_.IsLeftover(flight, now_);
  const bool broken = flight.connection != network_.connection(flight.from, flight.to);
  if (!node(flight.to).up() || (broken && !is_left)) return;
  if (is_left) ++counts_.leftovers;
  trace_.Add(Describe(now_, EventKind::kDeliver, flight.to, flight.from, flight.message));
  if (network_.WantsReplay()) {
    if (std::optional<Flight> old = network_.OldMessage(); old.has_value()) {
      Replay(std::move(*old), 300 * kMillisecond);
    }
  }
  network_.Remember(flight);
  StepNode(flight.to,
           dledger::MessageIn{.from = IdOf(flight.from), .message = std::move(flight.message)});
}

void World::Replay(Flight old, Micros within) {
  ++counts_.replays;
  old.connection = network_.connection(old.from, old.to);
  const int to = old.to;
  Push(now_ + network_.dice().Between(1, within), EventKind::kDeliver, to, 0,
       Store(std::move(old)));
}

// A new leader is most easily fooled by what was meant for an earlier one.
void World::ReplayTo(int n) {
  if (healed_) return;
  for (const Flight& old : network_.remembered()) {
    if (old.to == n) Replay(old, 20 * kMillisecond);
  }
}

// Just when the leader waits for an acknowledgement, an old one arrives.
void World::ReplayAckTo(int n) {
  if (healed_ || options_.replay == 0) return;
  const int from = static_cast<int>(network_.dice().Below(nodes_.size()));
  const Flight* old = network_.BoldestAck(from, n);
  if (old != nullptr) Replay(*old, 2 * kMillisecond);
}

void World::StepNode(int n, const Input& input) {
  ++counts_.steps;
  const Role role_before = node(n).core().role();
  const bool was_recovering = node(n).core().recovering();
  const std::size_t members_before = node(n).log().memberships().size();
  output_.Clear();
  node(n).Step(input, &output_);
  const bool cuts = std::any_of(output_.storage.begin(), output_.storage.end(),
                                [](const StorageOp& op) { return op.truncate_from.has_value(); });
  if (cuts && node(n).log().memberships().size() < members_before) ++counts_.memberships_truncated;
  if (was_recovering && !node(n).core().recovering()) ++counts_.recoveries;
  propose_members_.reset();
  Handle(n, role_before);
  if (crash_now_.has_value()) {
    crash_now_.reset();
    Crash(n);
  } else if (propose_members_.has_value()) {
    ProposeMembers(n, *std::exchange(propose_members_, std::nullopt));
  }
  if (counts_.steps % kFullScanEvery == 0) oracle_.FullScan();
}

// What the shell does with an output. Writes and sends go to different threads there, so either may
// come first, and a crash may come between any two of them.
void World::Handle(int n, Role role_before) {
  const bool sends_first = !output_.messages.empty() && disk_dice_.OneIn(2);
  for (const StorageOp& op : output_.storage) oracle_.OnStorage(n, op, role_before);
  counts_.transfers_failed += output_.transfers_failed.size();
  if (!output_.transfers_failed.empty()) oracle_.OnTransferEnded(n);
  if (output_.soft.has_value()) {
    const dledger::SoftState& soft = *output_.soft;
    trace_.Add({.at = now_,
                .kind = EventKind::kRole,
                .node = n,
                .a = static_cast<std::uint64_t>(soft.role),
                .b = soft.term.value()});
    oracle_.OnRole(n, soft);
    if (soft.role == Role::kLeader) {
      ++counts_.elections;
      ReplayTo(n);
    }
  }
  oracle_.OnStepped(n);
  for (const dledger::ChangeFate& fate : output_.changes) OnFate(n, fate);
  std::size_t until_crash = SIZE_MAX;
  if (!healed_ && nemesis_dice_.Chance(options_.crash_in_step)) {
    until_crash = nemesis_dice_.Below(output_.messages.size() + output_.storage.size() + 1);
    crash_now_ = n;
  }
  const auto alive = [&until_crash] { return until_crash == SIZE_MAX || until_crash-- > 0; };
  if (sends_first) {
    for (const auto& envelope : output_.messages) {
      if (alive()) Emit(n, envelope);
    }
  }
  for (StorageOp& op : output_.storage) {
    if (alive()) Submit(n, std::move(op));
  }
  if (!sends_first) {
    for (const auto& envelope : output_.messages) {
      if (alive()) Emit(n, envelope);
    }
  }
  if (crash_now_.has_value()) return;
  for (const dledger::LoadRequest& request : output_.loads) {
    loads_.push_back(node(n).Load(request));
    if (!healed_ && disk_dice_.Chance(options_.load_fails)) {
      ++counts_.failed_loads;
      loads_.back().entries.clear();
    }
    Push(now_ + disk_dice_.Between(20, 3000), EventKind::kLoaded, n, node(n).incarnation() << 32,
         static_cast<std::uint32_t>(loads_.size() - 1));
  }
  if (output_.committed.has_value()) Apply(n, *output_.committed);
  for (const dledger::ReadReady& ready : output_.reads) {
    oracle_.OnReadReady(n, ready);
    ++counts_.reads;
  }
  for (const dledger::SnapshotNeeded& needed : output_.snapshots) SendSnapshot(n, needed);
  propose_members_ = output_.propose_membership;
  if (output_.want_noop) {
    Push(now_ + client_dice_.Between(0, 2000), EventKind::kNoop, n,
         (node(n).incarnation() << 32) | node(n).core().term().value());
  }
}

void World::Apply(int n, LogIndex upto) {
  trace_.Add({.at = now_, .kind = EventKind::kCommit, .node = n, .a = upto.value()});
  // A slow one stops before the end and goes on next time.
  const bool is_slow = options_.slow_apply && !healed_ && disk_dice_.OneIn(2);
  while (node(n).applied() < upto) {
    if (is_slow && disk_dice_.OneIn(3)) break;
    node(n).ApplyNext();
    oracle_.OnApplied(n);
    if (oracle_.violation().has_value()) return;
  }
  if (disk_dice_.OneIn(8)) node(n).SyncState();
}

void World::Submit(int n, StorageOp op) {
  node(n).disk().Submit(std::move(op));
  if (!peer(n).disk_busy) StartDisk(n);
}

// One sync covers what was written before it began.
void World::StartDisk(int n) {
  peer(n).disk_busy = true;
  peer(n).disk_batch = node(n).disk().pending();
  Micros latency = disk_dice_.Between(50, healed_ ? 500 : options_.disk_latency_max);
  if (!healed_ && disk_dice_.Chance(options_.disk_hang)) {
    ++counts_.disk_hangs;
    latency += disk_dice_.Between(0, options_.disk_hang_max);
  }
  Push(now_ + latency, EventKind::kDiskDone, n, node(n).incarnation() << 32);
}

void World::OnDiskDone(const Event& event) {
  const int n = event.node;
  const Token token = node(n).disk().Complete(peer(n).disk_batch);
  trace_.Add({.at = now_, .kind = EventKind::kDiskDone, .node = n, .a = token});
  oracle_.OnDurable(n);
  peer(n).disk_busy = false;
  if (node(n).disk().pending() > 0) StartDisk(n);
  // The answer crosses to the log thread in its own time.
  const Micros at = disk_dice_.OneIn(4) ? now_ + disk_dice_.Between(0, 2000) : now_;
  Push(at, EventKind::kStorageNotice, n, event.detail, static_cast<std::uint32_t>(token));
}

void World::Emit(int n, const dledger::Envelope& envelope) {
  const int to = NodeOf(envelope.to);
  oracle_.OnSend(n, envelope);
  const Network::Arrivals arrivals = network_.Send(n, to, now_);
  if (arrivals.count == 2) ++counts_.duplicates;
  if (arrivals.count == 0) {
    ++counts_.drops;
    trace_.Add({.at = now_, .kind = EventKind::kCut, .node = n, .peer = to});
  }
  for (int i = 0; i < arrivals.count; ++i) {
    Flight flight{
        .from = n, .to = to, .connection = network_.connection(n, to), .message = envelope.message};
    Push(arrivals.at[static_cast<std::size_t>(i)], EventKind::kDeliver, to, 0,
         Store(std::move(flight)));
  }
}

void World::OnRestart(int n) {
  trace_.Add({.at = now_, .kind = EventKind::kRestart, .node = n});
  peer(n).disk_busy = false;
  peer(n).paused_until = 0;
  node(n).Start(nemesis_dice_.Next());
  oracle_.OnRestart(n);
  oracle_.FullScan();
  Push(now_ + nemesis_dice_.Between(1, peer(n).tick_every), EventKind::kTick, n,
       node(n).incarnation() << 32);
}

std::uint32_t World::Store(Flight flight) {
  if (free_flights_.empty()) {
    flights_.push_back(std::move(flight));
    return static_cast<std::uint32_t>(flights_.size() - 1);
  }
  const std::uint32_t slot = free_flights_.back();
  free_flights_.pop_back();
  flights_[slot] = std::move(flight);
  return slot;
}

Flight World::Take(std::uint32_t slot) {
  free_flights_.push_back(slot);
  return std::move(flights_[slot]);
}

std::string World::Report() const {
  std::ostringstream out;
  const Violation violation =
      oracle_.violation().value_or(Violation{.invariant = "CHECK", .detail = "see above"});
  out << "==== sim_raft: " << violation.invariant << " violated: " << violation.detail << "\n"
      << "commit " << GitCommit() << "\n"
      << ToString(options_) << "\nstep " << counts_.steps << " at " << now_ << "us, committed "
      << oracle_.committed() << ", trace " << trace_.hash() << "\n";
  for (const SimNode& n : nodes_) {
    const DiskImage& image = n.disk().durable();
    if (n.incarnation() == 0) continue;
    out << "n" << n.node() << (n.up() ? " up" : " down") << " disk: term=" << image.hard_state.term
        << " voted=" << image.hard_state.voted_for.value() << " log=[" << image.log.first() << ","
        << image.log.last() << "] members=" << EncodeMembers(image.log.membership())
        << "applied=" << image.applied << (image.recovering ? " recovering" : "")
        << " pending=" << n.disk().pending();
    if (n.up()) {
      const Core& core = n.core();
      out << "; core: role=" << static_cast<int>(core.role()) << " term=" << core.term()
          << " leader=" << core.leader().value() << " last=" << core.last_index() << "@"
          << core.last_term() << " commit=" << core.commit_index()
          << " durable=" << core.durable_index() << " applied=" << n.applied();
    }
    out << "\n";
  }
  out << "last events:\n" << trace_.LastEvents();
  out << "reproduce: sim_raft --seed " << options_.seed << " --schedules 1 --until "
      << counts_.steps << " --trace\n====\n";
  return out.str();
}

}  // namespace triad::sim
