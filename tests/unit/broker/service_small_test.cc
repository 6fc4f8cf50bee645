// Timers, the disk guard, rates.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broker/service/counters.h"
#include "broker/service/dedup_watch.h"
#include "broker/service/disk_guard.h"
#include "broker/service/log_alarm.h"
#include "broker/service/pulled_offsets.h"
#include "tests/unit/broker/one_peer.h"
#include "tests/unit/log_lines.h"

namespace triad::broker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

TEST(LogAlarm, StandsUntilEveryPlaceIsMended) {
  LogAlarm alarm;
  alarm.Raise(800, "second");
  alarm.Raise(80, "first");
  EXPECT_EQ(alarm.text(), "first (and 1 more places)");
  alarm.EndIn(80, 160);
  EXPECT_EQ(alarm.text(), "second");
  alarm.EndIn(0, 800);
  EXPECT_EQ(alarm.text(), "second");
  alarm.EndIn(800, 808);
  EXPECT_EQ(alarm.text(), "");
}

TEST(LogAlarm, IsBounded) {
  LogAlarm alarm;
  const auto places = static_cast<std::int64_t>(LogAlarm::kPlacesMax);
  for (std::int64_t i = 0; i < places + 5; ++i) alarm.Raise(8 * i, "x");
  EXPECT_THAT(alarm.text(), HasSubstr("and " + std::to_string(places - 1) + " more"));
}

TEST(DedupWatch, WarnsOfATopicThatForgotKeysEarlyOnceForEachTime) {
  const test::LogLines warnings(google::GLOG_WARNING);
  DedupWatch watch;
  watch.Look({{"Calm", 7, 0}, {"Full", kDedupKeysMax, 5}});
  watch.Look({{"Calm", 8, 0}, {"Full", kDedupKeysMax, 5}});
  watch.Look({{"Calm", 9, 0}, {"Full", kDedupKeysMax, 7}});
  EXPECT_THAT(warnings.lines(),
              testing::ElementsAre(AllOf(HasSubstr("topic Full"), HasSubstr("1000000"),
                                         HasSubstr("5 were forgotten early")),
                                   AllOf(HasSubstr("topic Full"), HasSubstr("2 were forgotten"))));
}

TEST(DedupWatch, ShowsKnownAndForgottenKeysOfAllTopics) {
  std::map<std::string, std::string> table;
  ShowDedup({{"Calm", 7, 0}, {"Full", 100, 5}}, &table);
  EXPECT_EQ(table.at("triadDedupKeys"), "107");
  EXPECT_EQ(table.at("triadDedupKeysEvicted"), "5");
}

TEST(PulledOffsets, CountInTheirTermUntilTheyAreForgotten) {
  PulledOffsets pulled;
  const TopicQueue first{Topic("T"), QueueId(0)};
  const TopicQueue second{Topic("U"), QueueId(0)};
  for (const char* group : {"g", "h"}) {
    pulled.Note(group, first, QueueOffset(5), Term(1));
    pulled.Note(group, second, QueueOffset(7), Term(1));
  }
  EXPECT_EQ(pulled.Find("g", first, Term(1)), QueueOffset(5));
  EXPECT_EQ(pulled.Find("g", first, Term(2)), std::nullopt);
  pulled.Note("g", first, QueueOffset(3), Term(2));
  EXPECT_EQ(pulled.Find("g", first, Term(2)), QueueOffset(3));
  pulled.Forget("g", second);
  EXPECT_EQ(pulled.Find("g", second, Term(1)), std::nullopt);
  EXPECT_EQ(pulled.Find("h", second, Term(1)), QueueOffset(7));
  pulled.ForgetTopic(Topic("U"));
  EXPECT_EQ(pulled.Find("h", second, Term(1)), std::nullopt);
  EXPECT_EQ(pulled.Find("h", first, Term(1)), QueueOffset(5));
  pulled.ForgetGroup("h");
  EXPECT_EQ(pulled.Find("h", first, Term(1)), std::nullopt);
}

TEST(PulledOffsets, AreBoundedAndWhatOlderTermsLeftMakesRoom) {
  PulledOffsets pulled;
  const auto queue = [](std::size_t i) {
    return TopicQueue{Topic("T"), QueueId(static_cast<std::int32_t>(i))};
  };
  for (std::size_t i = 0; i < PulledOffsets::kQueuesMax; ++i) {
    pulled.Note("g", queue(i), QueueOffset(1), Term(i % 2 == 0 ? 1 : 2));
  }
  pulled.Note("h", queue(0), QueueOffset(4), Term(2));
  EXPECT_EQ(pulled.Find("h", queue(0), Term(2)), QueueOffset(4));
  EXPECT_EQ(pulled.Find("g", queue(1), Term(2)), QueueOffset(1));
  EXPECT_EQ(pulled.Find("g", queue(0), Term(1)), std::nullopt);
  for (std::size_t i = 0; i < PulledOffsets::kQueuesMax; ++i) {
    pulled.Note("g", queue(i), QueueOffset(2), Term(2));
  }
  EXPECT_EQ(pulled.Find("g", queue(PulledOffsets::kQueuesMax - 2), Term(2)), std::nullopt);
  pulled.Note("h", queue(0), QueueOffset(5), Term(2));
  EXPECT_EQ(pulled.Find("h", queue(0), Term(2)), QueueOffset(5)) << "known ones go on";
}

TEST(TimerQueue, TasksRunInOrderOfTheirTime) {
  TimerQueue timers;
  std::vector<int> order;
  std::promise<void> done;
  timers.Schedule(milliseconds(40), [&] {
    order.push_back(2);
    done.set_value();
  });
  timers.Schedule(milliseconds(10), [&] { order.push_back(1); });
  ASSERT_EQ(done.get_future().wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(TimerQueue, ACancelledTaskNeverRuns) {
  TimerQueue timers;
  bool ran = false;
  const auto id = timers.Schedule(milliseconds(20), [&] { ran = true; });
  EXPECT_TRUE(timers.Cancel(id));
  EXPECT_FALSE(timers.Cancel(id));
  std::promise<void> later;
  timers.Schedule(milliseconds(40), [&] { later.set_value(); });
  ASSERT_EQ(later.get_future().wait_for(kPatience), std::future_status::ready);
  EXPECT_FALSE(ran);
}

TEST(TimerQueue, WithoutAThreadItsOwnerRunsWhatIsDue) {
  class HandClock final : public Clock {
   public:
    TimePoint MonoNow() const override { return now; }
    std::int64_t WallNowMs() const override { return 0; }
    TimePoint now{};
  } clock;
  TimerQueue timers(clock);
  EXPECT_EQ(timers.NextDue(), std::nullopt);
  int ran = 0;
  timers.Schedule(std::chrono::milliseconds(5), [&ran] { ran += 1; });
  timers.Schedule(std::chrono::milliseconds(5), [&ran] { ran += 10; });
  EXPECT_EQ(timers.NextDue(), clock.now + std::chrono::milliseconds(5));
  EXPECT_FALSE(timers.RunOne()) << "before its time";
  clock.now += std::chrono::milliseconds(5);
  EXPECT_TRUE(timers.RunOne());
  EXPECT_EQ(ran, 1);
  EXPECT_TRUE(timers.RunOne());
  EXPECT_EQ(ran, 11);
  EXPECT_FALSE(timers.RunOne());
}

TEST(TimerQueue, FullAndStoppedQueuesRefuse) {
  TimerQueue timers(1);
  EXPECT_NE(timers.Schedule(seconds(60), [] {}), 0u);
  EXPECT_EQ(timers.Schedule(seconds(60), [] {}), 0u);
  timers.Stop();
  EXPECT_EQ(timers.Schedule(seconds(0), [] {}), 0u);
}

// A disk with a settable fill.
class FillableDisk final : public FileSystem {
 public:
  Result<Space> GetSpace(const std::string&) override { return space; }
  Result<std::unique_ptr<File>> Open(const std::string&, OpenFlags) override { return Refuse(); }
  Status Rename(const std::string&, const std::string&) override { return Refuse(); }
  Status Remove(const std::string&) override { return Refuse(); }
  Status CreateDirs(const std::string&) override { return Refuse(); }
  Status SyncDir(const std::string&) override { return Refuse(); }
  Result<std::vector<DirEntry>> List(const std::string&) override { return Refuse(); }
  bool Exists(const std::string&) override { return false; }
  Space space{1000, 500};

 private:
  static Status Refuse() { return Status::Unsupported("only space is known of this disk"); }
};

TEST(DiskGuard, OPS_4_AFullDiskRefusesWithPathUseLimitAndOptionAndRecovers) {
  FillableDisk disk;
  DiskGuard guard(disk, "/data/store", 90, /*free_floor_bytes=*/200);
  guard.Refresh();
  EXPECT_TRUE(guard.Writable().ok());
  disk.space.available_bytes = 50;
  guard.Refresh();
  const Status full = guard.Writable();
  EXPECT_EQ(full.code(), StatusCode::kNoSpace);
  EXPECT_THAT(std::string(full.message()),
              AllOf(HasSubstr("/data/store"), HasSubstr("95.0%"), HasSubstr("90%"),
                    HasSubstr("diskSpaceWarningLevelRatio")));
  disk.space.available_bytes = 500;
  guard.Refresh();
  EXPECT_TRUE(guard.Writable().ok());
}

TEST(DiskGuard, ALargeDiskWithPlentyOfBytesFreeIsNotFull) {
  FillableDisk disk;
  disk.space = {1000, 50};
  DiskGuard guard(disk, "/data/store", 90, /*free_floor_bytes=*/40);
  guard.Refresh();
  EXPECT_TRUE(guard.Writable().ok());
  EXPECT_NEAR(guard.used_ratio(), 0.95, 1e-9);
}

TEST(RateWindow, TellsTheRatesOfTenSecondsAMinuteAndTenMinutes) {
  RateWindow window;
  EXPECT_EQ(window.Text(), "0 0 0");
  for (int second = 0; second <= 700; ++second) {
    // 1 per second, and 11 per second during the last 10 seconds
    window.Sample(TimePoint(seconds(second)), second <= 690 ? second : 690 + (second - 690) * 11);
  }
  EXPECT_EQ(window.Text(), "11 2.66667 1.16667");
}

}  // namespace
}  // namespace triad::broker
