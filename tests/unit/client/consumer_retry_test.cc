// What the concurrent push consumer does with messages that its listener did not manage.

#include <gtest/gtest.h>

#include <algorithm>

#include "client/message_codec.h"
#include "remoting/codes.h"
#include "tests/unit/client/consumer_fixture.h"

namespace triad::client {
namespace {

TEST_F(ConsumerTest, AFailedMessageComesBackUntilItIsADeadLetter) {
  cluster_.CreateTopic("T", 1);
  cluster_.Put("T", 0, "poison");
  cluster_.Put("T", 0, "good");
  PushConsumerOptions options = Options();
  options.max_reconsume_times = 2;
  const auto consumer = Start(options, Listener([](const ReceivedMessage& message) {
                                return message.body == "poison" ? ConcurrentResult::kReconsumeLater
                                                                : ConcurrentResult::kSuccess;
                              }));
  ASSERT_TRUE(cluster_.Wait([&] { return cluster_.Stored("%DLQ%g").size() == 1; }));
  EXPECT_EQ(cluster_.Stored("%DLQ%g")[0].body, "poison");
  std::vector<int> times;
  for (const ReceivedMessage& message : messages_) {
    if (message.body != "poison") continue;
    times.push_back(message.reconsume_times);
    EXPECT_EQ(message.topic, "T") << "shown under its first topic";
  }
  EXPECT_EQ(times, (std::vector<int>{0, 1, 2})) << "one delivery and two retries";
  EXPECT_TRUE(cluster_.Wait([&] { return cluster_.Offset("g", "T", 0) == 2; }))
      << "the queue moved on";
}

TEST_F(ConsumerTest, SendsToTheRetryTopicWhenSendBackIsRefused) {
  cluster_.CreateTopic("T", 1);
  cluster_.Put("T", 0, "x", "UNIQ_KEY\x01U\x02");
  const auto hook = cluster_.SetHook([&](int, const Command& request, FakeCluster::Script*) {
    std::optional<Command> answer;
    if (request.code == remoting::kConsumerSendMsgBack) {
      answer = Command::ResponseTo(request, 1, "look message by offset failed");
    }
    return answer;
  });
  const auto consumer = Start(Options(), Listener(&RefuseOnce));
  ASSERT_TRUE(cluster_.Wait([&] { return bodies_.size() == 2; }));
  const std::vector<StoredMessage> retried = cluster_.Stored("%RETRY%g");
  ASSERT_EQ(retried.size(), 1u);
  EXPECT_EQ(retried[0].reconsume_times, 1);
  const Properties properties = ParseProperties(retried[0].properties);
  EXPECT_EQ(properties.at("RETRY_TOPIC"), "T");
  EXPECT_EQ(properties.at("DELAY"), "3");
  EXPECT_EQ(properties.at("UNIQ_KEY"), "U");
  EXPECT_FALSE(properties.at("ORIGIN_MESSAGE_ID").empty());
}

TEST_F(ConsumerTest, ASendBackOfUnknownOutcomeIsRepeatedAndNotCopied) {
  cluster_.CreateTopic("T", 1);
  cluster_.Put("T", 0, "x");
  int asked = 0;
  const auto hook = cluster_.SetHook([&](int, const Command& request, FakeCluster::Script* script) {
    std::optional<Command> answer;
    if (request.code != remoting::kConsumerSendMsgBack) return answer;
    ++asked;  // under the cluster's lock
    if (asked == 1) *script = FakeCluster::Script::kLoseAnswer;
    if (asked == 2) answer = Command::ResponseTo(request, 1, "the outcome is unknown");
    return answer;
  });
  const auto consumer = Start(Options(), Listener(&RefuseOnce));
  ASSERT_TRUE(cluster_.Wait([&] {
    return cluster_.Offset("g", "T", 0) == 1 && cluster_.Offset("g", "%RETRY%g", 0) == 1;
  }));
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(cluster_.Stored("%RETRY%g").size(), 1u);
}

TEST_F(ConsumerTest, ASendBackThatStaysUnknownIsNoFurtherDelivery) {
  cluster_.CreateTopic("T", 1);
  cluster_.Put("T", 0, "x");
  int asked = 0;
  const auto hook = cluster_.SetHook([&](int, const Command& request, FakeCluster::Script*) {
    std::optional<Command> answer;
    if (request.code != remoting::kConsumerSendMsgBack) return answer;
    // More often than it is asked in one go; under the cluster's lock.
    if (++asked <= 4) answer = Command::ResponseTo(request, 1, "the outcome is unknown");
    return answer;
  });
  const auto consumer = Start(Options(), Listener(&RefuseOnce));
  ASSERT_TRUE(cluster_.Wait([&] {
    return cluster_.Offset("g", "T", 0) == 1 && cluster_.Offset("g", "%RETRY%g", 0) == 1;
  }));
  EXPECT_EQ(asked, 5);
  EXPECT_EQ(bodies_.size(), 2u) << "one delivery and one retry";
}

TEST_F(ConsumerTest, ACopyOfUnknownOutcomeIsOfferedAgainAndNotConsumedInPlace) {
  cluster_.CreateTopic("T", 1);
  cluster_.Put("T", 0, "x");
  int asked = 0;
  int copies = 0;
  const auto hook = cluster_.SetHook([&](int, const Command& request, FakeCluster::Script*) {
    std::optional<Command> answer;  // under the cluster's lock
    if (request.code == remoting::kConsumerSendMsgBack && ++asked == 1) {
      answer = Command::ResponseTo(request, 1, "look message by offset failed");
    }
    if (request.code == remoting::kSendMessageV2) {  // perhaps stored; then certainly not
      answer = Command::ResponseTo(
          request, ++copies == 1 ? remoting::kSystemError : remoting::kMessageIllegal, "a copy");
    }
    return answer;
  });
  const auto consumer = Start(Options(), Listener(&RefuseOnce));
  ASSERT_TRUE(cluster_.Wait([&] { return cluster_.Offset("g", "%RETRY%g", 0) == 1; }));
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(copies, 2);
  EXPECT_EQ(bodies_.size(), 2u) << "one delivery and one retry";
}

TEST_F(ConsumerTest, AMessageThatItsListenerKeepsTooLongGoesBackAndItsQueueMovesOn) {
  cluster_.CreateTopic("T", 1);
  cluster_.Put("T", 0, "hangs");
  cluster_.Put("T", 0, "good");
  PushConsumerOptions options = Options();
  options.consume_timeout = std::chrono::milliseconds(50);
  bool released = false;
  bool again = false;
  const auto consumer =
      Start(options, [&](const std::vector<ReceivedMessage>& messages, ConcurrentContext*) {
        const ReceivedMessage& message = messages.front();
        if (message.body != "hangs") return ConcurrentResult::kSuccess;
        if (message.reconsume_times > 0) {
          cluster_.Note([&] { again = true; });
        } else {
          EXPECT_TRUE(cluster_.Wait([&] { return released; }));
        }
        return ConcurrentResult::kSuccess;
      });
  EXPECT_TRUE(cluster_.Wait([&] { return again; })) << "it comes again, elsewhere perhaps";
  EXPECT_TRUE(cluster_.Wait([&] { return cluster_.Offset("g", "T", 0) == 2; }));
  cluster_.Note([&] { released = true; });
  consumer->Shutdown();
  EXPECT_EQ(cluster_.Offset("g", "T", 0), 2) << "what the late listener says counts no more";
}

TEST_F(ConsumerTest, AListenerThatThrowsHasFailed) {
  cluster_.CreateTopic("T", 1);
  cluster_.Put("T", 0, "x");
  const auto consumer =
      Start(Options(), Listener([](const ReceivedMessage& message) -> ConcurrentResult {
              if (message.reconsume_times == 0) throw std::runtime_error("listener");
              return ConcurrentResult::kSuccess;
            }));
  ASSERT_TRUE(cluster_.Wait([&] { return bodies_.size() == 1; }));
  EXPECT_EQ(messages_[0].reconsume_times, 1);
}

TEST_F(ConsumerTest, WhyAListenerFailedGoesWithTheSendBack) {
  cluster_.CreateTopic("T", 1);
  cluster_.Put("T", 0, "throws");
  cluster_.Put("T", 0, "says");
  std::set<std::string> reasons;
  const auto hook = cluster_.SetHook([&](int, const Command& request, FakeCluster::Script*) {
    if (request.code == remoting::kConsumerSendMsgBack) {
      reasons.insert(request.ext.StringOr("failureReason", ""));  // under the cluster's lock
    }
    return std::optional<Command>();
  });
  const auto consumer = Start(
      Options(), [](const std::vector<ReceivedMessage>& messages, ConcurrentContext* context) {
        if (messages[0].reconsume_times > 0) return ConcurrentResult::kSuccess;
        if (messages[0].body == "throws") throw std::runtime_error("thrown");
        context->failure_reason = "said";
        return ConcurrentResult::kReconsumeLater;
      });
  EXPECT_TRUE(cluster_.Wait([&] { return reasons == std::set<std::string>{"said", "thrown"}; }));
}

}  // namespace
}  // namespace triad::client
