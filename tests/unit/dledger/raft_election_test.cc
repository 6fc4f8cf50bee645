#include "tests/unit/dledger/raft_core_fixture.h"

namespace triad::dledger {
namespace {

VoteRequest AskVote(std::uint64_t term, std::uint64_t last_index, std::uint64_t last_term) {
  return VoteRequest{.term = Term{term},
                     .pre_vote = false,
                     .transfer = false,
                     .last_index = LogIndex{last_index},
                     .last_term = Term{last_term}};
}

TEST(RaftElection, PreVoteAsksEverybodyAndDoesNotRaiseTheTerm) {
  CoreUnderTest t(ThreeVoters(), RecoveredWith(4, {2, 3}));
  t.TickUntil(Role::kPreCandidate);
  EXPECT_EQ(t.core.term(), Term{4});
  EXPECT_TRUE(t.out.storage.empty());
  const auto asked = t.Sent<VoteRequest>();
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_TRUE(asked[0].second.pre_vote);
  EXPECT_EQ(asked[0].second.term, Term{5});
  EXPECT_EQ(asked[0].second.last_index, LogIndex{2});
  EXPECT_EQ(asked[0].second.last_term, Term{3});
}

TEST(RaftElection, CampaignsOnlyWhenItsOwnVoteIsDurable) {
  CoreUnderTest t;
  t.TickUntil(Role::kPreCandidate);
  t.Clear();
  t.Receive(kN2, VoteResponse{.term = Term{1}, .pre_vote = true, .granted = true, .life = kLife});
  ASSERT_EQ(t.core.role(), Role::kCandidate);
  EXPECT_TRUE(t.Sent<VoteRequest>().empty());
  ASSERT_EQ(t.out.storage.size(), 1u);
  EXPECT_EQ(t.out.storage[0].hard_state, (HardState{.term = Term{1}, .voted_for = kN0}));
  t.Sync();
  EXPECT_EQ(t.Sent<VoteRequest>().size(), 2u);
}

TEST(RaftElection, WantsANoopWhenElected) {
  CoreUnderTest t;
  t.TickUntil(Role::kPreCandidate);
  t.Receive(kN1, VoteResponse{.term = Term{1}, .pre_vote = true, .granted = true, .life = kLife});
  t.Sync();
  EXPECT_FALSE(t.out.want_noop);
  t.Receive(kN1, VoteResponse{.term = Term{1}, .pre_vote = false, .granted = true, .life = kLife});
  EXPECT_TRUE(t.out.want_noop);
  EXPECT_EQ(t.core.role(), Role::kLeader);
  EXPECT_FALSE(t.core.leader_ready());
}

TEST(RaftElection, OneVoteTwiceIsNoMajority) {
  CoreUnderTest t(ConfigOf({kN0, kN1, kN2, PeerId("n3"), PeerId("n4")}));
  t.TickUntil(Role::kPreCandidate);
  for (int i = 0; i < 3; ++i) {
    t.Receive(kN1, VoteResponse{.term = Term{1}, .pre_vote = true, .granted = true, .life = kLife});
  }
  EXPECT_EQ(t.core.role(), Role::kPreCandidate);
}

TEST(RaftElection, AVoteLeavesOnlyWhenItIsDurable) {
  CoreUnderTest t;
  t.Receive(kN1, AskVote(3, 0, 0));
  EXPECT_TRUE(t.Sent<VoteResponse>().empty());
  ASSERT_EQ(t.out.storage.size(), 1u) << "term and vote are one write";
  EXPECT_EQ(t.out.storage[0].hard_state, (HardState{.term = Term{3}, .voted_for = kN1}));
  t.Sync();
  const auto sent = t.SentTo<VoteResponse>(kN1);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_TRUE(sent[0].granted);
}

TEST(RaftElection, AWithheldVoteOfAnOldTermIsNeverSent) {
  CoreUnderTest t;
  t.Receive(kN1, AskVote(3, 0, 0));
  t.Receive(kN2, t.Append(4, 0, 0, {}));
  t.Sync();
  EXPECT_TRUE(t.Sent<VoteResponse>().empty());
}

TEST(RaftElection, VotesOncePerTerm) {
  CoreUnderTest t;
  t.Receive(kN1, AskVote(3, 0, 0));
  t.Sync();
  t.Receive(kN2, AskVote(3, 5, 2));
  const auto refused = t.SentTo<VoteResponse>(kN2);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_FALSE(refused[0].granted);
  t.Clear();
  t.Receive(kN1, AskVote(3, 0, 0));
  ASSERT_EQ(t.SentTo<VoteResponse>(kN1).size(), 1u) << "the same vote may be repeated";
  EXPECT_TRUE(t.SentTo<VoteResponse>(kN1)[0].granted);
}

TEST(RaftElection, VotesOnlyForALogAsGoodAsItsOwn) {
  struct Case {
    const char* name;
    std::uint64_t last_index, last_term;
    bool granted;
  };
  const Case cases[] = {
      {"same", 3, 2, true},
      {"longer", 4, 2, true},
      {"shorter", 2, 2, false},
      {"shorter with a newer term", 1, 3, true},
      {"longer with an older term", 9, 1, false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    for (const bool pre_vote : {true, false}) {
      CoreUnderTest t(ThreeVoters(), RecoveredWith(6, {1, 2, 2}));
      VoteRequest request = AskVote(7, c.last_index, c.last_term);
      request.pre_vote = pre_vote;
      t.Receive(kN1, request);
      t.Sync();
      ASSERT_EQ(t.SentTo<VoteResponse>(kN1).size(), 1u);
      EXPECT_EQ(t.SentTo<VoteResponse>(kN1)[0].granted, c.granted);
    }
  }
}

TEST(RaftElection, NobodyGetsAVoteWhileALeaderIsAlive) {
  CoreUnderTest t;
  t.Receive(kN1, t.Append(1, 0, 0, {}));
  t.Sync();
  t.Tick(29);
  t.Clear();
  VoteRequest pre = AskVote(2, 0, 0);
  pre.pre_vote = true;
  t.Receive(kN2, pre);
  ASSERT_EQ(t.SentTo<VoteResponse>(kN2).size(), 1u);
  EXPECT_FALSE(t.SentTo<VoteResponse>(kN2)[0].granted);
  t.Clear();
  t.Receive(kN2, AskVote(2, 0, 0));
  t.Sync();
  EXPECT_TRUE(t.out.messages.empty());
  EXPECT_EQ(t.core.term(), Term{1}) << "the term does not follow a disturber's";
}

TEST(RaftElection, ATransferMayTakeALiveLeadersPlace) {
  CoreUnderTest t;
  t.Receive(kN1, t.Append(1, 0, 0, {}));
  t.Sync();
  t.Clear();
  VoteRequest request = AskVote(2, 0, 0);
  request.transfer = true;
  t.Receive(kN2, request);
  t.Sync();
  ASSERT_EQ(t.SentTo<VoteResponse>(kN2).size(), 1u);
  EXPECT_TRUE(t.SentTo<VoteResponse>(kN2)[0].granted);
}

TEST(RaftElection, AClosedConnectionOfTheLeaderStartsAPreVoteWithin50Ms) {
  CoreUnderTest t;
  t.Receive(kN1, t.Append(1, 0, 0, {}));
  t.Sync();
  t.Step(Disconnected{.peer = kN1});
  t.Tick(6);
  EXPECT_EQ(t.core.role(), Role::kPreCandidate);
}

// The first pre-vote may reach a follower that has not yet noticed that the leader is gone.
TEST(RaftElection, AfterAClosedConnectionARefusedPreVoteIsRepeatedSoonButNotForEver) {
  CoreUnderTest t;
  t.Receive(kN1, t.Append(1, 0, 0, {}));
  t.Sync();
  t.Step(Disconnected{.peer = kN1});
  t.Tick(6);
  t.Clear();
  t.Tick(10);
  EXPECT_GE(t.SentTo<VoteRequest>(kN2).size(), 1u);
  t.Tick(30);
  t.Clear();
  t.Tick(29);
  EXPECT_LE(t.SentTo<VoteRequest>(kN2).size(), 1u);
}

TEST(RaftElection, AClosedConnectionOfAnotherFollowerMeansNothing) {
  CoreUnderTest t;
  t.Receive(kN1, t.Append(1, 0, 0, {}));
  t.Sync();
  t.Step(Disconnected{.peer = kN2});
  t.Tick(20);
  EXPECT_EQ(t.core.role(), Role::kFollower);
  EXPECT_EQ(t.core.leader(), kN1);
}

TEST(RaftElection, AReconnectedLeaderIsLeftAlone) {
  CoreUnderTest t;
  t.Receive(kN1, t.Append(1, 0, 0, {}));
  t.Sync();
  t.Step(Disconnected{.peer = kN1});
  t.Receive(kN1, t.Append(1, 0, 0, {}));
  t.Tick(25);
  EXPECT_EQ(t.core.role(), Role::kFollower);
}

TEST(RaftElection, TimeoutNowSkipsThePreVote) {
  CoreUnderTest t;
  t.Receive(kN1, t.Append(1, 0, 0, {}));
  t.Sync();
  t.Clear();
  t.Receive(kN1, TimeoutNow{.term = Term{1}});
  ASSERT_EQ(t.core.role(), Role::kCandidate);
  t.Sync();
  const auto asked = t.Sent<VoteRequest>();
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_TRUE(asked[0].second.transfer);
  EXPECT_FALSE(asked[0].second.pre_vote);
}

TEST(RaftElection, TimeoutNowFromAnybodyButTheLeaderIsIgnored) {
  CoreUnderTest t;
  t.Receive(kN1, t.Append(1, 0, 0, {}));
  t.Receive(kN2, TimeoutNow{.term = Term{1}});
  t.Receive(kN1, TimeoutNow{.term = Term{0}});
  EXPECT_EQ(t.core.role(), Role::kFollower);
}

TEST(RaftElection, APreVoteRefusedWithANewerTermIsFollowed) {
  CoreUnderTest t;
  t.TickUntil(Role::kPreCandidate);
  t.Receive(kN1, VoteResponse{.term = Term{9}, .pre_vote = true, .granted = false});
  EXPECT_EQ(t.core.role(), Role::kFollower);
  EXPECT_EQ(t.core.term(), Term{9});
}

// It may have lost its disk since then, and the log that the vote was for.
TEST(RaftElection, AVoteThatAnEarlierLifeAskedForDoesNotCount) {
  CoreUnderTest t;
  t.TickUntil(Role::kPreCandidate);
  VoteResponse answer{.term = Term{1}, .pre_vote = true, .granted = true, .life = kLife + 1};
  t.Receive(kN1, answer);
  EXPECT_EQ(t.core.role(), Role::kPreCandidate);
  answer.life = kLife;
  t.Receive(kN1, answer);
  t.Sync();
  ASSERT_EQ(t.core.role(), Role::kCandidate);
  for (const auto& [to, asked] : t.Sent<VoteRequest>()) EXPECT_EQ(asked.life, kLife);
  answer = {.term = Term{1}, .pre_vote = false, .granted = true, .life = kLife + 1};
  t.Receive(kN1, answer);
  EXPECT_EQ(t.core.role(), Role::kCandidate);
  answer.life = kLife;
  t.Receive(kN1, answer);
  EXPECT_EQ(t.core.role(), Role::kLeader);
}

TEST(RaftElection, EachAnswerNamesTheLifeThatAsked) {
  CoreUnderTest t(ThreeVoters(), RecoveredWith(4, {2, 3}));
  VoteRequest ask = AskVote(5, 2, 3);
  for (const bool pre_vote : {true, false}) {
    for (const std::uint64_t term : {0, 5}) {  // refused, granted
      ask.pre_vote = pre_vote;
      ask.term = Term{term};
      ask.life = 90 + term;
      t.Clear();
      t.Receive(kN1, ask);
      t.Sync();
      const auto answers = t.SentTo<VoteResponse>(kN1);
      ASSERT_EQ(answers.size(), 1u);
      EXPECT_EQ(answers[0].granted, term == 5);
      EXPECT_EQ(answers[0].life, ask.life);
    }
  }
}

TEST(RaftElection, ALearnerNeverCampaigns) {
  CoreConfig config = ConfigOf({kN1, kN2});
  config.initial_membership.learners = {kN0};
  CoreUnderTest t(config);
  t.Tick(500);
  EXPECT_EQ(t.core.role(), Role::kFollower);
}

TEST(RaftElection, AGroupOfOneElectsItselfWhenItsVoteIsDurable) {
  CoreUnderTest t(ConfigOf({kN0}));
  t.Tick(60);
  EXPECT_EQ(t.core.role(), Role::kCandidate);
  t.Sync();
  EXPECT_EQ(t.core.role(), Role::kLeader);
  t.Propose();
  EXPECT_EQ(t.core.commit_index(), LogIndex{0});
  t.Sync();
  EXPECT_EQ(t.core.commit_index(), LogIndex{1});
  t.Tick(500);
  EXPECT_EQ(t.core.role(), Role::kLeader);
}

}  // namespace
}  // namespace triad::dledger
