#include <gtest/gtest.h>

#include "remoting/codes.h"
#include "tests/unit/broker/message_harness.h"

namespace triad::broker {
namespace {

class DelayTest : public testing::Test {
 protected:
  DelayTest() : broker_([](BrokerConfig* config) { config->delay_levels = "1s 0s 1h"; }) {
    broker_.CreateTopic("T", 2);
  }
  void Send(const std::string& body, const char* level, std::int32_t queue = 1) {
    remoting::SendMessageRequest header = MessageHarness::SendHeader("T");
    header.queue_id = queue;
    SetProperty(&header.properties, "DELAY", level);
    SetProperty(&header.properties, "TAGS", "A");
    ASSERT_EQ(broker_.Send(header, body).code, remoting::kSuccess);
  }
  std::int64_t Progress(std::int32_t level) {
    return broker_.store().state().DelayProgress(level).value();
  }

  MessageHarness broker_;
};

TEST_F(DelayTest, AMessageComesToItsQueueWhenItsTimeHasComeAndNotBefore) {
  const auto begin = std::chrono::steady_clock::now();
  Send("later", "1");
  ASSERT_TRUE(broker_.WaitForMessages("T", 1, 1));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(900));
  const auto messages = broker_.Messages("T", 1);
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0].body, "later");
  EXPECT_EQ(messages[0].queue_id, 1);
  EXPECT_EQ(FindProperty(messages[0].properties, "DELAY"), "1");  // stays visible
  EXPECT_TRUE(broker_.Eventually([&] { return Progress(1) == 1; }));
  // Its tag selects it again, though the index held its delivery time while it was parked.
  auto pull = MessageHarness::PullHeader("T", 1, 0);
  pull.subscription = "A";
  EXPECT_EQ(broker_.Call(MessageHarness::PullCommand(pull)).code, remoting::kSuccess);
}

TEST_F(DelayTest, MessagesOfALevelComeInOrderEachOnce) {
  constexpr int kCount = 600;  // several steps
  std::vector<MessageHarness::Answer> answers;
  for (int i = 0; i < kCount; ++i) {
    remoting::SendMessageRequest header = MessageHarness::SendHeader("T");
    SetProperty(&header.properties, "DELAY", "2");
    answers.push_back(broker_.Ask(broker_.SendCommand(header, std::to_string(i))));
  }
  for (auto& answer : answers) {
    ASSERT_EQ(answer.wait_for(kPatience), std::future_status::ready);
    ASSERT_EQ(answer.get().code, remoting::kSuccess);
  }
  ASSERT_TRUE(broker_.Eventually([&] { return Progress(2) == kCount; }));
  const auto messages = broker_.Messages("T", 0);
  ASSERT_EQ(messages.size(), static_cast<std::size_t>(kCount));
  for (int i = 0; i < kCount; ++i) {
    EXPECT_EQ(messages[static_cast<std::size_t>(i)].body, std::to_string(i));
  }
}

TEST_F(DelayTest, AfterARestartItGoesOnWhereItWas) {
  Send("first", "2");
  ASSERT_TRUE(broker_.WaitForMessages("T", 1, 1));
  Send("second", "1");
  Send("much later", "3");
  broker_.Restart();
  ASSERT_TRUE(broker_.WaitForMessages("T", 1, 2));
  ASSERT_TRUE(broker_.Eventually([&] { return Progress(1) == 1; }));
  const auto messages = broker_.Messages("T", 1);
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0].body, "first");
  EXPECT_EQ(messages[1].body, "second");
  EXPECT_EQ(Progress(3), 0);
}

TEST_F(DelayTest, AMessageForADeletedTopicIsPassedOver) {
  Send("lost", "1");
  StateCommand command;
  command.delete_topics.emplace_back("T");
  broker_.Propose(std::move(command));
  EXPECT_TRUE(broker_.Eventually([&] { return Progress(1) == 1; }));
  EXPECT_EQ(broker_.store().RangeOf(Queue("T", 1)).max, QueueOffset(0));
}

}  // namespace
}  // namespace triad::broker
