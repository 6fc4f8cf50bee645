#include "dledger/unsynced_start.h"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

namespace triad::dledger {

UnsyncedStart::UnsyncedStart(PeerId self, const std::vector<PeerId>& voters, const Answer& own)
    : self_(std::move(self)), voters_(voters) {
  answers_[self_] = own;
}

void UnsyncedStart::OnAnswer(const PeerId& peer, const Answer& answer) {
  const bool is_voter = std::find(voters_.begin(), voters_.end(), peer) != voters_.end();
  if (is_voter && peer != self_) answers_[peer] = answer;
}

UnsyncedStart::Decision UnsyncedStart::decision(bool was_patient) const {
  std::size_t whole = 0;
  std::vector<std::tuple<Term, LogIndex, PeerId>> rebooted;
  for (const auto& [peer, answer] : answers_) {
    if (answer.is_whole) ++whole;
    if (answer.lost_unsynced) rebooted.emplace_back(answer.last_term, answer.last_index, peer);
  }
  if (whole >= majority()) return Decision::kRecover;
  const bool is_complete = missing().empty();
  const bool is_enough = whole + rebooted.size() >= majority();
  if (!is_complete && !(was_patient && is_enough)) return Decision::kWait;
  if (!is_enough) return Decision::kRecover;
  std::sort(rebooted.rbegin(), rebooted.rend());
  for (std::size_t i = 0; i < majority() - whole; ++i) {
    if (std::get<PeerId>(rebooted[i]) == self_) return Decision::kGoOn;
  }
  return Decision::kRecover;
}

std::vector<PeerId> UnsyncedStart::missing() const {
  std::vector<PeerId> missing;
  for (const PeerId& voter : voters_) {
    if (!answers_.contains(voter)) missing.push_back(voter);
  }
  return missing;
}

}  // namespace triad::dledger
