#include "dledger/retention.h"

#include <gtest/gtest.h>

namespace triad::dledger {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using Verdict = Retention::Verdict;

constexpr std::int64_t kHourMs = 3600 * 1000;
constexpr std::int64_t kStartMs = 1'700'000'000'000;

class RetentionTest : public ::testing::Test {
 protected:
  RetentionTest() {
    options_.age = hours(72);
    options_.hours = {4};
    options_.forced_percent = 85;
    options_.free_floor_bytes = 1000;
    moment_.now = TimePoint(hours(1));
    moment_.log_time_ms = kStartMs;
    moment_.hour = 4;
    moment_.space = {.total_bytes = 10000, .available_bytes = 9000};
    moment_.segments = 10;
  }
  void Pass(std::chrono::nanoseconds time) {
    moment_.now += time;
    moment_.log_time_ms += std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  }
  static std::int64_t HoursAgo(std::int64_t n) { return kStartMs - n * kHourMs; }

  RetentionOptions options_;
  RetentionMoment moment_;
};

TEST_F(RetentionTest, ForgetsWhatIsOlderThanTheAgeInTheHourOfDeletion) {
  Retention retention(options_);
  retention.Begin(moment_);
  EXPECT_EQ(retention.Judge(HoursAgo(73), false), Verdict::kExpired);
  EXPECT_EQ(retention.Judge(HoursAgo(72), false), Verdict::kExpired);
  EXPECT_EQ(retention.Judge(HoursAgo(71), false), Verdict::kKeep);
}

TEST_F(RetentionTest, KeepsWhatIsOldInAnyOtherHour) {
  moment_.hour = 5;
  Retention retention(options_);
  retention.Begin(moment_);
  EXPECT_EQ(retention.Judge(HoursAgo(1000), false), Verdict::kKeep);
}

TEST_F(RetentionTest, ForgetsWhatIsOldInAnyOtherHourInALookThatIsAskedFor) {
  moment_.hour = 5;
  moment_.is_asked = true;
  Retention retention(options_);
  retention.Begin(moment_);
  EXPECT_EQ(retention.Judge(HoursAgo(72), false), Verdict::kExpired);
  EXPECT_EQ(retention.Judge(HoursAgo(71), false), Verdict::kKeep);
  moment_.is_asked = false;
  retention.Begin(moment_);
  EXPECT_EQ(retention.Judge(HoursAgo(72), false), Verdict::kKeep);
}

TEST_F(RetentionTest, ForgetsWhatIsOldAtAnyHourWhenTheDiskFills) {
  moment_.hour = 5;
  moment_.space.available_bytes = 2500;
  Retention retention(options_);
  retention.Begin(moment_);
  EXPECT_EQ(retention.Judge(HoursAgo(1000), false), Verdict::kExpired);
  EXPECT_EQ(retention.Judge(HoursAgo(1), false), Verdict::kKeep);
}

TEST_F(RetentionTest, ForgetsTheOldestOfAnyAgeWhenTheDiskIsNearlyFullOnePerLook) {
  moment_.hour = 5;
  moment_.space.available_bytes = 900;
  Retention retention(options_);
  retention.Begin(moment_);
  EXPECT_EQ(retention.Judge(HoursAgo(0), false), Verdict::kForced);
  EXPECT_EQ(retention.Judge(HoursAgo(0), false), Verdict::kKeep);
  retention.Begin(moment_);
  EXPECT_EQ(retention.Judge(HoursAgo(0), false), Verdict::kForced);
}

TEST_F(RetentionTest, ALargeDiskWithRoomIsNeverNearlyFull) {
  moment_.space = {.total_bytes = 100000, .available_bytes = 2000};
  Retention retention(options_);
  retention.Begin(moment_);
  EXPECT_EQ(retention.Judge(HoursAgo(0), false), Verdict::kKeep);
}

// Forced, then also what a peer needs, and only then the floor, where sends are refused: on a disk
// where the per cent decide as on one where the bytes do.
TEST_F(RetentionTest, WhatAPeerStillNeedsGoesLaterThanTheRestButBeforeSendsAreRefused) {
  struct Disk {
    std::uint64_t total, floor, calm, forced, urgent;  // the last three: bytes available
  };
  moment_.hour = 5;
  options_.held_percent = 87;
  for (const Disk& disk : {Disk{10000, 10000, 1501, 1500, 1300},
                           Disk{1u << 30, 1u << 20, 3u << 19, (3u << 19) - 1, (5u << 18) - 1}}) {
    options_.free_floor_bytes = disk.floor;
    Retention retention(options_);
    const auto judge = [&](std::uint64_t available, bool is_wanted) {
      moment_.space = {.total_bytes = disk.total, .available_bytes = available};
      retention.Begin(moment_);
      return retention.Judge(HoursAgo(0), is_wanted);
    };
    EXPECT_EQ(judge(disk.calm, false), Verdict::kKeep);
    EXPECT_EQ(judge(disk.forced, false), Verdict::kForced);
    EXPECT_EQ(judge(disk.forced, true), Verdict::kKeep);
    EXPECT_EQ(judge(disk.urgent + 1, true), Verdict::kKeep);
    EXPECT_EQ(judge(disk.urgent, true), Verdict::kForced);
  }
}

TEST_F(RetentionTest, AgeWaitsForNobody) {
  Retention retention(options_);
  retention.Begin(moment_);
  EXPECT_EQ(retention.Judge(HoursAgo(73), true), Verdict::kExpired);
}

TEST_F(RetentionTest, NothingIsForcedWhenThatIsSwitchedOff) {
  options_.forced_percent = 0;
  moment_.space.available_bytes = 0;
  Retention retention(options_);
  retention.Begin(moment_);
  EXPECT_EQ(retention.Judge(HoursAgo(0), false), Verdict::kKeep);
}

TEST_F(RetentionTest, AJumpOfTheClocksExpiresNothing) {
  Retention retention(options_);
  retention.Begin(moment_);
  moment_.log_time_ms += 10LL * 365 * 24 * kHourMs;
  Pass(minutes(1));
  retention.Begin(moment_);
  EXPECT_EQ(retention.Judge(HoursAgo(1), false), Verdict::kKeep);
  EXPECT_EQ(retention.Judge(HoursAgo(73), false), Verdict::kExpired);
  // Time that really passes goes on counting.
  Pass(hours(72));
  retention.Begin(moment_);
  EXPECT_EQ(retention.Judge(HoursAgo(1), false), Verdict::kExpired);
}

TEST_F(RetentionTest, TheFirstTimeThatIsKnownIsNoJump) {
  Retention retention(options_);
  moment_.log_time_ms = 0;
  retention.Begin(moment_);
  EXPECT_EQ(retention.Judge(HoursAgo(73), false), Verdict::kKeep);
  moment_.log_time_ms = kStartMs;
  retention.Begin(moment_);
  EXPECT_EQ(retention.Judge(HoursAgo(73), false), Verdict::kExpired);
}

TEST_F(RetentionTest, NoMoreThanHalfOfTheLogGoesByAgeInOneHour) {
  Retention retention(options_);
  retention.Begin(moment_);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(retention.Judge(HoursAgo(1000), false), Verdict::kExpired);
  EXPECT_EQ(retention.Judge(HoursAgo(1000), false), Verdict::kKeep);
  Pass(minutes(59));
  moment_.segments = 5;
  retention.Begin(moment_);
  EXPECT_EQ(retention.Judge(HoursAgo(1000), false), Verdict::kKeep);
  Pass(minutes(2));
  retention.Begin(moment_);
  EXPECT_EQ(retention.Judge(HoursAgo(1000), false), Verdict::kExpired);
  EXPECT_EQ(retention.Judge(HoursAgo(1000), false), Verdict::kExpired);
  EXPECT_EQ(retention.Judge(HoursAgo(1000), false), Verdict::kKeep);
}

}  // namespace
}  // namespace triad::dledger
