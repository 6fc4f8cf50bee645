// The oracle of sim_broker notices what it is there for, and a run without faults is not enough.

#include "tests/sim/group/group_oracle.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "dledger/log/entry_codec.h"
#include "dledger/membership_codec.h"
#include "tests/sim/group/group_world.h"

namespace triad::sim {
namespace {

const TopicQueue kQueue{Topic("T0"), QueueId(1)};

class OracleTest : public ::testing::Test {
 protected:
  std::string violated() const {
    return oracle_.violation() ? oracle_.violation()->invariant : std::string();
  }
  GroupOptions options_;
  EventLoop loop_;
  GroupOracle oracle_{options_, loop_};
};

TEST_F(OracleTest, AFencingTokenBelongsToOneClient) {
  oracle_.OnGranted(kQueue, 4, 0, 7);
  oracle_.OnGranted(kQueue, 4, 7, 7);
  oracle_.OnGranted(kQueue, 5, 7, 8);
  EXPECT_EQ(violated(), "") << "a renewal, and the next holder";
  EXPECT_EQ(oracle_.OnLockAsked(kQueue), 8u);
  oracle_.OnGranted(kQueue, 4, 8, 8);
  EXPECT_EQ(violated(), "M7");
}

TEST_F(OracleTest, AFencingTokenNeverGoesBack) {
  oracle_.OnGranted(kQueue, 4, 0, 7);
  oracle_.OnGranted(kQueue, 5, oracle_.OnLockAsked(kQueue), 6);
  EXPECT_EQ(violated(), "M7");
}

TEST_F(OracleTest, AMaximumOffsetIsNeverSmallerThanBefore) {
  oracle_.OnMaxTold(kQueue, 0, 0);
  EXPECT_EQ(violated(), "");
  oracle_.OnMaxTold(kQueue, 1, 0);
  EXPECT_EQ(violated(), "M5");
}

TEST_F(OracleTest, AMaximumOffsetIsNeverBeyondWhatIsCommitted) {
  oracle_.OnMaxTold(kQueue, 0, 1);
  EXPECT_EQ(violated(), "M5");
}

TEST_F(OracleTest, ALogNeverBeginsEarlierThanItDid) {
  oracle_.OnLogBegins(2, LogIndex(1));
  oracle_.OnLogBegins(2, LogIndex(5));
  oracle_.OnLogBegins(1, LogIndex(3));
  EXPECT_EQ(violated(), "") << "another peer";
  oracle_.OnLogBegins(2, LogIndex(4));
  EXPECT_EQ(violated(), "M12");
}

TEST_F(OracleTest, ALostDiskMayBeginAnew) {
  oracle_.OnLogBegins(2, LogIndex(5));
  oracle_.OnDiskLost(2, LogIndex(9));
  oracle_.OnLogBegins(2, LogIndex(1));
  EXPECT_EQ(violated(), "");
}

class OracleMembersTest : public OracleTest {
 protected:
  // Commits a membership as the next entry. The first violation, if there is one.
  std::string Commit(const std::vector<std::string>& voters,
                     const std::vector<std::string>& learners) {
    dledger::Membership membership;
    membership.group_id = 7;
    for (const std::string& id : voters) membership.voters.push_back(PeerId(id));
    for (const std::string& id : learners) membership.learners.push_back(PeerId(id));
    oracle_.OnMembership(dledger::MakeEntry(Term(1), dledger::EntryType::kMembership, 0,
                                            dledger::EncodeMembership(membership), &tail_));
    return violated();
  }
  dledger::LogTail tail_;
};

TEST_F(OracleMembersTest, ALearnerBecomesAVoterAndAVoterGoes) {
  EXPECT_EQ(Commit({"n0", "n1", "n2"}, {}), "");
  EXPECT_EQ(Commit({"n0", "n1", "n2"}, {"n3"}), "");
  EXPECT_EQ(Commit({"n0", "n1", "n2", "n3"}, {}), "");
  EXPECT_EQ(Commit({"n1", "n2", "n3"}, {}), "");
  EXPECT_EQ(oracle_.changes().added, 1u);
  EXPECT_EQ(oracle_.changes().promoted, 1u);
  EXPECT_EQ(oracle_.changes().removed, 1u);
  EXPECT_TRUE(oracle_.WasRemoved(PeerId("n0")));
}

TEST_F(OracleMembersTest, OnlyALearnerBecomesAVoter) {
  EXPECT_EQ(Commit({"n0", "n1", "n2", "n3"}, {}), "R10");
}

TEST_F(OracleMembersTest, VotersChangeOneAtATime) {
  EXPECT_EQ(Commit({"n0"}, {}), "R10");
}

TEST_F(OracleMembersTest, AChangeIsOpenUntilItComesTrueOrIsRefused) {
  const GroupOracle::Change add(dledger::MembershipOp::kAddLearner, PeerId("n3"));
  const GroupOracle::Change promote(dledger::MembershipOp::kPromote, PeerId("n3"));
  oracle_.OnChangeAsked(add);
  oracle_.OnChangeAsked(promote);
  oracle_.OnChangeAsked(promote);
  oracle_.OnChangeRefused(promote);
  EXPECT_TRUE(oracle_.IsOpen(promote)) << "the same was asked for twice";
  Commit({"n0", "n1", "n2"}, {"n3"});
  EXPECT_FALSE(oracle_.IsOpen(add));
  EXPECT_TRUE(oracle_.IsOpen(promote));
  Commit({"n0", "n1", "n2"}, {});
  EXPECT_FALSE(oracle_.IsOpen(promote)) << "who was removed is not promoted any more";
}

TEST(GroupFloors, ARunWhoseFaultsNeverFireIsTooFew) {
  GroupCounts counts;
  for (const GroupCountName& name : GroupCountNames()) counts.*name.count = 1'000'000'000;
  EXPECT_EQ(TooFew(counts, 2000, false), "");
  EXPECT_EQ(TooFew(counts, 2000, true), "");
  counts.misdirected = 0;
  EXPECT_NE(TooFew(counts, 2000, false).find("TOO FEW: misdirected=0"), std::string::npos);
  EXPECT_EQ(TooFew(counts, 2000, true), "") << "that class has none";
  counts.lies = 0;
  EXPECT_NE(TooFew(counts, 2000, true).find("TOO FEW: lies=0"), std::string::npos);
}

TEST(GroupOptionsTest, BeyondTheBudgetNothingElseIsDamaged) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    EXPECT_EQ(GroupOptionsOf(seed).beyond, GroupOptions::Beyond::kNo);
    const GroupOptions o = BeyondOptionsOf(seed);
    EXPECT_NE(o.beyond, GroupOptions::Beyond::kNo);
    EXPECT_EQ(o.rot_every + o.bad_sector_every + o.misdirect_every + o.wipe_every, 0);
    EXPECT_EQ(o.machines(), 3);
  }
}

TEST(GroupOptionsTest, WhereSomethingTakesAVoterAwayThreeStay) {
  int changing = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    const GroupOptions o = GroupOptionsOf(seed);
    if (o.member_every == 0) continue;
    ++changing;
    EXPECT_LE(o.machines(), kPeersMax);
    EXPECT_GT(o.voters_max(), o.voters_min());
    const bool takes_away = o.damages() || o.wipe_every > 0 || o.wall_jump_every > 0;
    EXPECT_GE(o.voters_min(), takes_away ? 3 : 1);
  }
  EXPECT_GT(changing, 300);
}

}  // namespace
}  // namespace triad::sim
