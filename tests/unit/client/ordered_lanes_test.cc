#include "client/ordered_lanes.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>

namespace triad::client {
namespace {

TEST(OrderedLanes, StartsTheFirstAndHoldsTheRestUntilItsFateIsKnown) {
  OrderedLanes<int> lanes;
  EXPECT_EQ(lanes.Enter("k", 1), 1);
  EXPECT_EQ(lanes.Enter("k", 2), std::nullopt);
  EXPECT_EQ(lanes.Enter("k", 3), std::nullopt);
  EXPECT_EQ(lanes.waiting(), 2u);
  EXPECT_EQ(lanes.Leave("k", true).start, 2);
  EXPECT_EQ(lanes.Leave("k", true).start, 3);
  EXPECT_EQ(lanes.Leave("k", true).start, std::nullopt);
  EXPECT_EQ(lanes.busy_lanes(), 0u);
}

TEST(OrderedLanes, OneLaneDoesNotHoldUpAnother) {
  OrderedLanes<int> lanes;
  EXPECT_TRUE(lanes.Enter("a", 1));
  EXPECT_TRUE(lanes.Enter("b", 2));
}

TEST(OrderedLanes, AFailureCancelsEverythingBehindItInOrder) {
  OrderedLanes<int> lanes;
  lanes.Enter("k", 1);
  lanes.Enter("k", 2);
  lanes.Enter("k", 3);
  const auto next = lanes.Leave("k", false);
  EXPECT_FALSE(next.start);
  EXPECT_EQ(next.cancel, (std::vector<int>{2, 3}));
  EXPECT_EQ(lanes.waiting(), 0u);
  EXPECT_TRUE(lanes.Enter("k", 4)) << "the lane begins anew";
}

// For any schedule: of a lane one item runs at a time, and items run in the order they entered.
TEST(OrderedLanes, KeepsTheOrderUnderRandomSchedules) {
  const std::uint32_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  OrderedLanes<int> lanes;
  std::map<std::string, std::vector<int>> entered;
  std::map<std::string, std::vector<int>> fates;  // started or cancelled
  std::set<std::string> running;
  int counter = 0;
  for (int step = 0; step < 5000; ++step) {
    const std::string lane(1, static_cast<char>('a' + random() % 4));
    if (random() % 2 == 0) {
      const int item = counter++;
      entered[lane].push_back(item);
      if (lanes.Enter(lane, item)) {
        ASSERT_TRUE(running.insert(lane).second) << "two of one lane at once";
        fates[lane].push_back(item);
      }
    } else if (running.contains(lane)) {
      const auto next = lanes.Leave(lane, random() % 8 != 0);
      if (next.start) fates[lane].push_back(*next.start);
      for (const int item : next.cancel) fates[lane].push_back(item);
      if (!next.start) running.erase(lane);
    }
  }
  for (auto& [lane, fate] : fates) {
    entered[lane].resize(fate.size());
    EXPECT_EQ(fate, entered[lane]);
  }
}

}  // namespace
}  // namespace triad::client
