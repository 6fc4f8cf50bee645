#include <gtest/gtest.h>

#include "broker/store/delay_levels.h"

namespace triad::broker {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

TEST(DelayLevels, TheDefaultTableHasEighteenLevels) {
  const DelayLevels levels;
  EXPECT_EQ(levels.max_level(), 18);
  EXPECT_EQ(levels.DelayOf(1), seconds(1));
  EXPECT_EQ(levels.DelayOf(3), seconds(10));
  EXPECT_EQ(levels.DelayOf(5), minutes(1));
  EXPECT_EQ(levels.DelayOf(17), hours(1));
  EXPECT_EQ(levels.DelayOf(18), hours(2));
}

TEST(DelayLevels, LevelsOutsideOfTheTable) {
  const DelayLevels levels = DelayLevels::Parse("1s 2d").value();
  EXPECT_EQ(levels.DelayOf(0), milliseconds(0));
  EXPECT_EQ(levels.DelayOf(-3), milliseconds(0));
  EXPECT_EQ(levels.DelayOf(2), hours(48));
  EXPECT_EQ(levels.DelayOf(99), hours(48));
}

TEST(DelayLevels, BlanksMayRepeat) {
  EXPECT_EQ(DelayLevels::Parse("  1s   5s\t2m ").value().max_level(), 3);
}

TEST(DelayLevels, RefusesWhatIsNoTable) {
  for (const char* text : {"", "  ", "1", "s", "1x", "-1s", "1s,2s", "1.5s", "1s 99999999999d"}) {
    EXPECT_EQ(DelayLevels::Parse(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
  std::string too_many;
  for (std::size_t i = 0; i <= kDelayLevelsMax; ++i) too_many += "1s ";
  EXPECT_FALSE(DelayLevels::Parse(too_many).ok());
}

}  // namespace
}  // namespace triad::broker
