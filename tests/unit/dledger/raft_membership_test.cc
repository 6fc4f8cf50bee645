#include "dledger/raft/membership.h"
#include "tests/unit/dledger/raft_core_fixture.h"

// Changes of the membership: what a leader refuses, what takes effect when, who counts.

namespace triad::dledger {
namespace {

const PeerId kN3{"n3"};
const PeerId kN4{"n4"};
using Outcome = ChangeFate::Outcome;

// n0 leads, its no-op (entry 1) is committed, n1 and n2 hold it.
class RaftChange : public testing::Test {
 protected:
  void SetUp() override {
    t.BecomeLeader();
    t.Propose();
    t.Sync();
    AcknowledgeAll(1);
    ASSERT_TRUE(t.core.leader_ready());
    t.Clear();
  }
  void AcknowledgeAll(std::uint64_t match) {
    for (const PeerId& peer : {kN1, kN2}) t.Acknowledge(peer, match);
  }
  // n3 is a learner that holds everything.
  void AddLearner() {
    t.Change(MembershipOp::kAddLearner, kN3);
    t.Sync();
    AcknowledgeAll(2);
    t.Acknowledge(kN3, 2);
    t.Tick(1);
    t.Clear();
  }
  ChangeRefusal WhyNot(MembershipOp op, const PeerId& peer) {
    t.out.changes.clear();
    t.Change(op, peer, 9);
    if (t.out.changes.empty()) return ChangeRefusal::kNone;
    EXPECT_EQ(t.out.changes[0].context, 9u);
    EXPECT_EQ(t.out.changes[0].outcome, Outcome::kRefused);
    return t.out.changes[0].why;
  }
  CoreUnderTest t;
};

TEST_F(RaftChange, AFollowerRefuses) {
  CoreUnderTest follower;
  follower.Change(MembershipOp::kAddLearner, kN3, 5);
  ASSERT_EQ(follower.out.changes.size(), 1u);
  EXPECT_EQ(follower.out.changes[0].context, 5u);
  EXPECT_EQ(follower.out.changes[0].why, ChangeRefusal::kNotLeader);
}

TEST_F(RaftChange, ALeaderRefusesBeforeItHasCommittedInItsTerm) {
  CoreUnderTest fresh;
  fresh.BecomeLeader();
  fresh.Propose();
  fresh.Change(MembershipOp::kAddLearner, kN3);
  ASSERT_EQ(fresh.out.changes.size(), 1u);
  EXPECT_EQ(fresh.out.changes[0].why, ChangeRefusal::kNotReady);
  EXPECT_EQ(fresh.core.last_index(), LogIndex{1});
}

TEST_F(RaftChange, WhatMakesNoSenseIsRefused) {
  EXPECT_EQ(WhyNot(MembershipOp::kAddLearner, kN1), ChangeRefusal::kAlreadyMember);
  EXPECT_EQ(WhyNot(MembershipOp::kAddLearner, PeerId()), ChangeRefusal::kUnknownPeer);
  EXPECT_EQ(WhyNot(MembershipOp::kPromote, kN1), ChangeRefusal::kAlreadyMember);
  EXPECT_EQ(WhyNot(MembershipOp::kPromote, kN3), ChangeRefusal::kUnknownPeer);
  EXPECT_EQ(WhyNot(MembershipOp::kRemove, kN3), ChangeRefusal::kUnknownPeer);
  EXPECT_EQ(t.core.last_index(), LogIndex{1});
}

TEST_F(RaftChange, TheLastVoterStays) {
  CoreUnderTest alone(ConfigOf({kN0}));
  alone.TickUntil(Role::kCandidate);
  alone.Sync();
  alone.Propose();
  alone.Sync();
  ASSERT_TRUE(alone.core.leader_ready());
  alone.Change(MembershipOp::kRemove, kN0);
  ASSERT_EQ(alone.out.changes.size(), 1u);
  EXPECT_EQ(alone.out.changes[0].why, ChangeRefusal::kLastVoter);
}

TEST_F(RaftChange, ASecondChangeWaitsForTheFirst) {
  EXPECT_EQ(WhyNot(MembershipOp::kAddLearner, kN3), ChangeRefusal::kNone);
  EXPECT_EQ(WhyNot(MembershipOp::kAddLearner, kN4), ChangeRefusal::kInFlight);
  t.Sync();
  AcknowledgeAll(2);
  EXPECT_EQ(WhyNot(MembershipOp::kAddLearner, kN4), ChangeRefusal::kNone);
}

TEST_F(RaftChange, AChangeThatIsNotProposedYetIsInFlightToo) {
  t.Step(ChangeMembership{.context = 1, .op = MembershipOp::kAddLearner, .peer = kN3});
  ASSERT_TRUE(t.out.propose_membership.has_value());
  t.Step(ChangeMembership{.context = 2, .op = MembershipOp::kAddLearner, .peer = kN4});
  ASSERT_EQ(t.out.changes.size(), 1u);
  EXPECT_EQ(t.out.changes[0].why, ChangeRefusal::kInFlight);
}

TEST_F(RaftChange, RestsWhileLeadershipIsHandedOver) {
  t.Propose();
  t.Step(TransferLeadership{.to = kN1});
  ASSERT_TRUE(t.core.transferring());
  EXPECT_EQ(WhyNot(MembershipOp::kAddLearner, kN3), ChangeRefusal::kTransferring);
}

TEST_F(RaftChange, ItsFateIsToldWhenItIsCommitted) {
  t.Change(MembershipOp::kAddLearner, kN3, 7);
  t.Sync();
  EXPECT_TRUE(t.out.changes.empty());
  AcknowledgeAll(2);
  ASSERT_EQ(t.out.changes.size(), 1u);
  EXPECT_EQ(t.out.changes[0].context, 7u);
  EXPECT_EQ(t.out.changes[0].outcome, Outcome::kCommitted);
  EXPECT_TRUE(t.core.membership_committed());
}

TEST_F(RaftChange, ItsFateIsUnknownWhenLeadershipIsLost) {
  t.Change(MembershipOp::kAddLearner, kN3, 7);
  t.Receive(kN1, t.Append(t.core.term().value() + 1, 1, 1, {}));
  ASSERT_EQ(t.out.changes.size(), 1u);
  EXPECT_EQ(t.out.changes[0].outcome, Outcome::kUnknown);
}

TEST_F(RaftChange, WhatWasNeverProposedIsRefusedWhenLeadershipIsLost) {
  t.Step(ChangeMembership{.context = 7, .op = MembershipOp::kAddLearner, .peer = kN3});
  t.Receive(kN1, t.Append(t.core.term().value() + 1, 1, 1, {}));
  ASSERT_EQ(t.out.changes.size(), 1u);
  EXPECT_EQ(t.out.changes[0].outcome, Outcome::kRefused);
}

TEST_F(RaftChange, ALearnerReceivesEverythingAndCountsForNothing) {
  AddLearner();
  t.Propose();
  EXPECT_EQ(t.SentTo<AppendRequest>(kN3).size(), 1u);
  t.Sync();
  t.Acknowledge(kN3, 3);
  EXPECT_EQ(t.core.commit_index(), LogIndex{2});
  t.Acknowledge(kN1, 3);
  EXPECT_EQ(t.core.commit_index(), LogIndex{3});
}

TEST_F(RaftChange, ALearnerThatLagsIsNotPromoted) {
  t.Change(MembershipOp::kAddLearner, kN3);
  t.Sync();
  AcknowledgeAll(2);
  EXPECT_EQ(WhyNot(MembershipOp::kPromote, kN3), ChangeRefusal::kNotCaughtUp) << "never heard";
  t.Acknowledge(kN3, 1);
  EXPECT_EQ(WhyNot(MembershipOp::kPromote, kN3), ChangeRefusal::kNotCaughtUp) << "behind";
  t.Acknowledge(kN3, 2);
  EXPECT_EQ(WhyNot(MembershipOp::kPromote, kN3), ChangeRefusal::kNone);
}

TEST_F(RaftChange, ALearnerThatStoodStillForAnElectionTimeoutIsNotPromoted) {
  AddLearner();
  t.Propose();
  t.Sync();
  for (int i = 0; i < 33; ++i) {
    t.Tick(1);
    AcknowledgeAll(3);
    t.Acknowledge(kN3, 2);  // alive, but it does not get ahead
  }
  EXPECT_EQ(WhyNot(MembershipOp::kPromote, kN3), ChangeRefusal::kNotCaughtUp);
  t.Acknowledge(kN3, 3);
  t.Tick(1);
  t.Acknowledge(kN3, 3);
  EXPECT_EQ(WhyNot(MembershipOp::kPromote, kN3), ChangeRefusal::kNone);
}

TEST_F(RaftChange, ARecoveringLearnerIsNotPromoted) {
  AddLearner();
  AppendResponse report;
  report.term = t.core.term();
  report.ok = true;
  report.match_index = LogIndex{2};
  report.read_round = 1;
  report.recovering = true;
  report.recovery_nonce = 77;
  t.Receive(kN3, report);
  EXPECT_EQ(WhyNot(MembershipOp::kPromote, kN3), ChangeRefusal::kNotCaughtUp);
}

TEST_F(RaftChange, AVoterCountsFromTheMomentItsEntryIsAppended) {
  AddLearner();
  t.Change(MembershipOp::kPromote, kN3);
  t.Sync();
  t.Acknowledge(kN1, 3);
  EXPECT_EQ(t.core.commit_index(), LogIndex{2}) << "two of four are no majority";
  t.Acknowledge(kN3, 3);
  EXPECT_EQ(t.core.commit_index(), LogIndex{3});
}

TEST_F(RaftChange, ARemovedVoterCountsNoLongerFromTheMomentItsEntryIsAppended) {
  t.Change(MembershipOp::kRemove, kN2);
  t.Sync();
  t.Acknowledge(kN2, 2);
  EXPECT_EQ(t.core.commit_index(), LogIndex{1});
  t.Acknowledge(kN1, 2);
  EXPECT_EQ(t.core.commit_index(), LogIndex{2});
}

TEST_F(RaftChange, ARemovedPeerHearsOfItsRemovalAndThenOfNothing) {
  t.Change(MembershipOp::kRemove, kN2);
  ASSERT_EQ(t.SentTo<AppendRequest>(kN2).size(), 1u);
  t.Sync();
  t.Acknowledge(kN2, 2);
  t.Clear();
  t.Acknowledge(kN1, 2);
  ASSERT_FALSE(t.SentTo<AppendRequest>(kN2).empty());
  EXPECT_EQ(t.SentTo<AppendRequest>(kN2).back().commit_index, LogIndex{2});
  t.Clear();
  t.Propose();
  t.Tick(5);
  EXPECT_TRUE(t.SentTo<AppendRequest>(kN2).empty());
}

TEST_F(RaftChange, ARemovalThatWouldLeaveNoAnsweringMajorityIsRefused) {
  for (int i = 0; i < 40; ++i) {  // n2 is silent
    t.Tick(1);
    t.Acknowledge(kN1, 1);
  }
  EXPECT_EQ(WhyNot(MembershipOp::kRemove, kN1), ChangeRefusal::kNoQuorum);
  EXPECT_EQ(WhyNot(MembershipOp::kRemove, kN2), ChangeRefusal::kNone);
}

TEST_F(RaftChange, ALeaderThatRemovesItselfLeadsUntilThatIsCommittedWithoutCountingItself) {
  t.Change(MembershipOp::kRemove, kN0);
  t.Sync();
  t.Acknowledge(kN1, 2);
  EXPECT_EQ(t.core.role(), Role::kLeader) << "one of two voters left is no majority";
  EXPECT_EQ(t.core.commit_index(), LogIndex{1});
  t.Clear();
  t.Acknowledge(kN2, 2);
  EXPECT_EQ(t.core.role(), Role::kFollower);
  ASSERT_EQ(t.out.changes.size(), 1u);
  EXPECT_EQ(t.out.changes[0].outcome, Outcome::kCommitted);
  EXPECT_EQ(t.Sent<TimeoutNow>().size(), 1u) << "somebody is told to take over at once";
  t.Tick(500);
  EXPECT_EQ(t.core.role(), Role::kFollower) << "it stands for no election any more";
}

TEST_F(RaftChange, AVoterWhoseRemovalIsNotCommittedMayStillCampaign) {
  const Membership without{.group_id = 0, .voters = {kN1, kN2}, .learners = {}};
  CoreUnderTest removed;
  AppendRequest request = removed.Append(1, 0, 0, {1});
  request.entries.push_back(MembershipEntry(1, 2, without));
  removed.Receive(kN1, request);
  removed.Sync();
  removed.TickUntil(Role::kPreCandidate);
  removed.Receive(kN1,
                  VoteResponse{.term = Term{2}, .pre_vote = true, .granted = true, .life = kLife});
  EXPECT_EQ(removed.core.role(), Role::kPreCandidate) << "its own vote counts for nothing";
  removed.Receive(kN2,
                  VoteResponse{.term = Term{2}, .pre_vote = true, .granted = true, .life = kLife});
  EXPECT_EQ(removed.core.role(), Role::kCandidate);
}

TEST_F(RaftChange, AVoterWhoseRemovalIsCommittedIsQuiet) {
  const Membership without{.group_id = 0, .voters = {kN1, kN2}, .learners = {}};
  CoreUnderTest removed;
  AppendRequest request = removed.Append(1, 0, 0, {1}, /*commit=*/2);
  request.entries.push_back(MembershipEntry(1, 2, without));
  removed.Receive(kN1, request);
  removed.Sync();
  removed.Clear();
  removed.Tick(500);
  EXPECT_EQ(removed.core.role(), Role::kFollower);
  EXPECT_TRUE(removed.out.messages.empty());
}

TEST_F(RaftChange, APeerThatIsLeavingMustConfirmBeforeAForgetfulOneCountsAgain) {
  const auto report = [&](std::uint64_t round) {
    AppendResponse response;
    response.term = t.core.term();
    response.ok = true;
    response.match_index = LogIndex{1};
    response.read_round = round;
    response.recovering = true;
    response.recovery_nonce = 77;
    return response;
  };
  CoreUnderTest four(ConfigOf({kN0, kN1, kN2, kN3}));
  four.TickUntil(Role::kPreCandidate);
  for (const bool pre_vote : {true, false}) {
    for (const PeerId& peer : {kN1, kN2}) {
      four.Receive(
          peer,
          VoteResponse{.term = Term{1}, .pre_vote = pre_vote, .granted = true, .life = kLife});
    }
    four.Sync();
  }
  four.Propose();
  four.Sync();
  for (const PeerId& peer : {kN1, kN2, kN3}) four.Acknowledge(peer, 1, 1);
  ASSERT_TRUE(four.core.leader_ready());
  four.Receive(kN2, report(1));
  four.Change(MembershipOp::kRemove, kN3);
  four.Clear();
  four.Tick(5);
  const std::uint64_t round = four.SentTo<AppendRequest>(kN1).at(0).read_round;
  const auto told = [&] {
    four.Clear();
    four.Tick(5);
    return four.SentTo<AppendRequest>(kN2).back().recovery_nonce;
  };
  four.Acknowledge(kN1, 1, round);
  EXPECT_EQ(told(), 0u) << "n3 may still win with the vote that n2 forgot";
  four.Acknowledge(kN3, 1, round);
  EXPECT_EQ(told(), 77u);
}

TEST(RaftMembership, KnowsWhatWasInForceBeforeAnEntry) {
  const Membership one{.group_id = 0, .voters = {kN0}, .learners = {}};
  const Membership two{.group_id = 0, .voters = {kN0, kN1}, .learners = {}};
  const Membership three{.group_id = 0, .voters = {kN0, kN1, kN2}, .learners = {}};
  MembershipHistory history(one, {{LogIndex{3}, two}, {LogIndex{7}, three}});
  EXPECT_EQ(history.Before(LogIndex{3}), one);
  EXPECT_EQ(history.Before(LogIndex{4}), two);
  EXPECT_EQ(history.Before(LogIndex{9}), three);
  history.PurgeBefore(LogIndex{5});
  EXPECT_EQ(history.Before(LogIndex{1}), two);
  EXPECT_EQ(history.current(), three);
  EXPECT_TRUE(history.TruncateFrom(LogIndex{5}));
  EXPECT_EQ(history.current(), two);
  history.Reset(three);
  EXPECT_EQ(history.current(), three);
  EXPECT_EQ(history.current_index(), LogIndex{0});
}

TEST(RaftMembership, ChangesKeepMembersSorted) {
  Membership membership{.group_id = 4, .voters = {kN0, kN2}, .learners = {kN1}};
  membership = Changed(membership, MembershipOp::kPromote, kN1);
  EXPECT_EQ(membership, (Membership{.group_id = 4, .voters = {kN0, kN1, kN2}, .learners = {}}));
  membership = Changed(membership, MembershipOp::kAddLearner, kN3);
  membership = Changed(membership, MembershipOp::kRemove, kN0);
  EXPECT_EQ(membership, (Membership{.group_id = 4, .voters = {kN1, kN2}, .learners = {kN3}}));
}

TEST(RaftMembership, AGroupHasABoundedNumberOfMembers) {
  Membership membership{.group_id = 0, .voters = {}, .learners = {}};
  for (std::size_t i = 0; i < kMembersMax; ++i) {
    membership.voters.push_back(PeerId("n" + std::to_string(100 + i)));
  }
  EXPECT_EQ(RefusalOf(membership, MembershipOp::kAddLearner, kN0), ChangeRefusal::kTooMany);
}

}  // namespace
}  // namespace triad::dledger
