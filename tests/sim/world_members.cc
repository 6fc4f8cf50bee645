// Memberships that change, logs whose beginning goes, snapshots for those who need what is gone.

#include <algorithm>

#include "dledger/raft/membership.h"
#include "tests/sim/world.h"

namespace triad::sim {

using dledger::MembershipOp;

void World::ScheduleMembers() {
  if (options_.member_every > 0) {
    Push(now_ + client_dice_.Gap(options_.member_every), EventKind::kChange, -1);
  }
  if (options_.purge_every > 0) {
    Push(now_ + nemesis_dice_.Gap(options_.purge_every), EventKind::kPurge, -1);
  }
}

// Around its first size: new ones in, dead ones out, now and then the leader, now and then what
// makes no sense.
dledger::ChangeMembership World::PickChange(const Membership& membership) {
  std::vector<int> strangers, down;
  for (int n = 0; n < options_.nodes(); ++n) {
    if (!dledger::IsMember(membership, IdOf(n))) {
      strangers.push_back(n);
    } else if (!node(n).up()) {
      down.push_back(n);
    }
  }
  const auto any = [this](const std::vector<int>& of) {
    return IdOf(of[client_dice_.Below(of.size())]);
  };
  dledger::ChangeMembership change{
      .context = next_change_++, .op = MembershipOp::kRemove, .peer = {}};
  change.peer = IdOf(static_cast<int>(client_dice_.Below(nodes_.size())));
  const bool is_small = membership.voters.size() < static_cast<std::size_t>(options_.voters);
  const bool is_large = membership.voters.size() > static_cast<std::size_t>(options_.voters);
  if (client_dice_.OneIn(12)) {  // anything at all
    change.op = static_cast<MembershipOp>(client_dice_.Below(3));
  } else if (!membership.learners.empty() && !client_dice_.OneIn(4)) {
    change.op = MembershipOp::kPromote;
    change.peer = membership.learners[client_dice_.Below(membership.learners.size())];
  } else if (!strangers.empty() && !is_large && (is_small || client_dice_.OneIn(2))) {
    change.op = MembershipOp::kAddLearner;
    change.peer = any(strangers);
  } else if (!down.empty() && client_dice_.OneIn(2)) {
    change.peer = any(down);
  } else if (const int leader = PickLeader(/*ready=*/true); leader >= 0 && client_dice_.OneIn(3)) {
    change.peer = IdOf(leader);
  }
  // Two voters of which one lost its disk are none: a group that small removes the broken one
  // first.
  for (const PeerId& voter : membership.voters) {
    const bool is_broken = node(NodeOf(voter)).disk().durable().recovering;
    const bool shrinks = change.op == MembershipOp::kRemove && membership.voters.size() <= 3;
    if (is_broken && shrinks && dledger::IsVoter(membership, change.peer)) change.peer = voter;
  }
  // Nor does anybody make a broken one the second of two while its leader cannot know yet.
  const bool grows_to_two = change.op == MembershipOp::kPromote && membership.voters.size() == 1;
  if (grows_to_two && node(NodeOf(change.peer)).disk().durable().recovering) {
    change.op = MembershipOp::kAddLearner;  // it is one
  }
  return change;
}

void World::ChangeMembers() {
  if (healed_) return;
  Push(now_ + client_dice_.Gap(options_.member_every), EventKind::kChange, -1);
  const int n = PickLeader(/*ready=*/client_dice_.OneIn(2));
  if (n < 0) return;
  const dledger::ChangeMembership change = PickChange(node(n).core().membership());
  Change(n, change);
  // Another one at once: one of the two must be refused.
  if (client_dice_.OneIn(8) && node(n).up()) {
    Change(n, PickChange(node(n).core().membership()));
  }
}

void World::Change(int n, const dledger::ChangeMembership& change) {
  ++counts_.changes;
  changes_[change.context] = change;
  const int subject = NodeOf(change.peer);
  trace_.Add({.at = now_,
              .kind = EventKind::kChange,
              .node = n,
              .peer = subject,
              .a = static_cast<std::uint64_t>(change.op),
              .b = change.context});
  // A new machine is started before it is added.
  if (change.op == MembershipOp::kAddLearner && node(subject).incarnation() == 0) {
    node(subject).disk().durable().recovering = options_.fresh_recovering;
    OnRestart(subject);
  }
  change_now_ = change.context;
  StepNode(n, change);
}

void World::ProposeMembers(int n, const Membership& membership) {
  ++counts_.proposals;
  EntryRef entry =
      node(n).NextEntry(dledger::EntryType::kMembership, next_number_++, EncodeMembers(membership));
  oracle_.OnChangeProposed(change_now_, entry);
  trace_.Add({.at = now_,
              .kind = EventKind::kPropose,
              .node = n,
              .a = entry->index.value(),
              .b = entry->term.value()});
  StepNode(n, dledger::Propose{.entry = std::move(entry)});
}

void World::OnFate(int n, const dledger::ChangeFate& fate) {
  trace_.Add({.at = now_,
              .kind = EventKind::kFate,
              .node = n,
              .a = static_cast<std::uint64_t>(fate.outcome),
              .b = static_cast<std::uint64_t>(fate.why)});
  oracle_.OnChangeFate(n, fate);
  const dledger::ChangeMembership& change = changes_[fate.context];
  switch (fate.outcome) {
    case dledger::ChangeFate::Outcome::kRefused: ++counts_.changes_refused; return;
    case dledger::ChangeFate::Outcome::kUnknown: ++counts_.changes_unknown; return;
    case dledger::ChangeFate::Outcome::kCommitted: break;
  }
  switch (change.op) {
    case MembershipOp::kAddLearner: ++counts_.learners_added; return;
    case MembershipOp::kPromote: ++counts_.promotions; return;
    case MembershipOp::kRemove: ++counts_.removals;
  }
  if (change.peer == IdOf(n)) ++counts_.leaders_removed;
  if (!node(NodeOf(change.peer)).up()) ++counts_.dead_removed;
}

void World::Purge() {
  if (healed_) return;
  Push(now_ + nemesis_dice_.Gap(options_.purge_every), EventKind::kPurge, -1);
  const int n = static_cast<int>(nemesis_dice_.Below(nodes_.size()));
  if (!node(n).up() || now_ < peer(n).paused_until) return;
  const LogIndex first = node(n).log().first();
  const LogIndex most = node(n).MayPurgeBefore();
  if (most == first) return;
  const LogIndex upto =
      nemesis_dice_.OneIn(2) ? most : first + 1 + nemesis_dice_.Below(most - first);
  ++counts_.purges;
  trace_.Add({.at = now_, .kind = EventKind::kPurge, .node = n, .a = upto.value()});
  output_.Clear();
  node(n).Purge(upto, &output_);
  oracle_.OnStepped(n);
  oracle_.OnDurable(n);
}

void World::SendSnapshot(int n, const dledger::SnapshotNeeded& needed) {
  const int to = NodeOf(needed.peer);
  const auto slot = static_cast<std::uint32_t>(snapshots_.size());
  snapshots_.push_back(SnapshotFlight{.from = n,
                                      .to = to,
                                      .from_incarnation = node(n).incarnation(),
                                      .term = needed.term,
                                      .snapshot = node(n).TakeSnapshot()});
  const bool fails = !healed_ && nemesis_dice_.Chance(options_.snapshot_fails);
  const Micros time = healed_ ? 5 * kMillisecond : options_.snapshot_time_max;
  const Micros at = now_ + nemesis_dice_.Between(1, time);
  if (fails) {
    ++counts_.snapshots_failed;
    Push(at, EventKind::kSnapshotSent, n, 0, slot);
    return;
  }
  Push(at, EventKind::kSnapshot, to, 0, slot);
  if (healed_ || !nemesis_dice_.Chance(options_.snapshot_again)) return;
  snapshots_.push_back(snapshots_.back());
  snapshots_.back().again = true;
  Push(at + nemesis_dice_.Between(1, 1000 * kMillisecond), EventKind::kSnapshot, to, 0, slot + 1);
}

void World::OnSnapshot(const Event& event) {
  SnapshotFlight& flight = snapshots_[event.slot];
  const int to = flight.to;
  flight.ok = node(to).up();
  if (node(to).up()) {
    const Snapshot& snapshot = flight.snapshot;
    const bool needless = oracle_.CanDoWithout(to, snapshot);
    trace_.Add({.at = now_,
                .kind = EventKind::kSnapshot,
                .node = to,
                .peer = flight.from,
                .a = snapshot.base.first_index.value(),
                .b = snapshot.applied.value()});
    node(to).Stage(snapshot);
    StepNode(to, dledger::InstallSnapshot{.base = snapshot.base, .applied = snapshot.applied});
    const bool is_taken = !output_.snapshot_refused;
    if (is_taken && needless) {
      oracle_.Fail("R9", "n" + std::to_string(to) + " throws away a log it may have vouched for");
    }
    ++(is_taken ? counts_.snapshots_installed : counts_.snapshots_refused);
  }
  if (flight.again) return;
  Push(now_ + nemesis_dice_.Between(50, 2000), EventKind::kSnapshotSent, flight.from, 0,
       event.slot);
}

void World::OnSnapshotSent(const Event& event) {
  const SnapshotFlight& flight = snapshots_[event.slot];
  if (!node(flight.from).up() || node(flight.from).incarnation() != flight.from_incarnation) return;
  trace_.Add({.at = now_,
              .kind = EventKind::kSnapshotSent,
              .node = flight.from,
              .peer = flight.to,
              .a = flight.ok ? 1u : 0u});
  StepNode(flight.from, dledger::SnapshotSent{.peer = IdOf(flight.to),
                                              .term = flight.term,
                                              .ok = flight.ok,
                                              .base_index = flight.snapshot.base.first_index - 1});
}

}  // namespace triad::sim
