// When a load sends, what its latency counts from, and how latencies are summed up.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <vector>

#include "bin/bench/schedule.h"
#include "bin/bench/server_usage.h"
#include "bin/bench/stream.h"
#include "common/histogram.h"

namespace triad::bench {
namespace {

TEST(Schedule, AClosedLoopKeepsAWindowAndCountsFromTheSend) {
  const Schedule schedule(64, 0, 5 * kSecond);
  EXPECT_EQ(schedule.Allowed(0, 0), 64u);
  EXPECT_EQ(schedule.Allowed(0, 10), 74u);
  EXPECT_EQ(schedule.CountsFrom(3, 7 * kSecond), 7 * kSecond);
  EXPECT_FALSE(schedule.NextDue(3, 0).has_value());
}

TEST(Schedule, AnOpenLoopSendsWhatIsDueAndNothingBefore) {
  const Schedule schedule(1000, 100, kSecond);
  EXPECT_EQ(schedule.Allowed(kSecond - 1, 0), 0u);
  EXPECT_EQ(schedule.Allowed(kSecond, 0), 1u);
  EXPECT_EQ(schedule.Allowed(kSecond + kSecond / 100 - 1, 0), 1u);
  EXPECT_EQ(schedule.Allowed(kSecond + kSecond / 100, 0), 2u);
  EXPECT_EQ(schedule.Allowed(2 * kSecond, 0), 101u);
  EXPECT_EQ(schedule.NextDue(2, 0), kSecond + 2 * kSecond / 100);
}

TEST(Schedule, AStallOfTheServerIsInTheLatencyOfEveryRequestThatWasDueMeanwhile) {
  const Schedule schedule(1'000'000, 1000, 0);
  // Nothing could be sent for a second; then all that is due leaves at once.
  const Nanos stall_end = 2 * kSecond;
  EXPECT_EQ(schedule.Allowed(stall_end, 1000), 2001u);
  Histogram latency;
  for (std::uint64_t n = 1000; n < 2000; ++n) {
    const Nanos from = schedule.CountsFrom(n, stall_end);
    EXPECT_EQ(from, schedule.Due(n));
    latency.Record(static_cast<std::uint64_t>(stall_end - from) / 1000);
  }
  EXPECT_NEAR(static_cast<double>(latency.Percentile(0.5)), 500'000, 10'000);
  EXPECT_EQ(latency.max(), 1'000'000u);
}

TEST(Schedule, TheWindowBoundsAnOpenLoopButNotItsLatencies) {
  const Schedule schedule(10, 1000, 0);
  EXPECT_EQ(schedule.Allowed(kSecond, 5), 15u);
  EXPECT_FALSE(schedule.NextDue(15, 5).has_value());  // only an answer helps
  EXPECT_EQ(schedule.CountsFrom(15, kSecond), schedule.Due(15));
}

TEST(Schedule, WhatIsAllowedAgreesWithWhatIsDueAtEveryRate) {
  std::mt19937_64 random(7);
  for (const double rate : {0.5, 3.0, 333.3, 5000.0, 20000.0, 999999.7}) {
    const Schedule schedule(1u << 30, rate, 17);
    for (int i = 0; i < 1000; ++i) {
      const Nanos now = 17 + static_cast<Nanos>(random() % (100 * kSecond));
      const std::uint64_t allowed = schedule.Allowed(now, 0);
      ASSERT_GT(allowed, 0u);
      ASSERT_LE(schedule.Due(allowed - 1), now) << rate;
      ASSERT_GT(schedule.Due(allowed), now) << rate;
    }
  }
}

TEST(Histogram, PercentilesAreWithinTwoPercentOfTheExactOnes) {
  std::mt19937_64 random(11);
  std::lognormal_distribution<double> latency(6, 2);
  Histogram histogram;
  std::vector<std::uint64_t> all;
  for (int i = 0; i < 200'000; ++i) {
    all.push_back(static_cast<std::uint64_t>(latency(random)));
    histogram.Record(all.back());
  }
  std::sort(all.begin(), all.end());
  for (const double fraction : {0.1, 0.5, 0.9, 0.99, 0.999, 0.9999}) {
    const auto rank = static_cast<std::size_t>(fraction * static_cast<double>(all.size()) + 0.5);
    const auto exact = static_cast<double>(all[rank - 1]);
    EXPECT_NEAR(static_cast<double>(histogram.Percentile(fraction)), exact, exact * 0.02)
        << fraction;
  }
  EXPECT_EQ(histogram.max(), all.back());
  EXPECT_EQ(histogram.Percentile(1), all.back());
}

TEST(Histogram, MergedPartsAreTheWhole) {
  Histogram left, right, whole;
  for (std::uint64_t v = 1; v < 100'000; v += 7) {
    (v % 2 == 0 ? left : right).Record(v);
    whole.Record(v);
  }
  left.Merge(right);
  EXPECT_EQ(left.count(), whole.count());
  EXPECT_EQ(left.max(), whole.max());
  for (const double fraction : {0.01, 0.5, 0.999})
    EXPECT_EQ(left.Percentile(fraction), whole.Percentile(fraction));
}

TEST(Histogram, AValueBeyondItsRangeIsStillTheMaximum) {
  Histogram histogram;
  EXPECT_EQ(histogram.Percentile(0.99), 0u);
  histogram.Record(std::uint64_t{1} << 40);
  EXPECT_EQ(histogram.max(), std::uint64_t{1} << 40);
  EXPECT_EQ(histogram.count(), 1u);
}

TEST(ServerUsage, CountsTheCpuOfTheGivenProcessesOnly) {
  const UsageSample before = SampleUsage({::getpid()});
  ASSERT_EQ(before.servers.size(), 1u);
  volatile std::uint64_t work = 0;
  const Nanos end = Now() + kSecond / 5;
  while (Now() < end) work = work + 1;
  const UsageDelta delta = Difference(before, SampleUsage({::getpid()}));
  EXPECT_TRUE(delta.knows_servers);
  EXPECT_GT(delta.server_cpu_s, 0.01);
  EXPECT_GT(delta.servers[0].rss_anon_mib, 0);
  EXPECT_FALSE(Difference(SampleUsage({}), SampleUsage({})).knows_servers);
}

}  // namespace
}  // namespace triad::bench
