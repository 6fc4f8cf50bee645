#include "dledger/raft/preferred_leader.h"
#include "tests/unit/dledger/raft_core_fixture.h"

// Leadership handed over: to whom not, and never at the price of a group that stands still.

namespace triad::dledger {
namespace {

class RaftTransfer : public testing::Test {
 protected:
  void Lead(CoreUnderTest* leader) {
    leader->BecomeLeader();
    leader->Propose();
    leader->Sync();
    for (const PeerId& peer : {kN1, kN2}) leader->Acknowledge(peer, 1);
    ASSERT_TRUE(leader->core.leader_ready());
    leader->Clear();
  }
  void SetUp() override { Lead(&t); }

  std::optional<TransferFailure> WhyNotTo(const PeerId& peer) {
    t.out.transfers_failed.clear();
    t.Step(TransferLeadership{.to = peer, .context = 6});
    if (t.out.transfers_failed.empty()) return std::nullopt;
    EXPECT_EQ(t.out.transfers_failed[0].context, 6u);
    EXPECT_FALSE(t.core.transferring());
    return t.out.transfers_failed[0].why;
  }
  CoreUnderTest t;
};

TEST_F(RaftTransfer, AFollowerRefuses) {
  CoreUnderTest follower;
  follower.Step(TransferLeadership{.to = kN1, .context = 6});
  ASSERT_EQ(follower.out.transfers_failed.size(), 1u);
  EXPECT_EQ(follower.out.transfers_failed[0].why, TransferFailure::kNotLeader);
}

TEST_F(RaftTransfer, RefusesWhoIsNoOtherVoter) {
  EXPECT_EQ(WhyNotTo(PeerId("n9")), TransferFailure::kNotVoter);
  EXPECT_EQ(WhyNotTo(kN0), TransferFailure::kNotVoter);
  t.Change(MembershipOp::kAddLearner, PeerId("n3"));
  t.Acknowledge(PeerId("n3"), 2);
  EXPECT_EQ(WhyNotTo(PeerId("n3")), TransferFailure::kNotVoter);
}

TEST_F(RaftTransfer, RefusesADeadPeer) {
  for (int i = 0; i < 30; ++i) {
    t.Tick(1);
    t.Acknowledge(kN1, 1);
  }
  EXPECT_EQ(WhyNotTo(kN2), TransferFailure::kNotReachable);
}

TEST_F(RaftTransfer, RefusesAPeerThatLags) {
  t.Propose();
  t.Sync();
  for (int i = 0; i < 33; ++i) {
    t.Tick(1);
    t.Acknowledge(kN1, 2);
    t.Acknowledge(kN2, 1);
  }
  EXPECT_EQ(WhyNotTo(kN2), TransferFailure::kNotCaughtUp);
}

TEST_F(RaftTransfer, OneAtATime) {
  t.Propose();
  EXPECT_EQ(WhyNotTo(kN1), std::nullopt);
  t.Step(TransferLeadership{.to = kN2, .context = 8});
  ASSERT_EQ(t.out.transfers_failed.size(), 1u);
  EXPECT_EQ(t.out.transfers_failed[0].context, 8u);
  EXPECT_EQ(t.out.transfers_failed[0].why, TransferFailure::kInProgress);
}

TEST_F(RaftTransfer, EndsWhenItsTargetIsRemovedOrForgets) {
  t.Propose();
  EXPECT_EQ(WhyNotTo(kN1), std::nullopt);
  AppendResponse report;
  report.term = t.core.term();
  report.read_round = 1;
  report.recovering = true;
  report.recovery_nonce = 77;
  t.Receive(kN1, report);
  t.Acknowledge(kN2, 1);
  EXPECT_FALSE(t.core.transferring());
  ASSERT_EQ(t.out.transfers_failed.size(), 1u);
  EXPECT_EQ(t.out.transfers_failed[0].why, TransferFailure::kNotVoter);
}

TEST_F(RaftTransfer, WithNobodyFitItSaysSo) {
  for (int i = 0; i < 29; ++i) t.Tick(1);
  t.Step(Disconnected{.peer = kN1});
  t.Step(Disconnected{.peer = kN2});
  t.Step(TransferLeadership{.to = PeerId(), .context = 3});
  ASSERT_EQ(t.out.transfers_failed.size(), 1u);
  EXPECT_EQ(t.out.transfers_failed[0].why, TransferFailure::kNobody);
}

// ---- the preferred leader ----

TEST_F(RaftTransfer, ThePreferredLeaderIsTriedWhenItHasBeenWellForAWhile) {
  CoreConfig config = ThreeVoters();
  config.preferred_leader = kN2;
  config.preferred_wait_ticks = 20;
  CoreUnderTest leader(config);
  Lead(&leader);
  for (int i = 0; i < 19; ++i) {
    leader.Tick(1);
    for (const PeerId& peer : {kN1, kN2}) leader.Acknowledge(peer, 1);
  }
  EXPECT_TRUE(leader.Sent<TimeoutNow>().empty());
  leader.Tick(1);
  EXPECT_FALSE(leader.SentTo<TimeoutNow>(kN2).empty());
  EXPECT_TRUE(leader.SentTo<TimeoutNow>(kN1).empty());
}

TEST_F(RaftTransfer, APreferredLeaderThatLagsNeverStopsTheGroup) {
  CoreConfig config = ThreeVoters();
  config.preferred_leader = kN2;
  config.preferred_wait_ticks = 20;
  CoreUnderTest leader(config);
  Lead(&leader);
  for (int i = 0; i < 500; ++i) {
    leader.Propose();
    leader.Sync();
    leader.Tick(1);
    leader.Acknowledge(kN1, leader.core.last_index().value());
    leader.Acknowledge(kN2, 1);
    ASSERT_FALSE(leader.core.transferring());
  }
  EXPECT_TRUE(leader.Sent<TimeoutNow>().empty());
  EXPECT_EQ(leader.core.commit_index(), leader.core.last_index());
}

TEST(RaftPreferredLeader, TriesMoreAndMoreRarelyAndForgivesInTheEnd) {
  PreferredLeader preferred(kN2, 10);
  std::vector<int> tries;
  for (int tick = 1; tick <= 2000; ++tick) {
    if (preferred.Tick(/*is_fit=*/true)) tries.push_back(tick);
  }
  EXPECT_EQ(tries, (std::vector<int>{10, 20, 40, 80, 160, 320, 640, 1280, 1920}));
  int waited = 0;
  for (int tick = 0; tick < 2 * 64 * 10; ++tick) preferred.Tick(/*is_fit=*/false);
  do {
    ++waited;
  } while (!preferred.Tick(/*is_fit=*/true));
  EXPECT_EQ(waited, 10);
}

TEST(RaftPreferredLeader, AMomentOfWeaknessStartsTheWaitAnew) {
  PreferredLeader preferred(kN2, 10);
  for (int tick = 0; tick < 9; ++tick) EXPECT_FALSE(preferred.Tick(/*is_fit=*/true));
  EXPECT_FALSE(preferred.Tick(/*is_fit=*/false));
  for (int tick = 0; tick < 9; ++tick) EXPECT_FALSE(preferred.Tick(/*is_fit=*/true));
  EXPECT_TRUE(preferred.Tick(/*is_fit=*/true));
}

}  // namespace
}  // namespace triad::dledger
