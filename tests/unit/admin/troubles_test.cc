#include "bin/admin/troubles.h"

#include <gmock/gmock.h>

#include "remoting/version_text.h"

namespace triad::admin {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::int64_t kNow = 1'700'000'000'000;

// A member with one queue, as it answers GET_CONSUMER_RUNNING_INFO.
remoting::Json Member(const std::string& type, const std::string& orderly, const std::string& queue,
                      const std::string& subscription = "*",
                      std::int64_t started_ms = kNow - 200000) {
  const std::string text =
      R"({"mqTable":{{"brokerName":"b","queueId":1,"topic":"T"}:)" + queue +
      R"(},"properties":{"PROP_CONSUMEORDERLY":")" + orderly + R"(","PROP_CONSUME_TYPE":")" + type +
      R"(","PROP_CONSUMER_START_TIMESTAMP":")" + std::to_string(started_ms) +
      R"("},"subscriptionSet":[{"subString":")" + subscription + R"(","topic":"T"}]})";
  const auto json = remoting::Json::Parse(text);
  EXPECT_TRUE(json.ok()) << text << json.status();
  return json.ok() ? *json : remoting::Json();
}

std::string Queue(const std::string& members) {
  return "{" + members + "}";
}

TEST(Troubles, AConcurrentMemberThatDoesNotGoOnIsBlocked) {
  const auto of = [](std::int64_t consumed_ms, int cached) {
    return Troubles("c1",
                    Member("CONSUME_PASSIVELY", "false",
                           Queue("\"cachedMsgCount\":" + std::to_string(cached) +
                                 ",\"lastConsumeTimestamp\":" + std::to_string(consumed_ms))),
                    kNow);
  };
  EXPECT_THAT(of(kNow - 60001, 1),
              ElementsAre("c1 MessageQueue [topic=T, brokerName=b, queueId=1] can't consume for a "
                          "while, maybe blocked, 60001ms"));
  EXPECT_THAT(of(kNow - 60000, 1), IsEmpty());
  EXPECT_THAT(of(kNow - 60001, 0), IsEmpty()) << "it has nothing to consume";
}

TEST(Troubles, AnOrderlyMemberWithoutItsLockOrThatKeepsOneIsTold) {
  const auto of = [](const std::string& queue) {
    return Troubles("c1", Member("CONSUME_PASSIVELY", "true", Queue(queue)), kNow);
  };
  const std::string who = "c1 MessageQueue [topic=T, brokerName=b, queueId=1] ";
  EXPECT_THAT(of("\"locked\":false,\"lastLockTimestamp\":" + std::to_string(kNow - 5)),
              ElementsAre(who + "can't lock for a while, 5ms"));
  EXPECT_THAT(of(R"("locked":true,"droped":true,"tryUnlockTimes":3)"),
              ElementsAre(who + "unlock 3 times, still failed"));
  EXPECT_THAT(of(R"("locked":true,"droped":true,"tryUnlockTimes":0)"), IsEmpty());
  EXPECT_THAT(of(R"("locked":true,"cachedMsgCount":1,"lastConsumeTimestamp":0)"), IsEmpty());
}

TEST(Troubles, APullConsumerHasNone) {
  EXPECT_THAT(Troubles("c1", Member("CONSUME_ACTIVELY", "true", Queue(R"("locked":false)")), kNow),
              IsEmpty());
}

TEST(Troubles, MembersSubscribeToTheSameUnlessTheyAreYoung) {
  const auto same = [](const std::string& second, std::int64_t started_ms) {
    return SameSubscriptions(
        {{"c1", Member("CONSUME_PASSIVELY", "false", "{}", "a || b", started_ms)},
         {"c2", Member("CONSUME_PASSIVELY", "false", "{}", second, started_ms)}},
        kNow);
  };
  EXPECT_TRUE(same("a || b", kNow - 120001));
  EXPECT_FALSE(same("a", kNow - 120001));
  EXPECT_TRUE(same("a", kNow - 120000));
  EXPECT_TRUE(SameSubscriptions({}, kNow));
}

TEST(VersionName, IsTheReleaseOrTheNumber) {
  EXPECT_EQ(remoting::VersionName(479), "V5_3_3");
  EXPECT_EQ(remoting::VersionName(399), "V4_9_3");
  EXPECT_EQ(remoting::VersionName(413), "V5_0_0");
  EXPECT_EQ(remoting::VersionName(232), "V4_1_0_SNAPSHOT");
  EXPECT_EQ(remoting::VersionName(62), "62");
  EXPECT_EQ(remoting::VersionName(612), "612");
}

}  // namespace
}  // namespace triad::admin
