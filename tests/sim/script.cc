#include "tests/sim/script.h"

#include <glog/logging.h>

#include <algorithm>
#include <sstream>

#include "dledger/raft/membership.h"
#include "tests/sim/trace.h"

namespace triad::sim {
namespace {

std::vector<std::string> Split(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

int NodeFrom(const std::string& word) {
  const int node = NodeOf(PeerId(word));
  CHECK_GE(node, 0) << "not a peer: " << word;
  return node;
}

// "to=n1" -> "n1"; empty when absent.
std::string Value(const std::vector<std::string>& words, const std::string& key) {
  for (const std::string& word : words) {
    if (word.starts_with(key + "=")) return word.substr(key.size() + 1);
  }
  return {};
}

std::uint64_t Number(const std::vector<std::string>& words, const std::string& key,
                     std::uint64_t otherwise) {
  const std::string value = Value(words, key);
  return value.empty() ? otherwise : std::stoull(value);
}

std::string MessageLine(const Flight& flight) {
  const std::string event =
      ToString(Describe(0, EventKind::kDeliver, flight.to, -1, flight.message));
  return "n" + std::to_string(flight.from) + " -> n" + std::to_string(flight.to) +
         event.substr(event.find("deliver") + 7);
}

std::string_view KindOf(const dledger::Message& message) {
  if (const auto* vote = std::get_if<dledger::VoteRequest>(&message.body)) {
    return vote->pre_vote ? "pre-vote" : "vote";
  }
  if (const auto* append = std::get_if<dledger::AppendRequest>(&message.body)) {
    return append->entries.empty() ? "heartbeat" : "append";
  }
  if (std::holds_alternative<dledger::TimeoutNow>(message.body)) return "timeout-now";
  return "answer";
}

}  // namespace

std::string Script::Run(const std::string& text) {
  Script script;
  std::istringstream in(text);
  std::string result;
  std::string block_output;
  bool in_expected = false;
  for (std::string line; std::getline(in, line);) {
    if (line == "----") {
      result += "----\n" + (block_output.empty() ? "ok\n" : block_output) + "\n";
      block_output.clear();
      in_expected = true;
      continue;
    }
    if (in_expected) {
      if (line.empty()) in_expected = false;
      continue;
    }
    result += line + "\n";
    if (line.empty() || line[0] == '#') continue;
    block_output += script.Execute(Split(line));
  }
  while (result.ends_with("\n\n")) result.pop_back();
  return result;
}

std::string Script::Execute(const Words& words) {
  output_.clear();
  const std::string& verb = words.at(0);
  const auto node = [&words](std::size_t i = 1) { return NodeFrom(words.at(i)); };
  if (verb == "cluster") {
    Cluster(words);
  } else if (verb == "boot") {
    Boot(words);
  } else if (verb == "campaign") {
    Campaign(node());
  } else if (verb == "tick") {
    for (int i = std::stoi(words.at(2)); i > 0; --i) Step(node(), dledger::Tick{});
  } else if (verb == "propose") {
    Propose(node(), dledger::EntryType::kBatch);
  } else if (verb == "sync") {
    SyncNode(node());
  } else if (verb == "deliver") {
    Deliver(words, /*drop=*/false);
  } else if (verb == "drop") {
    Deliver(words, /*drop=*/true);
  } else if (verb == "stabilize") {
    Stabilize(words);
  } else if (verb == "crash") {
    Crash(words);
  } else if (verb == "transfer") {
    Step(node(), dledger::TransferLeadership{.to = IdOf(node(2))});
  } else if (verb == "read") {
    Step(node(), dledger::ReadIndexRequest{.context = Number(words, "context", 1)});
  } else if (verb == "add") {
    Change(node(), dledger::MembershipOp::kAddLearner, node(2));
  } else if (verb == "promote") {
    Change(node(), dledger::MembershipOp::kPromote, node(2));
  } else if (verb == "remove") {
    Change(node(), dledger::MembershipOp::kRemove, node(2));
  } else if (verb == "purge") {
    Purge(words);
  } else if (verb == "take") {
    taken_ = at(node()).TakeSnapshot();
  } else if (verb == "install") {
    Install(node());
  } else if (verb == "sent") {
    Step(node(), dledger::SnapshotSent{.peer = IdOf(node(2)),
                                       .term = at(node()).core().term(),
                                       .ok = words.back() != "failed",
                                       .base_index = taken_->base.first_index - 1});
  } else if (verb == "disconnect") {
    Step(node(), dledger::Disconnected{.peer = IdOf(node(2))});
  } else if (verb == "cut") {
    cuts_[{node(), node(2)}] = true;
    if (Value(words, "way") != "one") cuts_[{node(2), node()}] = true;
  } else if (verb == "heal") {
    cuts_.clear();
  } else if (verb == "state") {
    shown_.clear();
  } else {
    Print("no such command: " + verb);
  }
  PrintChanges();
  return output_;
}

void Script::Cluster(const Words& words) {
  const int voters = static_cast<int>(Number(words, "voters", 3));
  const int spares = static_cast<int>(Number(words, "spares", 0));
  for (int n = 0; n < voters; ++n) founders_.voters.push_back(IdOf(n));
  for (int n = 0; n < voters + spares; ++n) {
    CoreConfig config;
    config.self = IdOf(n);
    config.initial_membership = founders_;
    config.preferred_leader = PeerId(Value(words, "preferred"));
    config.preferred_wait_ticks = static_cast<int>(Number(words, "wait", 1000));
    nodes_.emplace_back(n, std::move(config));
  }
}

// boot n0 term=3 vote=n1 log=1,1,2 recovering
void Script::Boot(const Words& words) {
  const int n = NodeFrom(words.at(1));
  DiskImage& image = at(n).disk().durable();
  if (at(n).incarnation() == 0) {
    image.hard_state.term = Term{Number(words, "term", 0)};
    image.hard_state.voted_for = PeerId(Value(words, "vote"));
    std::istringstream terms(Value(words, "log"));
    for (std::string term; std::getline(terms, term, ',');) {
      const LogIndex index = image.log.last() + 1;
      // The same term and index is the same entry on every peer.
      const auto number = static_cast<std::int64_t>(std::stoull(term) * 1000 + index.value());
      const std::int64_t previous = image.log.NumberAt(image.log.last());
      image.log.Append(MakeEntry(Term{std::stoull(term)}, index, dledger::EntryType::kBatch, number,
                                 previous, std::string(10, 'x')));
    }
  }
  if (words.back() == "recovering") image.recovering = true;
  at(n).Start(/*seed=*/static_cast<std::uint64_t>(n) + 1 + at(n).incarnation() * 100);
}

void Script::Campaign(int n) {
  const auto campaigns = [&] {
    const Role role = at(n).core().role();
    return role == Role::kPreCandidate || role == Role::kCandidate;
  };
  for (int i = 0; i < 1000 && !campaigns(); ++i) Step(n, dledger::Tick{});
}

void Script::Propose(int n, dledger::EntryType type) {
  const Core& core = at(n).core();
  if (core.role() != Role::kLeader) {
    Print("n" + std::to_string(n) + " does not lead");
    return;
  }
  Step(n, dledger::Propose{
              .entry = at(n).NextEntry(type, 1'000'000 + next_number_++, std::string(10, 'x'))});
}

void Script::Change(int leader, dledger::MembershipOp op, int subject) {
  Step(leader,
       dledger::ChangeMembership{
           .context = static_cast<std::uint64_t>(next_number_), .op = op, .peer = IdOf(subject)});
}

// purge n0 first=5; without it: as much as may go.
void Script::Purge(const Words& words) {
  const int n = NodeFrom(words.at(1));
  at(n).SyncState();
  Output out;
  at(n).Purge(LogIndex{Number(words, "first", at(n).MayPurgeBefore().value())}, &out);
}

// The snapshot that was taken last.
void Script::Install(int n) {
  CHECK(taken_.has_value()) << "take one first";
  at(n).Stage(*taken_);
  Step(n, dledger::InstallSnapshot{.base = taken_->base, .applied = taken_->applied});
}

void Script::SyncNode(int n) {
  if (!at(n).up() || at(n).disk().pending() == 0) return;
  const Token token = at(n).disk().Complete(at(n).disk().pending());
  Step(n, dledger::StorageDone{.token = token});
}

void Script::Crash(const Words& words) {
  const int n = NodeFrom(words.at(1));
  at(n).Stop();
  SimDisk& disk = at(n).disk();
  if (words.back() == "power") {
    disk = SimDisk(disk.durable());  // nothing that was not synced survives
  } else {
    disk.CrashProcess();
  }
  if (words.back() == "wiped") {
    DiskImage empty;
    empty.log = SimLog(founders_);
    disk = SimDisk(std::move(empty));
  }
}

// deliver [from=n0] [to=n1] [kind=append]: what waits now, not what it causes.
void Script::Deliver(const Words& words, bool drop) {
  const std::string from = Value(words, "from"), to = Value(words, "to");
  const std::string kind = Value(words, "kind");
  std::deque<Flight> waiting;
  waiting.swap(flying_);
  std::deque<Flight> kept;
  for (Flight& flight : waiting) {
    const bool chosen = (from.empty() || flight.from == NodeFrom(from)) &&
                        (to.empty() || flight.to == NodeFrom(to)) &&
                        (kind.empty() || kind == KindOf(flight.message));
    if (!chosen) {
      kept.push_back(std::move(flight));
      continue;
    }
    if (Cut(flight.from, flight.to)) continue;
    Print((drop ? "dropped " : "") + MessageLine(flight));
    if (drop || !at(flight.to).up()) continue;
    Step(flight.to,
         dledger::MessageIn{.from = IdOf(flight.from), .message = std::move(flight.message)});
  }
  kept.insert(kept.end(), std::make_move_iterator(flying_.begin()),
              std::make_move_iterator(flying_.end()));
  flying_ = std::move(kept);
}

// Until nothing waits any more.
void Script::Stabilize(const Words& words) {
  const bool quiet = words.back() == "quiet";
  const std::string before = output_;
  for (int i = 0; i < 100; ++i) {
    for (int n = 0; n < static_cast<int>(nodes_.size()); ++n) SyncNode(n);
    if (flying_.empty()) break;
    Deliver({"deliver"}, /*drop=*/false);
  }
  if (quiet) output_ = before;
}

void Script::Step(int n, const Input& input) {
  if (!at(n).up()) return;
  Output out;
  at(n).Step(input, &out);
  for (StorageOp& op : out.storage) at(n).disk().Submit(std::move(op));
  for (dledger::Envelope& envelope : out.messages) {
    flying_.push_back(Flight{.from = n,
                             .to = NodeOf(envelope.to),
                             .connection = 0,
                             .message = std::move(envelope.message)});
  }
  PrintAnswers(n, out);
  if (out.committed.has_value()) {
    while (at(n).applied() < *out.committed) at(n).ApplyNext();
  }
  for (const dledger::LoadRequest& load : out.loads) Step(n, at(n).Load(load));
  if (out.want_noop) Propose(n, dledger::EntryType::kNoop);
  if (out.propose_membership.has_value()) {
    Step(n, dledger::Propose{.entry = at(n).NextEntry(dledger::EntryType::kMembership,
                                                      1'000'000 + next_number_++,
                                                      EncodeMembers(*out.propose_membership))});
  }
}

void Script::PrintAnswers(int n, const Output& out) {
  const std::string name = "n" + std::to_string(n);
  for (const dledger::ReadReady& ready : out.reads) {
    Print(name + ": read " + std::to_string(ready.context) + " at " +
          std::to_string(ready.index.value()));
  }
  for (std::uint64_t context : out.reads_failed) {
    Print(name + ": read " + std::to_string(context) + " failed");
  }
  for (const dledger::ChangeFate& fate : out.changes) {
    using Outcome = dledger::ChangeFate::Outcome;
    if (fate.outcome == Outcome::kCommitted) Print(name + ": change committed");
    if (fate.outcome == Outcome::kUnknown) Print(name + ": change of unknown outcome");
    if (fate.outcome == Outcome::kRefused) {
      Print(name + ": change refused: " + std::string(dledger::Describe(fate.why)));
    }
  }
  for (const dledger::TransferFailed& failed : out.transfers_failed) {
    Print(name + ": no transfer: " + std::string(dledger::Describe(failed.why)));
  }
  for (const dledger::SnapshotNeeded& needed : out.snapshots) {
    Print(name + ": " + needed.peer.value() + " needs a snapshot");
  }
  if (out.snapshot_refused) Print(name + ": has no use for the snapshot");
}

std::string Script::StateOf(int n) const {
  const SimNode& node = at(n);
  std::ostringstream out;
  out << "n" << n << ": ";
  if (!node.up()) {
    out << "down";
    return out.str();
  }
  static constexpr const char* kRoles[] = {"follower", "pre-candidate", "candidate", "leader"};
  const Core& core = node.core();
  out << kRoles[static_cast<int>(core.role())] << " term=" << core.term();
  if (!core.leader().empty()) out << " leader=" << core.leader().value();
  if (core.recovering()) out << " recovering";
  if (core.transferring()) out << " transferring";
  if (!(core.membership() == founders_)) {
    out << " members=";
    for (const PeerId& voter : core.membership().voters) out << voter.value();
    for (const PeerId& learner : core.membership().learners) out << "+" << learner.value();
  }
  out << " log=";
  if (node.log().first() > LogIndex{1}) {
    out << "[" << node.log().base().first_index - 1 << "@" << node.log().base().term << "]";
  }
  for (std::size_t i = 0; i < node.log().size(); ++i) {
    out << (i == 0 ? "" : ",") << node.log().entries()[i]->term;
  }
  out << " durable=" << core.durable_index() << " commit=" << core.commit_index()
      << " applied=" << node.applied();
  return out.str();
}

void Script::PrintChanges() {
  for (int n = 0; n < static_cast<int>(nodes_.size()); ++n) {
    if (at(n).incarnation() == 0) continue;  // not booted yet
    const std::string state = StateOf(n);
    if (shown_[n] == state) continue;
    shown_[n] = state;
    Print(state);
  }
}

}  // namespace triad::sim
