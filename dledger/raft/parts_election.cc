#include <glog/logging.h>

#include "common/mutant.h"
#include "dledger/raft/parts.h"

namespace triad::dledger {

// A voter whose removal is not committed may be the only one who can commit it (4.2.2).
bool Core::Parts::MayCampaign() const {
  if (recovery.active()) return false;
  if (IsVoter(membership(), config.self)) return true;
  return !MembershipCommitted() && IsVoter(members.Before(members.current_index()), config.self);
}

bool Core::Parts::LeaderIsAlive() const {
  return role == Role::kLeader || (!leader.empty() && election.LeaderIsAlive());
}

bool Core::Parts::IsUpToDate(const VoteRequest& request) const {
  const Term ours = TRIAD_MUTANT(5) ? hard.term : log.last_term();
  if (request.last_term != ours) return request.last_term > ours;
  return request.last_index >= log.last();
}

void Core::Parts::StartPreVote() {
  role = Role::kPreCandidate;
  leader = PeerId();
  own_vote.reset();
  follower.Reset();
  election.ForgetLeader();
  election.RestartForPreVote();
  election.StartCount();
  election.CountGrant(config.self);
  if (election.Won(membership())) {
    Campaign(/*by_transfer=*/false);
    return;
  }
  for (const PeerId& peer : membership().voters) {
    if (peer == config.self) continue;
    Send(peer, Message{VoteRequest{.term = hard.term + 1,
                                   .pre_vote = true,
                                   .transfer = false,
                                   .last_index = log.last(),
                                   .last_term = log.last_term(),
                                   .life = life}});
  }
}

void Core::Parts::Campaign(bool by_transfer) {
  CHECK(MayCampaign());
  role = Role::kCandidate;
  leader = PeerId();
  follower.Reset();
  campaign_by_transfer = by_transfer;
  SetHardState(HardState{.term = hard.term + 1, .voted_for = config.self});
  election.Restart();
  election.StartCount();
  own_vote = storage.hard_state_token();
}

void Core::Parts::AskForVotes() {
  CHECK(role == Role::kCandidate);
  election.CountGrant(config.self);
  if (election.Won(membership())) {
    BecomeLeader();
    return;
  }
  for (const PeerId& peer : membership().voters) {
    if (peer == config.self) continue;
    Send(peer, Message{VoteRequest{.term = hard.term,
                                   .pre_vote = false,
                                   .transfer = campaign_by_transfer,
                                   .last_index = log.last(),
                                   .last_term = log.last_term(),
                                   .life = life}});
  }
}

void Core::Parts::AnswerVote(const PeerId& to, const VoteRequest& request, Term with_term,
                             bool granted) {
  Message answer{VoteResponse{
      .term = with_term, .pre_vote = request.pre_vote, .granted = granted, .life = request.life}};
  SendWhenTermDurable(to, std::move(answer));
}

void Core::Parts::OnPreVoteRequest(const PeerId& from, const VoteRequest& request) {
  if (recovery.active() && !TRIAD_MUTANT(18)) return;
  // The leader itself would not ask if it still led.
  const bool disturbs = LeaderIsAlive() && from != leader;
  const bool granted = request.term > hard.term && !disturbs && IsUpToDate(request);
  AnswerVote(from, request, granted ? request.term : hard.term, granted);
}

void Core::Parts::OnVoteRequest(const PeerId& from, const VoteRequest& request) {
  if (recovery.active() && !TRIAD_MUTANT(18)) return;
  const bool disturbs = LeaderIsAlive() && from != leader && !request.transfer;
  if (request.term > hard.term && disturbs) return;
  if (request.term < hard.term) {
    AnswerVote(from, request, hard.term, false);
    return;
  }
  const bool newer = request.term > hard.term;
  const bool free = newer || hard.voted_for == from ||
                    (hard.voted_for.empty() && leader.empty() && role == Role::kFollower);
  const bool granted = free && IsUpToDate(request);
  if (newer && !granted) BecomeFollower(request.term, PeerId());
  if (granted) {
    // One write for term and vote, so that no crash can keep one without the other.
    const HardState state{.term = request.term, .voted_for = from};
    if (newer) {
      if (role == Role::kLeader) LeaveLeadership();
      role = Role::kFollower;
      leader = PeerId();
      own_vote.reset();
      follower.Reset();
      election.ForgetLeader();
    }
    SetHardState(state);
    election.Restart();
  }
  AnswerVote(from, request, hard.term, granted);
}

void Core::Parts::OnVoteResponse(const PeerId& from, const VoteResponse& response) {
  if (recovery.active()) return;
  if (!response.granted) {
    if (response.term > hard.term) BecomeFollower(response.term, PeerId());
    return;
  }
  // Granted to an earlier life: it may have lost its disk since, and not know that it ever stood in
  // this term (rule H).
  if (response.life != life) return;
  if (response.pre_vote) {
    if (role != Role::kPreCandidate || response.term != hard.term + 1) return;
    election.CountGrant(from);
    if (election.Won(membership())) Campaign(/*by_transfer=*/false);
    return;
  }
  // Before its own vote is durable nobody was asked: such an answer cannot be one.
  if (role != Role::kCandidate || own_vote.has_value() || response.term != hard.term) return;
  election.CountGrant(from);
  if (election.Won(membership())) BecomeLeader();
}

void Core::Parts::OnTimeoutNow(const PeerId& from, const TimeoutNow& request) {
  const bool from_my_leader = role == Role::kFollower && from == leader;
  if (request.term != hard.term || !from_my_leader || !MayCampaign()) return;
  Campaign(/*by_transfer=*/true);
}

}  // namespace triad::dledger
