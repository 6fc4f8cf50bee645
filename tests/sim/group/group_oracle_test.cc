// The oracle of sim_broker notices what it is there for, and a run without faults is not enough.

#include "tests/sim/group/group_oracle.h"

#include <gtest/gtest.h>

#include <string>

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
    EXPECT_EQ(o.peers, 3);
  }
}

}  // namespace
}  // namespace triad::sim
