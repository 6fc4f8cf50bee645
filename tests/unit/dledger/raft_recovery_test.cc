#include "tests/unit/dledger/raft_core_fixture.h"

// Rule H of docs/dledger.md.

namespace triad::dledger {
namespace {

Recovered Wiped(std::uint64_t nonce) {
  Recovered recovered;
  recovered.recovering = true;
  recovered.recovery_nonce = nonce;
  return recovered;
}

AppendResponse Report(const CoreUnderTest& t, std::uint64_t nonce, std::uint64_t match,
                      std::uint64_t round) {
  AppendResponse response;
  response.term = t.core.term();
  response.ok = true;
  response.match_index = LogIndex{match};
  response.read_round = round;
  response.recovering = true;
  response.recovery_nonce = nonce;
  return response;
}

TEST(RaftRecovery, NeitherVotesNorCampaigns) {
  CoreUnderTest t(ThreeVoters(), Wiped(77));
  for (const bool pre_vote : {true, false}) {
    t.Receive(kN1, VoteRequest{.term = Term{5},
                               .pre_vote = pre_vote,
                               .transfer = true,
                               .last_index = LogIndex{9},
                               .last_term = Term{4}});
  }
  t.Tick(500);
  t.Sync();
  EXPECT_TRUE(t.out.messages.empty());
  EXPECT_EQ(t.core.role(), Role::kFollower);
}

TEST(RaftRecovery, ItsAnswersSayThatTheyDoNotCount) {
  CoreUnderTest t(ThreeVoters(), Wiped(77));
  t.Receive(kN1, t.Append(3, 0, 0, {3}));
  t.Sync();
  const auto sent = t.SentTo<AppendResponse>(kN1);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_TRUE(sent[0].recovering);
  EXPECT_EQ(sent[0].recovery_nonce, 77u);
}

TEST(RaftRecovery, EndsWhenEverythingUpToTheTargetIsDurable) {
  CoreUnderTest t(ThreeVoters(), Wiped(77));
  AppendRequest request = t.Append(3, 0, 0, {3, 3});
  request.recovery_nonce = 77;
  request.recovery_target = LogIndex{2};
  t.Receive(kN1, request);
  t.Clear();
  t.Step(StorageDone{.token = t.last_token});
  EXPECT_TRUE(t.core.recovering()) << "the end must be durable itself";
  ASSERT_EQ(t.out.storage.size(), 1u);
  EXPECT_EQ(t.out.storage[0].recovering, false);
  EXPECT_EQ(t.out.storage[0].hard_state, (HardState{.term = Term{3}, .voted_for = kN1}))
      << "this term's vote is spent";
  t.Sync();
  EXPECT_FALSE(t.core.recovering());
}

TEST(RaftRecovery, ATargetForAnotherLifeIsIgnored) {
  CoreUnderTest t(ThreeVoters(), Wiped(77));
  AppendRequest request = t.Append(3, 0, 0, {3});
  request.recovery_nonce = 76;
  request.recovery_target = LogIndex{1};
  t.Receive(kN1, request);
  t.Sync();
  EXPECT_TRUE(t.core.recovering());
  EXPECT_TRUE(t.out.storage.empty());
}

TEST(RaftRecovery, ATargetOfAnEarlierLeaderIsIgnored) {
  CoreUnderTest t(ThreeVoters(), Wiped(77));
  AppendRequest request = t.Append(3, 0, 0, {3});
  request.recovery_nonce = 77;
  request.recovery_target = LogIndex{2};
  t.Receive(kN1, request);
  t.Receive(kN2, t.Append(4, 1, 3, {4}));
  t.Sync();
  EXPECT_TRUE(t.core.recovering());
  EXPECT_TRUE(t.out.storage.empty());
}

TEST(RaftRecovery, AVoteItStillKnowsIsKept) {
  Recovered recovered = Wiped(77);
  recovered.hard_state = HardState{.term = Term{3}, .voted_for = kN2};
  CoreUnderTest t(ThreeVoters(), recovered);
  AppendRequest request = t.Append(3, 0, 0, {});
  request.recovery_nonce = 77;
  t.Receive(kN1, request);
  ASSERT_EQ(t.out.storage.size(), 1u);
  EXPECT_EQ(t.out.storage[0].hard_state->voted_for, kN2);
}

// The leader's side, n2 having lost its disk.
class RaftRecoveryOfAPeer : public testing::Test {
 protected:
  void SetUp() override {
    t.BecomeLeader();
    t.Propose();
    t.Sync();
    t.Acknowledge(kN1, 1, 1);
    ASSERT_TRUE(t.core.leader_ready());
    t.Clear();
  }
  std::uint64_t RoundNow() {
    t.Clear();
    t.Tick(5);
    return t.SentTo<AppendRequest>(kN1).at(0).read_round;
  }
  std::uint64_t NonceToldToN2() {
    t.Clear();
    t.Tick(5);
    return t.SentTo<AppendRequest>(kN2).back().recovery_nonce;
  }
  CoreUnderTest t;
};

TEST_F(RaftRecoveryOfAPeer, ItsAcknowledgementsCommitNothing) {
  t.Receive(kN2, Report(t, 77, 0, 1));
  t.Propose();
  t.Sync();
  const std::uint64_t round = RoundNow();
  t.Receive(kN2, Report(t, 77, 2, round));
  EXPECT_EQ(t.core.commit_index(), LogIndex{1});
}

TEST_F(RaftRecoveryOfAPeer, ItKeepsNoLeaderInOffice) {
  t.Receive(kN2, Report(t, 77, 0, 1));
  for (int i = 0; i < 30; ++i) {
    t.Tick(1);
    t.Receive(kN2, Report(t, 77, 0, 2));
  }
  EXPECT_EQ(t.core.role(), Role::kFollower);
}

TEST_F(RaftRecoveryOfAPeer, TheTargetComesOnlyAfterTheOtherPeerConfirmed) {
  t.Receive(kN2, Report(t, 77, 0, 1));
  EXPECT_EQ(NonceToldToN2(), 0u);
  const std::uint64_t round = RoundNow();
  t.Acknowledge(kN1, 1, round - 1);
  EXPECT_EQ(NonceToldToN2(), 0u) << "that answer is from before the report";
  t.Acknowledge(kN1, 1, round);
  EXPECT_EQ(NonceToldToN2(), 77u);
  EXPECT_EQ(t.SentTo<AppendRequest>(kN2).back().recovery_target, LogIndex{1});
}

TEST_F(RaftRecoveryOfAPeer, WhatItSaidBeforeItForgotIsNotCounted) {
  t.Propose();
  t.Sync();
  t.Receive(kN2, Report(t, 77, 0, 1));
  AppendResponse old;  // sent before its disk was lost
  old.term = t.core.term();
  old.ok = true;
  old.match_index = LogIndex{2};
  old.read_round = 1;
  t.Receive(kN2, old);
  EXPECT_EQ(t.core.commit_index(), LogIndex{1});
}

TEST_F(RaftRecoveryOfAPeer, CountsAgainWhenItSaysSo) {
  t.Receive(kN2, Report(t, 77, 0, 1));
  const std::uint64_t round = RoundNow();
  t.Propose();
  t.Sync();
  t.Acknowledge(kN2, 2, round);
  EXPECT_EQ(t.core.commit_index(), LogIndex{2});
}

TEST_F(RaftRecoveryOfAPeer, InAGroupOfFiveEveryOtherPeerMustConfirm) {
  CoreUnderTest five(ConfigOf({kN0, kN1, kN2, PeerId("n3"), PeerId("n4")}));
  five.TickUntil(Role::kPreCandidate);
  for (const bool pre_vote : {true, false}) {
    for (const PeerId& peer : {kN1, kN2}) {
      five.Receive(
          peer,
          VoteResponse{.term = Term{1}, .pre_vote = pre_vote, .granted = true, .life = kLife});
    }
    five.Sync();
  }
  ASSERT_EQ(five.core.role(), Role::kLeader);
  five.Propose();
  five.Sync();
  five.Receive(kN2, Report(five, 77, 0, 1));
  five.Clear();
  five.Tick(5);
  const std::uint64_t round = five.SentTo<AppendRequest>(kN1).at(0).read_round;
  const auto told = [&] {
    five.Clear();
    five.Tick(5);
    return five.SentTo<AppendRequest>(kN2).back().recovery_nonce;
  };
  five.Acknowledge(kN1, 1, round);
  five.Acknowledge(PeerId("n3"), 1, round);
  ASSERT_TRUE(five.core.leader_ready());
  EXPECT_EQ(told(), 0u) << "n4 may be a candidate that holds n2's forgotten vote";
  five.Acknowledge(PeerId("n4"), 0, round);
  EXPECT_EQ(told(), 77u);
}

TEST_F(RaftRecoveryOfAPeer, NoTargetBeforeTheLeaderHasCommittedInItsOwnTerm) {
  CoreUnderTest fresh;
  fresh.BecomeLeader();
  fresh.Receive(kN2, Report(fresh, 77, 0, 1));
  fresh.Clear();
  fresh.Tick(5);
  const std::uint64_t round = fresh.SentTo<AppendRequest>(kN1).at(0).read_round;
  const auto told = [&] {
    fresh.Clear();
    fresh.Tick(5);
    return fresh.SentTo<AppendRequest>(kN2).back();
  };
  fresh.Acknowledge(kN1, 0, round);
  EXPECT_EQ(told().recovery_nonce, 0u);
  fresh.Propose();
  fresh.Sync();
  fresh.Acknowledge(kN1, 1, round);
  EXPECT_EQ(told().recovery_nonce, 77u);
  EXPECT_EQ(told().recovery_target, LogIndex{1});
}

}  // namespace
}  // namespace triad::dledger
