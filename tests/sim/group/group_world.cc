#include "tests/sim/group/group_world.h"

#include <sstream>

#include "tests/sim/git_commit.h"

namespace triad::sim {
namespace {

constexpr Micros kHealedMax = 60 * kSecond;
constexpr Micros kFailoverMax = 12 * kSecond;  // 20 election timeouts
// So long a group that need not serve is asked to.
constexpr Micros kBeyondLooks = 12 * kSecond;
constexpr std::uint64_t kScanEvery = 1000;
constexpr Micros kLookEvery = 20 * kMs;

}  // namespace

GroupWorld::GroupWorld(const GroupOptions& options, bool print, std::uint64_t until)
    : options_(options),
      journal_(print),
      disk_dice_(options.seed ^ 0x6469736bu),
      dice_(options.seed ^ 0x64696365u),
      client_dice_(options.seed ^ 0x636c69656e74u),
      nemesis_dice_(options.seed ^ 0x6e656d65736973u),
      oracle_(options_, loop_),
      net_(options_, loop_, oracle_),
      until_(until) {
  const SimPeer::World world{options_,
                             loop_,
                             net_,
                             oracle_,
                             disk_dice_,
                             dice_,
                             [this] { return PeersInFiles(); },
                             [this](int index, const std::string& why) { OnDied(index, why); }};
  std::vector<SimPeer*> all;
  for (int i = 0; i < options_.machines(); ++i) {
    const int percent =
        options_.skewed_clocks ? static_cast<int>(nemesis_dice_.Between(50, 200)) : 100;
    peers_.push_back(std::make_unique<SimPeer>(i, world, percent));
    all.push_back(peers_.back().get());
  }
  oracle_.SetPeers(all);
  net_.SetPeers(all);
  const ClientWorld clients{options_,     loop_,           net_, oracle_, journal_,
                            client_dice_, has_dedup_topic_};
  int node = options_.machines();
  for (int i = 0; i < options_.producers; ++i) {
    producers_.push_back(std::make_unique<Producer>(clients, node++));
  }
  for (int i = 0; i < options_.consumers; ++i) {
    others_.push_back(std::make_unique<Consumer>(clients, node++));
  }
  if (options_.dedup || options_.topics) {
    others_.push_back(std::make_unique<TopicKeeper>(clients, node++));
  }
  for (int i = 0; i < options_.lockers; ++i) {
    others_.push_back(std::make_unique<Locker>(clients, node++));
  }
  if (options_.member_every > 0) {
    member_keeper_ = std::make_unique<MemberKeeper>(
        clients, node++,
        MemberKeeper::Ground{peers_, [this](int machine) { StartNewPeer(machine); }});
  }
  for (int i = 0; i < options_.machines(); ++i) {
    drainers_.push_back(
        std::make_unique<Drainer>(clients, node++, i, [this, i] { RestartDamaged(i); }));
  }
}

GroupWorld::~GroupWorld() = default;

bool GroupWorld::Run() {
  for (int i = 0; i < options_.peers; ++i) {
    loop_.After(nemesis_dice_.Between(0, 50 * kMs), [this, i] { StartPeer(i); });
  }
  for (const auto& producer : producers_) producer->Begin();
  for (const auto& other : others_) other->Begin();
  if (member_keeper_) member_keeper_->Begin();
  ScheduleNemesis();
  loop_.At(options_.fault_time, [this] { Heal(); });
  Micros look_at = 0;
  while (!oracle_.violation() && loop_.steps() < until_ && loop_.RunOne()) {
    if (loop_.steps() % kScanEvery == 0) oracle_.FullScan();
    if (!healed_ || loop_.now() < look_at) continue;
    look_at = loop_.now() + kLookEvery;
    if (IsOver()) break;
  }
  if (!oracle_.violation() && loop_.steps() < until_) CheckEnd();
  counts_.steps = loop_.steps();
  counts_.entries = oracle_.applied();
  counts_.acked = oracle_.acked();
  counts_.drops = oracle_.drops();
  counts_.snapshots = oracle_.installs();
  counts_.halves = net_.halves();
  counts_.members_added = oracle_.changes().added;
  counts_.promotions = oracle_.changes().promoted;
  counts_.members_removed = oracle_.changes().removed;
  if (member_keeper_) {
    counts_.leaders_removed = member_keeper_->leaders_removed();
    counts_.dead_removed = member_keeper_->dead_removed();
    counts_.changes_refused = member_keeper_->refused();
    counts_.changes_unknown = member_keeper_->unknown();
  }
  for (const auto& p : peers_) {
    const SimFaultsMet met = p->fs().met();
    counts_.disk_errors += met.errors;
    counts_.full_disks += met.no_space;
    counts_.short_writes += met.short_writes;
    counts_.bad_sectors += met.bad_sectors;
    counts_.misdirected += met.misdirected;
    counts_.lies += met.lies;
    counts_.holds += p->holds();
  }
  return !oracle_.violation().has_value();
}

// After healing.
bool GroupWorld::IsOver() {
  if (options_.beyond != GroupOptions::Beyond::kNo) {
    return loop_.now() > options_.fault_time + kBeyondLooks;
  }
  if (IsWell()) return true;
  const Micros served_since = options_.fault_time + kFailoverMax;
  if (!options_.long_hang) oracle_.CheckLate(served_since);
  if (loop_.now() > options_.fault_time + kHealedMax) {
    oracle_.Fail("liveness", "the group does not serve again, or does not hold everything");
  }
  return false;
}

void GroupWorld::CheckEnd() {
  oracle_.FullScan();
  if (options_.beyond == GroupOptions::Beyond::kNo) return oracle_.CheckMajorities(false);
  oracle_.CheckIntact();
}

// A machine that nobody needs joins the group, with an empty disk. One whose peer was removed comes
// back as another.
void GroupWorld::StartNewPeer(int machine) {
  if (oracle_.WasRemoved(peer(machine).id())) {
    ++counts_.renewed;
    has_rotten_state_[static_cast<std::size_t>(machine)] = false;
    peer(machine).Renew();
    journal_.Note(loop_.now(), machine, "is another peer");
  }
  StartPeer(machine);
}

// The members, and whoever was started to become one.
std::vector<PeerId> GroupWorld::PeersInFiles() const {
  std::vector<PeerId> ids;
  for (const auto& p : peers_) {
    const bool is_new = p->was_started() && !oracle_.WasRemoved(p->id());
    if (oracle_.IsMember(p->index()) || is_new) ids.push_back(p->id());
  }
  return ids;
}

void GroupWorld::StartPeer(int index) {
  if (peer(index).up()) return;
  ++counts_.starts;
  const Status started = peer(index).Start();
  journal_.Note(loop_.now(), index, started.ok() ? "starts" : "does not start",
                static_cast<std::uint64_t>(started.code()));
  if (started.ok()) return;
  OnRefused(index, started);
  RestartLater(index);
}

// Its state rotted, and the log does not reach back to what is left of it: the message asks for
// another disk.
void GroupWorld::OnRefused(int index, const Status& why) {
  last_refusal_ = why.ToString();
  bool& is_rotten = has_rotten_state_[static_cast<std::size_t>(index)];
  if (!is_rotten || why.code() != StatusCode::kCorruption || !oracle_.MayDamage(index)) return;
  is_rotten = false;
  ++counts_.replaced;
  journal_.Note(loop_.now(), index, "gets another disk");
  peer(index).LoseDisk();
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
    p->fs().MendSectors();
    p->fs().set_capacity(UINT64_MAX);
    p->fs().set_total_bytes(UINT64_MAX);
    p->fs().set_names_full(false);
    if (!p->was_started() && !oracle_.IsMember(p->index())) continue;  // a spare that nobody needed
    loop_.After(0, [this, i = p->index()] { StartPeer(i); });
  }
  for (const auto& producer : producers_) producer->Finish();
  for (const auto& other : others_) other->Finish();
  if (member_keeper_) member_keeper_->Finish();
  // What is in flight has its answer by then.
  loop_.After(4 * kSecond, [this] {
    for (std::size_t i = 0; i < producers_.size(); ++i) SendLast(i);
    // It may never be acknowledged; what can be read is to be right all the same.
    if (options_.beyond != GroupOptions::Beyond::kNo) Drain();
  });
}

void GroupWorld::SendLast(std::size_t producer) {
  producers_[producer]->SendLast([this] {
    if (++last_sends_ == producers_.size() && options_.beyond == GroupOptions::Beyond::kNo) Drain();
  });
}

void GroupWorld::Drain() {
  for (const auto& drainer : drainers_) drainer->Begin();
}

// What the line in the peer's log asks for: its next start verifies the whole log and fetches what
// is damaged.
void GroupWorld::RestartDamaged(int index) {
  if (!peer(index).up() || !oracle_.IsMember(index)) return;
  ++counts_.repairs;
  journal_.Note(loop_.now(), index, "is restarted to be repaired");
  peer(index).Stop();
  RestartLater(index);
}

bool GroupWorld::IsWell() {
  for (const auto& p : peers_) {
    if (!oracle_.IsMember(p->index())) continue;
    if (!drainers_[static_cast<std::size_t>(p->index())]->done()) return false;
    if (!p->up() || p->node()->leader_info().recovering) return false;
  }
  return oracle_.AllDelivered();
}

std::string GroupWorld::Report() const {
  std::ostringstream out;
  const GroupViolation violation =
      oracle_.violation().value_or(GroupViolation{.invariant = "CHECK", .detail = "see above"});
  out << "==== sim_broker: " << violation.invariant << " violated: " << violation.detail << "\n"
      << "commit " << GitCommit() << "\n"
      << ToString(options_) << "\nstep " << loop_.steps() << " at " << loop_.now() << " us, "
      << oracle_.applied() << " entries committed, trace " << journal_.hash() << "\n"
      << ToString(counts_) << "\n";
  for (const auto& p : peers_) {
    out << p->id().value() << (oracle_.IsMember(p->index()) ? "" : " (no member)");
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
  out << "reproduce: sim_broker --seed " << options_.seed << " --schedules 1"
      << (options_.beyond == GroupOptions::Beyond::kNo ? "" : " --beyond") << " --until "
      << loop_.steps() << " --trace\n====\n";
  return out.str();
}

}  // namespace triad::sim
