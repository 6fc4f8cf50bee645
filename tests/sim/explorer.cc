#include "tests/sim/explorer.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "tests/sim/network.h"
#include "tests/sim/oracle.h"
#include "tests/sim/trace.h"

namespace triad::sim {
namespace {

constexpr int kPeers = 3;
constexpr std::size_t kFlyingMax = 14;  // more is not followed

enum class Kind : std::uint8_t {
  kDeliver,
  kSync,
  kTimeout,
  kPropose,
  kCrash,
  kRestart,
  kCut,
  kBeat
};
struct Action {
  Kind kind = Kind::kSync;
  std::uint8_t which = 0;  // a peer, a pair, or a place among what flies
};
struct Left {  // of what is rationed
  int timeouts = 2, proposals = 2, crashes = 1, cuts = 1, beats = 1;
};

std::uint64_t Mix(std::uint64_t hash, std::uint64_t value) {
  std::uint64_t seed = hash ^ (value * 0x9e3779b97f4a7c15u);
  return SplitMix(&seed);
}

Options ThreePeers() {
  Options options;
  options.voters = kPeers;
  return options;
}

std::vector<SimNode> Peers(const Options& options) {
  std::vector<SimNode> nodes;
  for (int n = 0; n < kPeers; ++n) {
    CoreConfig config;
    config.self = IdOf(n);
    config.initial_membership = options.Founders();
    nodes.emplace_back(n, std::move(config));
  }
  return nodes;
}

class Machine {
 public:
  Machine() : options_(ThreePeers()), nodes_(Peers(options_)), oracle_(options_, nodes_) {
    for (int n = 0; n < kPeers; ++n) Start(n);
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  void SettleWithLeader();
  std::vector<Action> Possible() const;
  void Do(Action action);
  std::uint64_t Hash() const;
  const Oracle& oracle() const { return oracle_; }
  std::uint64_t steps() const { return steps_; }

 private:
  SimNode& at(int n) { return nodes_[static_cast<std::size_t>(n)]; }
  const SimNode& at(int n) const { return nodes_[static_cast<std::size_t>(n)]; }
  void Start(int n);
  void Step(int n, const Input& input);
  void Propose(int n, dledger::EntryType type);
  void Sync(int n);
  void Timeout(int n);
  void Crash(int n);
  void Cut(int without);
  bool IsCut(int a, int b) const { return cut_off_ >= 0 && (a == cut_off_ || b == cut_off_); }
  std::uint64_t HashOf(const SimNode& node) const;

  const Options options_;
  std::vector<SimNode> nodes_;
  Oracle oracle_;
  std::vector<Flight> flying_;
  int cut_off_ = -1;
  Left left_;
  std::int64_t next_number_ = 1;
  std::uint64_t steps_ = 0;
};

void Machine::Start(int n) {
  at(n).Start(static_cast<std::uint64_t>(n) + 1 + 10 * at(n).incarnation());
  oracle_.OnRestart(n);
}

void Machine::Step(int n, const Input& input) {
  if (!at(n).up()) return;
  ++steps_;
  const Role role_before = at(n).core().role();
  Output out;
  at(n).Step(input, &out);
  for (const StorageOp& op : out.storage) oracle_.OnStorage(n, op, role_before);
  if (out.soft.has_value()) oracle_.OnRole(n, *out.soft);
  oracle_.OnStepped(n);
  for (dledger::Envelope& envelope : out.messages) {
    oracle_.OnSend(n, envelope);
    const int to = NodeOf(envelope.to);
    if (IsCut(n, to) || flying_.size() >= kFlyingMax) continue;
    flying_.push_back(
        Flight{.from = n, .to = to, .connection = 0, .message = std::move(envelope.message)});
  }
  for (StorageOp& op : out.storage) at(n).disk().Submit(std::move(op));
  if (out.committed.has_value()) {
    while (at(n).applied() < *out.committed && !oracle_.violation().has_value()) {
      at(n).ApplyNext();
      oracle_.OnApplied(n);
    }
  }
  for (const dledger::LoadRequest& load : out.loads) Step(n, at(n).Load(load));
  if (out.want_noop) Propose(n, dledger::EntryType::kNoop);
}

void Machine::Propose(int n, dledger::EntryType type) {
  Step(n, dledger::Propose{.entry = at(n).NextEntry(type, next_number_++, "x")});
}

void Machine::Sync(int n) {
  const Token token = at(n).disk().Complete(at(n).disk().pending());
  oracle_.OnDurable(n);
  Step(n, dledger::StorageDone{.token = token});
}

// The others have lost sight of the leader as well, or nobody would vote.
void Machine::Timeout(int n) {
  for (int other = 0; other < kPeers; ++other) {
    if (other == n || !at(other).up() || at(other).core().role() == Role::kLeader) continue;
    Step(other, dledger::Disconnected{.peer = at(other).core().leader()});
  }
  const auto campaigns = [&] {
    const Role role = at(n).core().role();
    return role == Role::kPreCandidate || role == Role::kCandidate;
  };
  Step(n, dledger::Tick{});
  for (int i = 0; i < 200 && !campaigns(); ++i) Step(n, dledger::Tick{});
}

// What was not synced is lost.
void Machine::Crash(int n) {
  at(n).Stop();
  at(n).disk() = SimDisk(at(n).disk().durable());
  oracle_.OnDurable(n);
}

void Machine::Cut(int without) {
  cut_off_ = without;
  std::erase_if(flying_, [this](const Flight& f) { return IsCut(f.from, f.to); });
}

void Machine::SettleWithLeader() {
  Timeout(0);
  for (int i = 0; i < 30; ++i) {
    for (int n = 0; n < kPeers; ++n) {
      if (at(n).disk().pending() > 0) Sync(n);
    }
    std::vector<Flight> waiting;
    waiting.swap(flying_);
    for (Flight& f : waiting) {
      Step(f.to, dledger::MessageIn{.from = IdOf(f.from), .message = std::move(f.message)});
    }
  }
}

std::vector<Action> Machine::Possible() const {
  std::vector<Action> actions;
  const auto add = [&](Kind kind, std::size_t which) {
    actions.push_back(Action{.kind = kind, .which = static_cast<std::uint8_t>(which)});
  };
  for (std::size_t i = 0; i < flying_.size(); ++i) add(Kind::kDeliver, i);
  for (std::size_t n = 0; n < kPeers; ++n) {
    const SimNode& node = nodes_[n];
    if (!node.up()) {
      add(Kind::kRestart, n);
      continue;
    }
    const bool leads = node.core().role() == Role::kLeader;
    if (node.disk().pending() > 0) add(Kind::kSync, n);
    if (!leads && left_.timeouts > 0) add(Kind::kTimeout, n);
    if (leads && left_.proposals > 0) add(Kind::kPropose, n);
    if (leads && left_.beats > 0) add(Kind::kBeat, n);
    if (left_.crashes > 0) add(Kind::kCrash, n);
    if (left_.cuts > 0) add(Kind::kCut, n);
  }
  return actions;
}

void Machine::Do(Action action) {
  const int n = action.which;
  switch (action.kind) {
    case Kind::kDeliver: {
      Flight f = std::move(flying_[action.which]);
      flying_.erase(flying_.begin() + n);
      Step(f.to, dledger::MessageIn{.from = IdOf(f.from), .message = std::move(f.message)});
      return;
    }
    case Kind::kSync: return Sync(n);
    case Kind::kTimeout: --left_.timeouts; return Timeout(n);
    case Kind::kPropose: --left_.proposals; return Propose(n, dledger::EntryType::kBatch);
    case Kind::kCrash: --left_.crashes; return Crash(n);
    case Kind::kRestart: return Start(n);
    case Kind::kCut: --left_.cuts; return Cut(n);
    case Kind::kBeat:
      --left_.beats;
      for (int i = 0; i < 5; ++i) Step(n, dledger::Tick{});
  }
}

std::uint64_t Machine::HashOf(const SimNode& node) const {
  const DiskImage& image = node.disk().durable();
  std::uint64_t hash = Mix(image.hard_state.term.value(), image.log.size());
  hash = Mix(hash, static_cast<std::uint64_t>(NodeOf(image.hard_state.voted_for) + 1));
  hash = Mix(hash, static_cast<std::uint64_t>(image.log.NumberAt(image.log.last())));
  hash = Mix(hash, node.disk().pending() * 2 + (node.up() ? 1 : 0));
  if (!node.up()) return hash;
  const Core& core = node.core();
  hash = Mix(hash, static_cast<std::uint64_t>(core.role()));
  hash = Mix(hash, core.term().value());
  hash = Mix(hash, static_cast<std::uint64_t>(NodeOf(core.hard_state().voted_for) + 1));
  hash = Mix(hash, static_cast<std::uint64_t>(NodeOf(core.leader()) + 1));
  for (const EntryRef& entry : node.log().entries()) {
    hash = Mix(hash, static_cast<std::uint64_t>(NumberOf(entry)));
  }
  hash = Mix(hash, core.commit_index().value());
  hash = Mix(hash, core.durable_index().value());
  hash = Mix(hash, node.applied().value());
  for (const dledger::PeerProgress& peer : core.progress()) hash = Mix(hash, peer.match.value());
  return hash;
}

std::uint64_t Machine::Hash() const {
  std::uint64_t hash = 0;
  for (const SimNode& node : nodes_) hash = Mix(hash, HashOf(node));
  std::uint64_t flying = 0;  // whatever their order
  for (const Flight& f : flying_) {
    const TraceEvent e = Describe(0, EventKind::kDeliver, f.to, f.from, f.message);
    std::uint64_t one =
        Mix(static_cast<std::uint64_t>(f.to * kPeers + f.from), static_cast<std::uint64_t>(e.what));
    for (const std::uint64_t value : {e.a, e.b, e.c, e.d}) one = Mix(one, value);
    flying += one;
  }
  hash = Mix(hash, flying);
  hash = Mix(hash, static_cast<std::uint64_t>(cut_off_ + 1));
  return Mix(hash,
             static_cast<std::uint64_t>(left_.timeouts + 4 * left_.proposals + 16 * left_.crashes +
                                        32 * left_.cuts + 64 * left_.beats));
}

std::string Names(const std::vector<Action>& path) {
  static constexpr const char* kNames[] = {"deliver", "sync",    "timeout", "propose",
                                           "crash",   "restart", "cut-off", "beat"};
  std::ostringstream out;
  for (const Action& action : path) {
    out << " " << kNames[static_cast<int>(action.kind)] << ":" << static_cast<int>(action.which);
  }
  return out.str();
}

}  // namespace

Exploration Explore(bool from_leader, std::uint64_t states_max) {
  Exploration result;
  std::unordered_set<std::uint64_t> seen;
  std::vector<std::vector<Action>> level = {{}};
  for (; !level.empty(); ++result.depth) {
    std::vector<std::vector<Action>> next;
    for (const std::vector<Action>& path : level) {
      std::vector<Action> possible;
      for (std::size_t i = 0; i == 0 || i < possible.size(); ++i) {
        Machine machine;
        if (from_leader) machine.SettleWithLeader();
        for (const Action& action : path) machine.Do(action);
        if (i == 0) possible = machine.Possible();
        if (possible.empty()) break;
        machine.Do(possible[i]);
        result.steps += machine.steps();
        std::vector<Action> longer = path;
        longer.push_back(possible[i]);
        if (machine.oracle().violation().has_value()) {
          result.violation = machine.oracle().violation()->invariant + ": " +
                             machine.oracle().violation()->detail + " after" + Names(longer);
          return result;
        }
        if (!seen.insert(machine.Hash()).second) continue;
        ++result.states;
        next.push_back(std::move(longer));
        if (result.states >= states_max) return result;
      }
    }
    level = std::move(next);
  }
  result.is_whole = true;
  return result;
}

}  // namespace triad::sim
