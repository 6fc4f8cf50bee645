// Status, ids, clock, the log rate limiter and what mains do.

#include <gtest/gtest.h>

#include <sstream>

#include "common/clock.h"
#include "common/ids.h"
#include "common/latency_window.h"
#include "common/log_rate_limiter.h"
#include "common/mutant.h"
#include "common/process.h"
#include "common/status.h"

namespace triad {
namespace {

TEST(Status, OkIsOkAndAnErrorNamesItsCode) {
  EXPECT_TRUE(Status().ok());
  EXPECT_EQ(Status().ToString(), "OK");
  const Status status = Status::NotFound("no such topic");
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.ToString(), "NotFound: no such topic");
}

TEST(Status, ACopyIsIndependentOfTheOriginal) {
  Status original = Status::Busy("full");
  const Status copy = original;
  original = Status::Ok();
  EXPECT_EQ(copy.code(), StatusCode::kBusy);
  EXPECT_EQ(copy.message(), "full");
}

TEST(LatencyWindow, ForgetsWhatIsOlderThanAMinute) {
  LatencyWindow window;
  const TimePoint start{std::chrono::hours(1)};
  for (int i = 0; i < 99; ++i) window.Record(start, std::chrono::milliseconds(1));
  window.Record(start, std::chrono::milliseconds(50));
  const LatencySummary all = window.Read(start + std::chrono::seconds(31));
  EXPECT_EQ(all.count, 100u);
  EXPECT_NEAR(static_cast<double>(all.p50.count()), 1000, 20);
  EXPECT_NEAR(static_cast<double>(all.p99.count()), 1000, 20);
  EXPECT_EQ(all.max, std::chrono::milliseconds(50));
  EXPECT_EQ(window.Read(start + std::chrono::seconds(62)).count, 0u);
}

TEST(Histogram, CountsUpToABound) {
  Histogram histogram;
  histogram.Record(100, 3);
  histogram.Record(5000, 2);
  histogram.Record(9'000'000);
  EXPECT_EQ(histogram.CountUpTo(99), 0u);
  EXPECT_EQ(histogram.CountUpTo(100), 3u);
  EXPECT_EQ(histogram.CountUpTo(999'999), 5u);
  EXPECT_EQ(histogram.CountUpTo(10'000'000), 6u);
}

TEST(LatencyWindow, ReadsNothingOldAfterALongSilence) {
  LatencyWindow window;
  const TimePoint start{std::chrono::hours(1)};
  window.Record(start, std::chrono::milliseconds(1));
  EXPECT_EQ(window.Read(start + std::chrono::minutes(5)).count, 0u);
}

TEST(Result, CarriesEitherAValueOrAStatus) {
  const Result<int> good(5);
  EXPECT_EQ(*good, 5);
  const Result<int> bad(Status::Busy("x"));
  EXPECT_EQ(bad.status().code(), StatusCode::kBusy);
  EXPECT_DEATH(IgnoreError(Result<int>(Status::Busy("x")).value() == 0 ? Status() : Status(), ""),
               "Busy: x");
}

TEST(Ids, OffsetsOfDifferentKindsDoNotMix) {
  static_assert(!std::is_constructible_v<QueueOffset, PhysicalOffset>);
  static_assert(!std::is_convertible_v<std::int64_t, QueueOffset>);
  EXPECT_EQ((QueueOffset{5} + 3).value(), 8);
  EXPECT_EQ(QueueOffset{5} - QueueOffset{3}, 2);
}

TEST(SystemClock, MonotonicTimeDoesNotGoBackAndWallTimeIsThisCentury) {
  const TimePoint before = SystemClock().MonoNow();
  EXPECT_LE(before, SystemClock().MonoNow());
  EXPECT_GT(SystemClock().WallNowMs(), 1'600'000'000'000);
}

TEST(LogRateLimiter, LetsOneThroughPerIntervalAndCountsTheRest) {
  LogRateLimiter limiter(std::chrono::seconds(5));
  const TimePoint start{};
  EXPECT_EQ(limiter.Allow(start), std::optional<std::uint64_t>(0));
  EXPECT_EQ(limiter.Allow(start), std::nullopt);
  EXPECT_EQ(limiter.Allow(start + std::chrono::milliseconds(4999)), std::nullopt);
  EXPECT_EQ(limiter.Allow(start + std::chrono::seconds(5)), std::optional<std::uint64_t>(2));
  EXPECT_EQ(limiter.Allow(start + std::chrono::seconds(10)), std::optional<std::uint64_t>(0));
  EXPECT_EQ(SuppressedNote(0), "");
  EXPECT_EQ(SuppressedNote(2), " (2 more like this were left out)");
}

TEST(TranslateLongOptions, TurnsRocketMqsLongOptionsIntoLettersAndLeavesTheRest) {
  std::string texts[] = {"prog", "--configFile", "a.conf", "--namesrvAddr=h:1", "--help", "--check",
                         "-p",   "--",           "--help"};
  char* argv[9];
  for (int i = 0; i < 9; ++i) argv[i] = texts[i].data();
  TranslateLongOptions(9, argv);
  const char* expected[] = {"prog",    "-c", "a.conf", "-n=h:1", "-h",
                            "--check", "-p", "--",     "--help"};
  for (int i = 0; i < 9; ++i) EXPECT_STREQ(argv[i], expected[i]);
}

TEST(RaiseOpenFileLimit, ReachesTheHardLimit) {
  const std::uint64_t limit = RaiseOpenFileLimit();
  EXPECT_GE(limit, 1024u);
  EXPECT_EQ(RaiseOpenFileLimit(), limit);
}

TEST(Mutant, IsNeverAliveInANormalBuild) {
#ifndef TRIAD_MUTANTS
  static_assert(!TRIAD_MUTANT(1));
#endif
}

}  // namespace
}  // namespace triad
