// The operator of a group that changes, around the size it began with.

#include <algorithm>
#include <array>
#include <utility>

#include "dledger/raft/membership.h"
#include "remoting/codes.h"
#include "tests/sim/group/group_clients.h"
#include "tests/sim/group/sim_peer.h"

namespace triad::sim {
namespace {

using dledger::ChangeRefusal;
using dledger::MembershipOp;
using remoting::Command;
using Change = GroupOracle::Change;

const char* NameOf(MembershipOp op) {
  switch (op) {
    case MembershipOp::kAddLearner: return "add";
    case MembershipOp::kPromote: return "promote";
    case MembershipOp::kRemove: return "remove";
  }
  return "";
}

// Refused by the leader's rules. Any other answer leaves it open.
bool IsRefusal(const Command& answer) {
  constexpr std::array kRules = {ChangeRefusal::kNotReady,      ChangeRefusal::kInFlight,
                                 ChangeRefusal::kTransferring,  ChangeRefusal::kUnknownPeer,
                                 ChangeRefusal::kAlreadyMember, ChangeRefusal::kLastVoter,
                                 ChangeRefusal::kNotCaughtUp,   ChangeRefusal::kNoQuorum};
  return std::any_of(kRules.begin(), kRules.end(), [&](ChangeRefusal rule) {
    return answer.remark.find(dledger::Describe(rule)) != std::string::npos;
  });
}

}  // namespace

const SimPeer& MemberKeeper::peer(const PeerId& id) const {
  return *ground_.peers[static_cast<std::size_t>(MachineOf(id))];
}

bool MemberKeeper::IsHere(const PeerId& id) const {
  return peer(id).id() == id;
}

void MemberKeeper::Next() {
  if (finishing_) return;
  Later(world_.options.member_every, [this] {
    if (finishing_) return;
    const std::optional<Change> change = Pick();
    change ? Demand(*change) : Next();
  });
}

std::size_t MemberKeeper::VotersLeft() const {
  const auto& voters = world_.oracle.membership().voters;
  return static_cast<std::size_t>(
      std::count_if(voters.begin(), voters.end(), [this](const PeerId& id) {
        return !world_.oracle.IsOpen({MembershipOp::kRemove, id});
      }));
}

// New ones in, dead ones out, now and then the leader.
std::optional<Change> MemberKeeper::Pick() {
  if (world_.oracle.applied() == 0) return std::nullopt;  // there is no group yet
  const dledger::Membership& now = world_.oracle.membership();
  std::vector<PeerId> learners = now.learners;
  std::erase_if(learners, [this](const PeerId& id) { return !IsHere(id); });
  if (!learners.empty() && !world_.dice.OneIn(4)) {
    return Change(MembershipOp::kPromote, learners[world_.dice.Below(learners.size())]);
  }
  const std::size_t voters = now.voters.size();
  const bool is_small = voters < static_cast<std::size_t>(world_.options.peers);
  const bool may_grow =
      voters + now.learners.size() < static_cast<std::size_t>(world_.options.voters_max());
  if (may_grow && (is_small || world_.dice.OneIn(2))) return PickNew();
  return PickRemoval();
}

// A removed peer's machine comes back as another peer.
std::optional<Change> MemberKeeper::PickNew() {
  std::vector<int> free;
  for (const auto& p : ground_.peers) {
    const bool was_asked = world_.oracle.IsOpen({MembershipOp::kAddLearner, p->id()});
    if (!world_.oracle.IsMember(p->index()) && !was_asked) free.push_back(p->index());
  }
  if (free.empty()) return std::nullopt;
  const int machine = free[world_.dice.Below(free.size())];
  ground_.start(machine);
  return Change(MembershipOp::kAddLearner, ground_.peers[static_cast<std::size_t>(machine)]->id());
}

std::optional<Change> MemberKeeper::PickRemoval() {
  const dledger::Membership& now = world_.oracle.membership();
  std::vector<PeerId> all = now.learners;
  if (VotersLeft() > static_cast<std::size_t>(world_.options.voters_min())) {
    all.insert(all.end(), now.voters.begin(), now.voters.end());
  }
  if (all.empty()) return std::nullopt;
  PeerId chosen = all[world_.dice.Below(all.size())];
  const bool wants_dead = world_.dice.OneIn(2);
  const bool wants_leader = world_.dice.OneIn(3);
  for (const PeerId& id : all) {
    const SimPeer& p = peer(id);
    const bool is_dead = !IsHere(id) || !p.up();
    const bool leads = !is_dead && p.leads();
    if ((is_dead && wants_dead) || (leads && !wants_dead && wants_leader)) chosen = id;
  }
  return Change(MembershipOp::kRemove, chosen);
}

void MemberKeeper::Demand(const Change& change) {
  const auto& [op, id] = change;
  if (op == MembershipOp::kRemove) {
    const SimPeer& p = peer(id);
    if (!IsHere(id) || !p.up()) dead_.insert(id);
    if (IsHere(id) && p.up() && p.leads()) leaders_.insert(id);
  }
  world_.oracle.OnChangeAsked(change);
  world_.journal.Note(world_.loop.now(), MachineOf(id), NameOf(op));
  Command command = Command::Request(remoting::kTriadChangeMembership);
  command.ext.Set("op", NameOf(op));
  command.ext.Set("id", id.value());
  command.ext.Set("address", PeerAddressOf(MachineOf(id)));
  Ask(std::move(command), [this, change](const Result<Command>& answer) {
    OnAnswer(change, answer);
    Next();
  });
}

void MemberKeeper::OnAnswer(const Change& change, const Result<Command>& answer) {
  world_.journal.Note(world_.loop.now(), MachineOf(change.second), "change answered",
                      answer.ok() ? static_cast<std::uint64_t>(answer->code) : 999);
  if (answer.ok() && answer->code == remoting::kSuccess) return;
  AnotherPeer();
  const bool is_refused = answer.ok() ? IsRefusal(*answer) : remoting::NeverSent(answer.status());
  if (!is_refused) {
    ++unknown_;
    return;
  }
  ++refused_;
  world_.oracle.OnChangeRefused(change);
}

std::uint64_t MemberKeeper::CountRemoved(const std::set<PeerId>& ids) const {
  return static_cast<std::uint64_t>(std::count_if(
      ids.begin(), ids.end(), [this](const PeerId& id) { return world_.oracle.WasRemoved(id); }));
}

}  // namespace triad::sim
