// FirstStart: whether a peer with an empty store may vote.
//
// Pure. Owner: the log thread. A peer whose disk is empty may have voted and acknowledged before it
// was wiped, so it asks everybody first: one with entries means this peer is recovering; all
// answered and none has any means a new group; somebody missing means wait, unless the operator
// named them. Others may have voted already (this peer's own first vote was lost with its disk or
// its power): it must not vote in a term that one of them has seen, but may in later ones.
// An answer is good for the rest of this start: whoever votes here later, this peer did not vote
// before. Size: the peers.
// Source: architecture.md §3, "First start".

#pragma once

#include <map>
#include <optional>
#include <vector>

#include "common/ids.h"

namespace triad::dledger {

class FirstStart {
 public:
  enum class Decision { kWait, kMayVote, kRecovering };

  // `others`: every peer but this one. `without`: those nobody waits for.
  FirstStart(const std::vector<PeerId>& others, const std::vector<PeerId>& without);

  // `has_log`: entries, or a sign that there were some. `term`: the peer's.
  void OnAnswer(const PeerId& peer, bool has_log, Term term);
  Decision decision() const;
  std::vector<PeerId> missing() const;
  Term term() const { return term_; }  // the largest that anybody has seen

 private:
  struct Answer {
    bool is_needed = true;
    std::optional<bool> has_log;
  };
  std::map<PeerId, Answer> answers_;
  Term term_;
};

}  // namespace triad::dledger
