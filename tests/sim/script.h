// Script: a hand-written story of a few peers, one command at a time, with what happens beneath.
//
//   propose n0          <- commands, one a line
//   ----
//   n0: leader ...      <- what it prints; ends at an empty line
//
// Nothing moves by itself: messages wait until they are delivered or dropped, writes until they are
// synced. The commands are listed in tests/sim/scripts/README.md. Thread: one.

#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/network.h"
#include "tests/sim/sim_node.h"

namespace triad::sim {

class Script {
 public:
  // Runs every command of `text`. Returns the same text with the output as it is now.
  static std::string Run(const std::string& text);

 private:
  using Words = std::vector<std::string>;

  std::string Execute(const Words& words);
  void Cluster(const Words& words);
  void Boot(const Words& words);
  void Deliver(const Words& words, bool drop);
  void Stabilize(const Words& words);
  void SyncNode(int node);
  void Crash(const Words& words);
  void Campaign(int node);
  void Propose(int node, dledger::EntryType type);
  void Change(int leader, dledger::MembershipOp op, int subject);
  void Purge(const Words& words);
  void Install(int node);
  void Step(int node, const Input& input);
  bool Cut(int from, int to) const { return cuts_.contains({from, to}); }
  std::string StateOf(int node) const;
  void PrintChanges();
  void Print(const std::string& line) { output_ += line + "\n"; }
  SimNode& at(int node) { return nodes_.at(static_cast<std::size_t>(node)); }
  const SimNode& at(int node) const { return nodes_.at(static_cast<std::size_t>(node)); }

  void PrintAnswers(int node, const Output& out);

  Membership founders_;
  std::optional<Snapshot> taken_;
  std::vector<SimNode> nodes_;
  std::deque<Flight> flying_;
  std::map<std::pair<int, int>, bool> cuts_;
  std::map<int, std::string> shown_;
  std::int64_t next_number_ = 1;
  std::string output_;
};

}  // namespace triad::sim
