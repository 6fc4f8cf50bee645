#include "dledger/first_start.h"

#include <algorithm>

#include "dledger/raft/types.h"

namespace triad::dledger {

FirstStart::FirstStart(const std::vector<PeerId>& others, const std::vector<PeerId>& without) {
  for (const PeerId& peer : others) {
    const bool is_named = std::find(without.begin(), without.end(), peer) != without.end();
    answers_[peer].is_needed = !is_named;
  }
}

void FirstStart::OnAnswer(const PeerId& peer, bool has_log, Term term) {
  const auto found = answers_.find(peer);
  if (found == answers_.end()) return;
  if (term <= kTermMax) term_ = std::max(term_, term);  // no honest peer says more
  // Once seen with a log, always with a log: the cautious reading.
  found->second.has_log = found->second.has_log.value_or(false) || has_log;
}

FirstStart::Decision FirstStart::decision() const {
  for (const auto& [peer, answer] : answers_) {
    if (answer.has_log.value_or(false)) return Decision::kRecovering;
  }
  return missing().empty() ? Decision::kMayVote : Decision::kWait;
}

std::vector<PeerId> FirstStart::missing() const {
  std::vector<PeerId> missing;
  for (const auto& [peer, answer] : answers_) {
    if (answer.is_needed && !answer.has_log) missing.push_back(peer);
  }
  return missing;
}

}  // namespace triad::dledger
