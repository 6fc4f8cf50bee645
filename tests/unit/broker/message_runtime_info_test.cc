// Figures of GET_BROKER_RUNTIME_INFO that depend on the day and on the disk (admin.md §2.9).

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <map>
#include <string>

#include "broker/service/runtime_info.h"
#include "remoting/codes.h"
#include "tests/unit/broker/message_harness.h"
#include "tests/unit/broker/stalling_file_system.h"

namespace triad::broker {
namespace {

using std::chrono::milliseconds;

// The machine stands in China as long as it lives: midnight there is 16:00 in UTC.
class InChina {
 public:
  InChina() { Set("CST-8"); }
  ~InChina() { Set(nullptr); }

 private:
  static void Set(const char* zone) {
    zone != nullptr ? ::setenv("TZ", zone, 1) : ::unsetenv("TZ");
    ::tzset();
  }
};

class WallClock final : public Clock {
 public:
  TimePoint MonoNow() const override { return SystemClock().MonoNow(); }
  std::int64_t WallNowMs() const override { return now_ms; }
  std::int64_t now_ms = 0;
};

class Info {
 public:
  explicit Info(MessageHarness* broker, const Clock& clock = SystemClock())
      : info_(broker->context().config, clock, broker->context().counters, broker->context().disk,
              alarm_, broker->store()) {}
  void Sample() { info_.Sample(); }
  std::string Get(const std::string& key) const { return info_.Table().at(key); }

 private:
  LogAlarm alarm_;
  RuntimeInfo info_;
};

TEST(RuntimeFigures, AMorningIsMidnightWhereTheMachineStands) {
  const InChina china;
  WallClock clock;
  constexpr std::int64_t kMidnight = 1772380800000;  // 2026-03-01 16:00 UTC
  clock.now_ms = kMidnight - 60000;
  MessageHarness broker;
  Info info(&broker, clock);
  Counters& counters = broker.context().counters;
  counters.put_user_messages = 5;
  counters.get_user_messages = 3;
  info.Sample();
  EXPECT_EQ(info.Get("msgPutTotalTodayMorning"), "0");
  clock.now_ms = kMidnight + 1000;
  info.Sample();
  EXPECT_EQ(info.Get("msgPutTotalTodayMorning"), "5");
  EXPECT_EQ(info.Get("msgGetTotalTodayMorning"), "3");
  counters.put_user_messages = 9;
  clock.now_ms = kMidnight + 9LL * 3600 * 1000;  // behind UTC's midnight
  info.Sample();
  EXPECT_EQ(info.Get("msgPutTotalTodayMorning"), "5");
  clock.now_ms = kMidnight + 25LL * 3600 * 1000;
  info.Sample();
  EXPECT_EQ(info.Get("msgPutTotalTodayMorning"), "9");
  EXPECT_EQ(info.Get("msgPutTotalYesterdayMorning"), "5");
  EXPECT_EQ(info.Get("msgPutTotalTodayNow"), "9");
}

TEST(RuntimeFigures, WhatTheDiskStillOwesIsTold) {
  StallingFileSystem disk;
  MessageHarness broker([](BrokerConfig* config) { config->flush = FlushDiskType::kSyncFlush; },
                        disk);
  broker.CreateTopic("T", 1);
  Info info(&broker);
  const auto owed = [&] { return info.Get("remainHowManyDataToFlush"); };
  EXPECT_TRUE(broker.Eventually([&] { return owed() == "0 B"; })) << owed();
  disk.Hold(std::string(20, '0'));
  auto answer =
      broker.Ask(broker.SendCommand(MessageHarness::SendHeader("T"), std::string(3 * 1024, 'x')));
  EXPECT_TRUE(broker.Eventually([&] { return owed() != "0 B"; }));
  EXPECT_EQ(owed().substr(0, 2), "3.") << owed();
  EXPECT_EQ(owed().substr(3), " KiB") << owed();
  EXPECT_EQ(answer.wait_for(milliseconds(0)), std::future_status::timeout);
  disk.Release();
  EXPECT_EQ(answer.get().code, remoting::kSuccess);
  EXPECT_TRUE(broker.Eventually([&] { return owed() == "0 B"; })) << owed();
}

// An ASYNC_FLUSH send is answered before its sync, which follows by itself.
TEST(RuntimeFigures, WithAsyncFlushTheDebtEndsWithTheNextSync) {
  MessageHarness broker;
  broker.CreateTopic("T", 1);
  Info info(&broker);
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(broker.Send(MessageHarness::SendHeader("T"), "m").code, remoting::kSuccess);
  }
  EXPECT_TRUE(broker.Eventually([&] { return info.Get("remainHowManyDataToFlush") == "0 B"; }));
}

TEST(RuntimeFigures, ADaysMessagesAreThoseOfUsers) {
  MessageHarness broker;
  Info info(&broker);
  for (const char* topic : {"T", "BenchmarkTest", "DefaultCluster_REPLY_TOPIC", "rmq_sys_x"}) {
    broker.CreateTopic(topic, 1);
    for (const bool plain : {true, false}) {
      broker.plain_sends = plain;
      ASSERT_EQ(broker.Send(MessageHarness::SendHeader(topic), "m").code, remoting::kSuccess);
    }
    const auto pull = MessageHarness::PullCommand(MessageHarness::PullHeader(topic, 0, 0));
    EXPECT_EQ(broker.Call(pull).code, remoting::kSuccess);
  }
  EXPECT_EQ(broker.context().counters.put_messages, 8);
  EXPECT_EQ(broker.context().counters.get_messages, 8);
  EXPECT_EQ(info.Get("msgPutTotalTodayNow"), "2");
  EXPECT_EQ(info.Get("msgGetTotalTodayNow"), "2");
}

TEST(RuntimeFigures, SizesAreThoseOfRecords) {
  MessageHarness broker;
  Info info(&broker);
  broker.context().counters.NoteStored(4, 1000);
  EXPECT_EQ(info.Get("putMessageTimesTotal"), "4");
  EXPECT_EQ(info.Get("putMessageSizeTotal"), "1000");
  EXPECT_EQ(info.Get("putMessageAverageSize"), "250.0000");
}

}  // namespace
}  // namespace triad::broker
