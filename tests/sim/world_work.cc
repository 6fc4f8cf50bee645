#include <algorithm>

#include "dledger/raft/membership.h"
#include "tests/sim/world.h"

namespace triad::sim {

void World::ScheduleWork() {
  Push(now_ + client_dice_.Gap(options_.propose_every), EventKind::kPropose, -1);
  if (options_.read_every > 0) {
    Push(now_ + client_dice_.Gap(options_.read_every), EventKind::kRead, -1);
  }
  if (options_.transfer_every > 0) {
    Push(now_ + client_dice_.Gap(options_.transfer_every), EventKind::kTransfer, -1);
  }
}

// Any peer that believes it leads; with several, each has its turn.
int World::PickLeader(bool ready) {
  const int start = static_cast<int>(client_dice_.Below(nodes_.size()));
  for (int i = 0; i < options_.nodes(); ++i) {
    const int n = (start + i) % options_.nodes();
    if (!node(n).up() || now_ < peer(n).paused_until) continue;
    const Core& core = node(n).core();
    if (core.role() != Role::kLeader) continue;
    if (!ready || (core.leader_ready() && !core.transferring())) return n;
  }
  return -1;
}

void World::ProposeOn(int n, dledger::EntryType type, std::size_t bytes) {
  ++counts_.proposals;
  ReplayAckTo(n);
  EntryRef entry = node(n).NextEntry(type, next_number_++, std::string(bytes, 'x'));
  trace_.Add({.at = now_,
              .kind = EventKind::kPropose,
              .node = n,
              .a = entry->index.value(),
              .b = entry->term.value()});
  StepNode(n, dledger::Propose{.entry = std::move(entry)});
}

void World::Propose() {
  const Micros every = healed_ ? 50 * kMillisecond : options_.propose_every;
  Push(now_ + client_dice_.Gap(every), EventKind::kPropose, -1);
  std::int64_t burst = client_dice_.Between(1, options_.burst_max);
  for (; burst > 0; --burst) {
    const int n = PickLeader(/*ready=*/true);
    if (n < 0) return;
    ProposeOn(n, dledger::EntryType::kBatch,
              static_cast<std::size_t>(client_dice_.Between(1, options_.payload_max)));
    if (!healed_ || goal_ != LogIndex{0}) continue;
    // The first entry after healing: everybody must get it.
    if (!node(n).up()) continue;
    goal_ = node(n).core().last_index();
    goal_at_ = now_;
  }
}

void World::Noop(const Event& event) {
  const Core& core = node(event.node).core();
  const Term term{event.detail & 0xffffffffu};
  if (core.role() != Role::kLeader || core.term() != term) return;
  ProposeOn(event.node, dledger::EntryType::kNoop, 8);
}

void World::Read() {
  const Micros every = healed_ ? 50 * kMillisecond : options_.read_every;
  Push(now_ + client_dice_.Gap(every), EventKind::kRead, -1);
  const int n = PickLeader(/*ready=*/false);
  if (n < 0) return;
  const std::uint64_t context = next_read_++;
  oracle_.OnReadAsked(context);
  trace_.Add({.at = now_, .kind = EventKind::kRead, .node = n, .a = context});
  StepNode(n, dledger::ReadIndexRequest{.context = context});
}

void World::Transfer() {
  if (healed_) return;
  Push(now_ + client_dice_.Gap(options_.transfer_every), EventKind::kTransfer, -1);
  const int n = PickLeader(/*ready=*/false);
  if (n < 0) return;
  const int to = static_cast<int>(client_dice_.Below(nodes_.size() + 1));
  ++counts_.transfers;
  trace_.Add({.at = now_, .kind = EventKind::kTransfer, .node = n, .peer = to});
  const dledger::TransferLeadership transfer{.to = to < options_.nodes() ? IdOf(to) : PeerId(),
                                             .context = counts_.transfers};
  StepNode(n, transfer);
  if (!client_dice_.Chance(options_.transfer_twice) || !node(n).up()) return;
  StepNode(n, dledger::TransferLeadership{
                  .to = IdOf(static_cast<int>(client_dice_.Below(nodes_.size()))),
                  .context = ++counts_.transfers});
}

void World::Heal() {
  healed_ = true;
  now_ = std::max(now_, options_.fault_time);
  trace_.Add({.at = now_, .kind = EventKind::kHeal});
  network_.Heal();
  const int chosen = static_cast<int>(nemesis_dice_.Below(nodes_.size()));
  if (options_.leave_one_down && oracle_.MayStayDown(chosen)) {
    left_down_ = chosen;
    if (node(left_down_).up()) Crash(left_down_);
  }
  for (int n = 0; n < options_.nodes(); ++n) {
    peer(n).paused_until = 0;
    peer(n).tick_every = dledger::kTickMs * kMillisecond;
    if (n != left_down_ && !node(n).up() && node(n).incarnation() > 0) OnRestart(n);
  }
  // An entry that travels alone takes at most 5.5 ms (load, there, sync, back: the smallest windows
  // let no second one go with it), while clients propose 90 in a second: the shortest log catches
  // up by 1 entry in 11 ms at least.
  constexpr Micros kCatchUpPerEntry = 12 * kMillisecond;
  LogIndex longest{0};
  LogIndex shortest = node(0).log().last();
  for (int n = 0; n < options_.nodes(); ++n) {
    if (node(n).incarnation() == 0) continue;
    longest = std::max(longest, node(n).log().last());
    shortest = std::min(shortest, node(n).log().last());
  }
  well_until_ = options_.fault_time + 20 * 600 * kMillisecond +
                static_cast<Micros>(longest - shortest) * kCatchUpPerEntry;
}

// One leader, an entry proposed after healing applied by all members, none of them recovering.
bool World::IsWell() {
  if (goal_ == LogIndex{0} || oracle_.committed() < goal_) {
    // The leader that took it may have lost its place: take another.
    if (now_ - goal_at_ > 1000 * kMillisecond) goal_ = LogIndex{0};
    return false;
  }
  int leaders = 0;
  for (int n = 0; n < options_.nodes(); ++n) {
    const bool is_member = dledger::IsMember(oracle_.committed_membership(), IdOf(n));
    if (node(n).up() && node(n).core().role() == Role::kLeader) ++leaders;
    if (n == left_down_ || !is_member) continue;
    if (!node(n).up() || node(n).core().recovering() || node(n).applied() < goal_) return false;
  }
  return leaders == 1;
}

}  // namespace triad::sim
