// What a broker tells of itself (admin.md §2.9).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "remoting/bodies.h"
#include "remoting/codes.h"
#include "tests/unit/broker/one_broker.h"

namespace triad::broker {
namespace {

TEST(RuntimeInformation, HasEveryKeyThatToolsNeed) {
  OneBroker broker;
  const auto table =
      remoting::KVTable::Decode(broker.Ask(remoting::kGetBrokerRuntimeInfo, {}).body).value().table;
  for (const char* key : {"brokerVersionDesc",
                          "brokerVersion",
                          "brokerActive",
                          "bootTimestamp",
                          "runtime",
                          "putTps",
                          "getFoundTps",
                          "getMissTps",
                          "getTotalTps",
                          "getTransferredTps",
                          "getTransferedTps",
                          "msgPutTotalTodayNow",
                          "msgPutTotalTodayMorning",
                          "msgPutTotalYesterdayMorning",
                          "msgGetTotalTodayNow",
                          "msgGetTotalTodayMorning",
                          "msgGetTotalYesterdayMorning",
                          "sendThreadPoolQueueSize",
                          "sendThreadPoolQueueCapacity",
                          "sendThreadPoolQueueHeadWaitTimeMills",
                          "pullThreadPoolQueueSize",
                          "pullThreadPoolQueueHeadWaitTimeMills",
                          "queryThreadPoolQueueHeadWaitTimeMills",
                          "pageCacheLockTimeMills",
                          "earliestMessageTimeStamp",
                          "commitLogDiskRatio",
                          "consumeQueueDiskRatio",
                          "commitLogDirCapacity",
                          "commitLogMinOffset",
                          "commitLogMaxOffset",
                          "dispatchBehindBytes",
                          "remainHowManyDataToFlush",
                          "startAcceptSendRequestTimeStamp",
                          "putMessageTimesTotal",
                          "putMessageAverageSize",
                          "putMessageDistributeTime",
                          "dispatchMaxBuffer",
                          "getMessageEntireTimeMax",
                          "putMessageEntireTimeMax",
                          "putMessageFailedTimes",
                          "putMessageSizeTotal",
                          "pullThreadPoolQueueCapacity",
                          "queryThreadPoolQueueSize",
                          "queryThreadPoolQueueCapacity",
                          "remainTransientStoreBufferNumbs",
                          "scheduleMessageOffset_1",
                          "scheduleMessageOffset_18",
                          "timerReadBehind",
                          "timerOffsetBehind",
                          "timerCongestNum",
                          "timerEnqueueTps",
                          "timerDequeueTps"}) {
    EXPECT_TRUE(table.contains(key)) << key;
  }
  EXPECT_EQ(table.at("brokerActive"), "true");
  EXPECT_THAT(table.at("commitLogDirCapacity"),
              testing::MatchesRegex("Total : .* GiB, Free : .* GiB\\."));
}

TEST(RuntimeInformation, TellsHowLongSendsTookInTheWordsOfTheOriginal) {
  OneBroker broker;
  const TimePoint now = SystemClock().MonoNow();
  Counters& counters = broker.context().counters;
  counters.put_times.Record(now, std::chrono::microseconds(300), 97);
  counters.put_times.Record(now, std::chrono::milliseconds(30), 2);
  counters.put_times.Record(now, std::chrono::seconds(11));
  counters.get_times.Record(now, std::chrono::milliseconds(7));
  const auto table =
      remoting::KVTable::Decode(broker.Ask(remoting::kGetBrokerRuntimeInfo, {}).body).value().table;
  EXPECT_EQ(table.at("putMessageDistributeTime"),
            "[<=0ms]:97 [0~10ms]:0 [10~50ms]:2 [50~100ms]:0 [100~200ms]:0 [200~500ms]:0 "
            "[500ms~1s]:0 [1~2s]:0 [2~3s]:0 [3~4s]:0 [4~5s]:0 [5~10s]:0 [10s~]:1 ");
  EXPECT_EQ(table.at("putMessageEntireTimeMax"), "11000");
  EXPECT_EQ(table.at("getMessageEntireTimeMax"), "7");
  EXPECT_EQ(table.at("putLatency99").substr(0, 2), "30");
  EXPECT_EQ(table.at("putLatency999"), "11000.000");
}

}  // namespace
}  // namespace triad::broker
