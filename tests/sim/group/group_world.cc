#include "tests/sim/group/group_world.h"

#include <sstream>

namespace triad::sim {
namespace {

constexpr Micros kHealedMax = 60 * kSecond;
constexpr Micros kLookEvery = 20 * kMs;

}  // namespace

void GroupCounts::Add(const GroupCounts& o) {
  steps += o.steps;
  entries += o.entries;
  acked += o.acked;
  starts += o.starts;
  kills += o.kills;
  power_losses += o.power_losses;
  disk_deaths += o.disk_deaths;
  stops += o.stops;
  cuts += o.cuts;
  breaks += o.breaks;
  pauses += o.pauses;
  transfers += o.transfers;
  disk_errors += o.disk_errors;
  full_disks += o.full_disks;
  rot += o.rot;
  drops += o.drops;
  snapshots += o.snapshots;
  repairs += o.repairs;
}

std::string ToString(const GroupCounts& c) {
  std::ostringstream out;
  out << "entries=" << c.entries << " acked=" << c.acked << " starts=" << c.starts
      << " kills=" << c.kills << " power_losses=" << c.power_losses
      << " disk_deaths=" << c.disk_deaths << " stops=" << c.stops << " cuts=" << c.cuts
      << " breaks=" << c.breaks << " pauses=" << c.pauses << " transfers=" << c.transfers
      << " disk_errors=" << c.disk_errors << " full_disks=" << c.full_disks << " rot=" << c.rot
      << " drops=" << c.drops << " snapshots=" << c.snapshots << " repairs=" << c.repairs;
  return out.str();
}

GroupWorld::GroupWorld(const GroupOptions& options, bool print)
    : options_(options),
      journal_(print),
      disk_dice_(options.seed ^ 0x6469736bu),
      dice_(options.seed ^ 0x64696365u),
      client_dice_(options.seed ^ 0x636c69656e74u),
      nemesis_dice_(options.seed ^ 0x6e656d65736973u),
      oracle_(options_),
      net_(options_, loop_, oracle_) {
  const SimPeer::World world{
      options_, loop_, net_, oracle_, disk_dice_, dice_, [this](int index, const std::string& why) {
        OnDied(index, why);
      }};
  std::vector<SimPeer*> all;
  for (int i = 0; i < kPeers; ++i) {
    const int percent =
        options_.skewed_clocks ? static_cast<int>(nemesis_dice_.Between(50, 200)) : 100;
    peers_.push_back(std::make_unique<SimPeer>(i, world, percent));
    all.push_back(peers_.back().get());
  }
  oracle_.SetPeers(all);
  net_.SetPeers(all);
  const ClientWorld clients{options_, loop_, net_, oracle_, journal_, client_dice_};
  int node = kPeers;
  for (int i = 0; i < options_.producers; ++i) {
    producers_.push_back(std::make_unique<Producer>(clients, node++));
  }
  for (int i = 0; i < options_.consumers; ++i) {
    others_.push_back(std::make_unique<Consumer>(clients, node++));
  }
  for (int i = 0; i < options_.lockers; ++i) {
    others_.push_back(std::make_unique<Locker>(clients, node++));
  }
  for (int i = 0; i < kPeers; ++i) {
    drainers_.push_back(
        std::make_unique<Drainer>(clients, node++, i, [this, i] { RestartDamaged(i); }));
  }
}

GroupWorld::~GroupWorld() = default;

bool GroupWorld::Run() {
  for (int i = 0; i < kPeers; ++i) {
    loop_.After(nemesis_dice_.Between(0, 50 * kMs), [this, i] { StartPeer(i); });
  }
  for (const auto& producer : producers_) producer->Begin();
  for (const auto& other : others_) other->Begin();
  ScheduleNemesis();
  loop_.At(options_.fault_time, [this] { Heal(); });
  Micros look_at = 0;
  while (!oracle_.violation() && loop_.RunOne()) {
    if (!healed_ || loop_.now() < look_at) continue;
    look_at = loop_.now() + kLookEvery;
    if (IsWell()) break;
    if (loop_.now() > options_.fault_time + kHealedMax) {
      oracle_.Fail("liveness", "the group does not serve again, or does not hold everything");
    }
  }
  if (!oracle_.violation()) oracle_.CheckMajorities();
  counts_.steps = loop_.steps();
  counts_.entries = oracle_.applied();
  counts_.acked = oracle_.acked();
  counts_.drops = oracle_.drops();
  counts_.snapshots = oracle_.installs();
  return !oracle_.violation().has_value();
}

void GroupWorld::StartPeer(int index) {
  if (peer(index).up()) return;
  ++counts_.starts;
  const Status started = peer(index).Start();
  journal_.Note(loop_.now(), index, started.ok() ? "starts" : "does not start",
                static_cast<std::uint64_t>(started.code()));
  if (started.ok()) return;
  last_refusal_ = started.ToString();
  RestartLater(index);
}

void GroupWorld::RestartLater(int index) {
  const Micros after = healed_ ? 50 * kMs : nemesis_dice_.Between(kMs, options_.restart_after_max);
  loop_.After(after, [this, index] { StartPeer(index); });
}

void GroupWorld::OnDied(int index, const std::string& why) {
  ++counts_.disk_deaths;
  last_death_ = why;
  journal_.Note(loop_.now(), index, "dies of its disk", why.size());
  RestartLater(index);
}

void GroupWorld::Heal() {
  healed_ = true;
  journal_.Note(loop_.now(), -1, "heals");
  net_.Heal();
  for (const auto& p : peers_) {
    p->set_healed();
    p->fs().ClearFaults();
    p->fs().set_capacity(UINT64_MAX);
    loop_.After(0, [this, i = p->index()] { StartPeer(i); });
  }
  for (const auto& producer : producers_) producer->Finish();
  for (const auto& other : others_) other->Finish();
  // What is in flight has its answer by then.
  loop_.After(4 * kSecond, [this] {
    for (std::size_t i = 0; i < producers_.size(); ++i) SendLast(i);
  });
}

void GroupWorld::SendLast(std::size_t producer) {
  producers_[producer]->SendLast([this] {
    if (++last_sends_ == producers_.size()) Drain();
  });
}

void GroupWorld::Drain() {
  for (const auto& drainer : drainers_) drainer->Begin();
}

// What the line in the peer's log asks for: its next start verifies the whole log and fetches what
// is damaged.
void GroupWorld::RestartDamaged(int index) {
  if (!peer(index).up()) return;
  ++counts_.repairs;
  journal_.Note(loop_.now(), index, "is restarted to be repaired");
  peer(index).Stop();
  RestartLater(index);
}

bool GroupWorld::IsWell() {
  for (const auto& drainer : drainers_) {
    if (!drainer->done()) return false;
  }
  for (const auto& p : peers_) {
    if (!p->up() || p->node()->leader_info().recovering) return false;
  }
  return oracle_.AllDelivered();
}

std::string GroupWorld::Report() const {
  std::ostringstream out;
  const GroupViolation violation =
      oracle_.violation().value_or(GroupViolation{.invariant = "CHECK", .detail = "see above"});
  out << "==== sim_broker: " << violation.invariant << " violated: " << violation.detail << "\n"
      << ToString(options_) << "\nstep " << loop_.steps() << " at " << loop_.now() << " us, "
      << oracle_.applied() << " entries committed, trace " << journal_.hash() << "\n"
      << ToString(counts_) << "\n";
  for (const auto& p : peers_) {
    out << "n" << p->index();
    if (!p->up() || p->node() == nullptr) {
      out << " down\n";
      continue;
    }
    const dledger::NodeStatus status = p->node()->status();
    out << (p->paused() ? " paused" : " up") << " role=" << static_cast<int>(status.leader.role)
        << " term=" << status.leader.term << " leader=" << status.leader.leader.value()
        << (status.leader.ready ? " ready" : "") << (status.leader.recovering ? " recovering" : "")
        << " last=" << status.last_index << " commit=" << status.commit_index
        << " applied=" << status.applied_index << " " << status.not_ready_reason
        << "; drain: " << drainers_[static_cast<std::size_t>(p->index())]->ToString() << "\n";
  }
  if (!last_refusal_.empty()) out << "last start that failed: " << last_refusal_ << "\n";
  if (!last_death_.empty()) out << "last death of a disk: " << last_death_ << "\n";
  if (!oracle_.AllDelivered()) out << "delayed messages are still waiting\n";
  out << "last notes:\n" << journal_.LastNotes();
  out << "reproduce: sim_broker --seed " << options_.seed << " --schedules 1 --trace\n====\n";
  return out.str();
}

}  // namespace triad::sim
