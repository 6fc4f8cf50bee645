// The parts of the message processors that need no store: tag filter, delay topic, checks, held
// pulls.

#include <gtest/gtest.h>

#include <future>

#include "broker/processor/send_checks.h"
#include "broker/service/delay_topic.h"
#include "broker/service/long_polling.h"
#include "broker/service/tag_filter.h"
#include "remoting/codes.h"
#include "tests/unit/broker/store_support.h"

namespace triad::broker {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds kLong{20};

TEST(TagFilter, LetsThroughWhatTheExpressionNames) {
  const struct {
    const char* expression;
    const char* tag;
    bool matches;
  } kCases[] = {
      {"*", "A", true},       {"*", "", true},          {"", "A", true},
      {"A", "A", true},       {"A", "B", false},        {"A", "", false},
      {"A || B", "B", true},  {"A||B", "A", true},      {" A ||  B ", "B", true},
      {"A || B", "C", false}, {"A || || B", "B", true}, {"Aa", "BB", true},  // one hash code
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(std::string(c.expression) + " / " + c.tag);
    const auto filter = TagFilter::Parse(c.expression);
    ASSERT_TRUE(filter.ok());
    EXPECT_EQ(filter->Matches(TagCode(c.tag)), c.matches);
  }
}

TEST(TagFilter, RefusesAnExpressionWithoutATag) {
  EXPECT_EQ(TagFilter::Parse("||").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(TagFilter::Parse(" ").status().code(), StatusCode::kInvalidArgument);
}

TEST(DelayTopic, ParksByLevelAndRemembersTheTarget) {
  MessageDraft draft;
  draft.topic = Topic("T");
  draft.queue_id = QueueId(5);
  SetProperty(&draft.properties, "DELAY", "3");
  ASSERT_TRUE(ParkIfDelayed(18, &draft));
  EXPECT_EQ(draft.topic.value(), kScheduleTopic);
  EXPECT_EQ(draft.queue_id.value(), 2);
  EXPECT_EQ(FindProperty(draft.properties, "REAL_TOPIC"), "T");
  EXPECT_EQ(FindProperty(draft.properties, "REAL_QID"), "5");
}

TEST(DelayTopic, DLY_2_TheLastLevelStandsForAllAboveIt) {
  MessageDraft draft;
  SetProperty(&draft.properties, "DELAY", "99");
  ASSERT_TRUE(ParkIfDelayed(18, &draft));
  EXPECT_EQ(draft.queue_id.value(), 17);
}

TEST(DelayTopic, ALevelBelowOneOrNoNumberIsNoDelay) {
  for (const char* level : {"0", "-1", "x", "1x"}) {
    SCOPED_TRACE(level);
    MessageDraft draft;
    draft.topic = Topic("T");
    SetProperty(&draft.properties, "DELAY", level);
    EXPECT_FALSE(ParkIfDelayed(18, &draft));
    EXPECT_EQ(draft.topic.value(), "T");
  }
}

TEST(DelayTopic, UnparksToTheTargetWithThePropertiesAsTheyAre) {
  MessageDraft draft;
  draft.topic = Topic("T");
  draft.queue_id = QueueId(5);
  draft.body = "b";
  draft.reconsume_times = 2;
  draft.born_host = Host("10.0.0.9:1");
  SetProperty(&draft.properties, "DELAY", "3");
  ParkIfDelayed(18, &draft);
  std::string record;
  StoredPlace place;
  place.store_host = Host("10.0.0.1:1");
  EncodeMessage(draft, place, &record);
  const auto out = Unpark(ParseMessage(record, true).value());
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(out->topic.value(), "T");
  EXPECT_EQ(out->queue_id.value(), 5);
  EXPECT_EQ(out->properties, draft.properties);
  EXPECT_EQ(out->body, "b");
  EXPECT_EQ(out->reconsume_times, 2);
}

TEST(DelayTopic, WhatDoesNotSayWhereItBelongsIsRefused) {
  for (const char* properties : {"", "REAL_TOPIC\x01T\x02", "REAL_TOPIC\x01T\x02REAL_QID\x01-1\x02",
                                 "REAL_TOPIC\x01SCHEDULE_TOPIC_XXXX\x02REAL_QID\x01\x30\x02"}) {
    MessageView view;
    view.properties = properties;
    view.born_host = Host("10.0.0.9:1");
    EXPECT_EQ(Unpark(view).status().code(), StatusCode::kCorruption) << properties;
  }
}

TEST(SendChecks, TransactionAndTimerMessagesAreForbidden) {
  EXPECT_EQ(CheckMessageType(0x4, {}).code, remoting::kNoPermission);
  EXPECT_EQ(CheckMessageType(0, ScanProperties("TRAN_MSG\x01True\x02")).code,
            remoting::kNoPermission);
  EXPECT_EQ(CheckMessageType(0, ScanProperties("TRAN_MSG\x01true\x02")).remark,
            "sending transaction message is forbidden");
  for (const char* name : {"TIMER_DELIVER_MS", "TIMER_DELAY_MS", "TIMER_DELAY_SEC"}) {
    const Refusal refusal = CheckMessageType(0, ScanProperties(std::string(name) + "\x01\x31\x02"));
    EXPECT_EQ(refusal.code, remoting::kSystemError) << name;
    EXPECT_EQ(refusal.remark, "accurate timer message is not enabled");
  }
  EXPECT_EQ(CheckMessageType(0x1, ScanProperties("TRAN_MSG\x01\x66\x61lse\x02K\x01v\x02")).code, 0);
}

class LongPollingTest : public testing::Test {
 protected:
  using Reason = LongPolling::Reason;
  // A waiter whose wake-up can be waited for.
  std::future<Reason> Park(std::int32_t queue, std::int64_t from, milliseconds hold = kLong,
                           std::uint64_t connection = 1) {
    auto woken = std::make_shared<std::promise<Reason>>();
    auto future = woken->get_future();
    parked_ = table_.Park(Queue("T", queue), QueueOffset(from), hold, connection,
                          [woken](Reason reason) { woken->set_value(reason); });
    return future;
  }
  static bool Woken(const std::future<Reason>& future) {
    return future.wait_for(milliseconds(0)) == std::future_status::ready;
  }

  TimerQueue timers_;
  LongPolling table_{timers_, 3};
  bool parked_ = false;
};

TEST_F(LongPollingTest, AnArrivalWakesWhoeverWaitsForItInThatQueue) {
  auto first = Park(0, 5);
  auto later = Park(0, 6);
  auto other = Park(1, 5);
  table_.OnArrival(Queue("T", 0), QueueOffset(6));
  ASSERT_TRUE(Woken(first));
  EXPECT_EQ(first.get(), Reason::kArrival);
  EXPECT_FALSE(Woken(later));
  EXPECT_FALSE(Woken(other));
  EXPECT_EQ(table_.size(), 2u);
}

TEST_F(LongPollingTest, ADeadlineWakes) {
  auto waiter = Park(0, 5, milliseconds(10));
  ASSERT_EQ(waiter.wait_for(kLong), std::future_status::ready);
  EXPECT_EQ(waiter.get(), Reason::kDeadline);
  EXPECT_EQ(table_.size(), 0u);
}

TEST_F(LongPollingTest, TheEndOfAConnectionDropsItsWaitersInSilence) {
  auto gone = Park(0, 5, kLong, 1);
  auto stays = Park(0, 5, kLong, 2);
  table_.OnConnectionClosed(1);
  EXPECT_EQ(table_.size(), 1u);
  table_.OnArrival(Queue("T", 0), QueueOffset(6));
  EXPECT_TRUE(Woken(stays));
  EXPECT_THROW(gone.get(), std::future_error);  // nobody will ever call it
}

TEST_F(LongPollingTest, ARoleChangeWakesAll) {
  auto a = Park(0, 5);
  auto b = Park(1, 7);
  table_.WakeAll();
  EXPECT_EQ(a.get(), Reason::kRoleChange);
  EXPECT_EQ(b.get(), Reason::kRoleChange);
}

TEST_F(LongPollingTest, AFullTableRefuses) {
  auto a = Park(0, 1);
  auto b = Park(0, 1);
  auto c = Park(0, 1);
  EXPECT_TRUE(parked_);
  auto d = Park(0, 1);
  EXPECT_FALSE(parked_);
  EXPECT_EQ(table_.size(), 3u);
}

}  // namespace
}  // namespace triad::broker
