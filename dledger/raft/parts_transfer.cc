#include <glog/logging.h>

#include "common/mutant.h"
#include "dledger/raft/parts.h"

namespace triad::dledger {

// Why leadership may not go there, if so. Proposals rest while it is handed over, so the target
// must have caught up.
std::optional<TransferFailure> Core::Parts::WhyNotTo(const Progress* peer) const {
  if (peer == nullptr || !peer->Counts()) return TransferFailure::kNotVoter;
  if (TRIAD_MUTANT(28)) return std::nullopt;
  if (!replication.IsActive(*peer)) return TransferFailure::kNotReachable;
  if (peer->match < log.last() && !replication.IsCaughtUp(*peer)) {
    return TransferFailure::kNotCaughtUp;
  }
  return std::nullopt;
}

const Progress* Core::Parts::BestSuccessor() const {
  const Progress* best = nullptr;
  for (const Progress& peer : replication.peers()) {
    if (WhyNotTo(&peer).has_value()) continue;
    if (best == nullptr || peer.match > best->match) best = &peer;
  }
  return best;
}

void Core::Parts::OnTransfer(const TransferLeadership& input) {
  const auto fail = [&](TransferFailure why) {
    out->transfers_failed.push_back(TransferFailed{.context = input.context, .why = why});
  };
  if (role != Role::kLeader) return fail(TransferFailure::kNotLeader);
  if (!successor.empty()) return fail(TransferFailure::kInProgress);
  const Progress* peer = input.to.empty() ? BestSuccessor() : replication.Find(input.to);
  if (input.to.empty() && peer == nullptr) return fail(TransferFailure::kNobody);
  if (const auto why_not = WhyNotTo(peer); why_not.has_value()) return fail(*why_not);
  successor = peer->peer;
  transfer_context = input.context;
  transfer_ticks = 0;
  MaybeHandOver();
}

void Core::Parts::EndTransfer(TransferFailure why) {
  out->transfers_failed.push_back(TransferFailed{.context = transfer_context, .why = why});
  successor = PeerId();
}

void Core::Parts::MaybeHandOver() {
  if (role != Role::kLeader || successor.empty()) return;
  const Progress* peer = replication.Find(successor);
  if (peer == nullptr || !peer->Counts()) return EndTransfer(TransferFailure::kNotVoter);
  if (peer->match < log.last() && !TRIAD_MUTANT(28)) return;
  Send(successor, Message{TimeoutNow{.term = hard.term}});
}

// Whatever becomes of it, proposals rest no longer than one election timeout.
void Core::Parts::TickTransfer() {
  if (!successor.empty() && ++transfer_ticks >= config.election_ticks_max) {
    EndTransfer(TransferFailure::kTimedOut);
  }
  const Progress* peer = replication.Find(preferred.peer());
  if (peer == nullptr) return;
  const bool is_fit = LeaderReady() && successor.empty() && !WhyNotTo(peer).has_value() &&
                      replication.LagTicks(*peer) <= config.heartbeat_ticks;
  if (preferred.Tick(is_fit)) OnTransfer(TransferLeadership{.to = peer->peer, .context = 0});
}

}  // namespace triad::dledger
