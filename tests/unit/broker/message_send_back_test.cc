#include <gtest/gtest.h>

#include <future>
#include <limits>

#include "remoting/codes.h"
#include "tests/unit/broker/message_harness.h"
#include "tests/unit/broker/stalling_file_system.h"

namespace triad::broker {
namespace {

class SendBackTest : public testing::Test {
 protected:
  SendBackTest() {
    broker_.CreateTopic("T", 1);
    remoting::SendMessageRequest header = MessageHarness::SendHeader("T");
    SetProperty(&header.properties, "TAGS", "A");
    CHECK(broker_.Send(header, "failed").code == remoting::kSuccess);
    const auto messages = broker_.Messages("T", 0);
    header_.offset = messages.at(0).physical_offset.value();
    header_.group = "g";
    header_.max_reconsume_times = 16;
    message_id_ = OffsetMessageId(messages.at(0).store_host, messages.at(0).physical_offset);
  }
  static remoting::Command CommandOf(const remoting::SendBackRequest& header) {
    remoting::Command command = remoting::Command::Request(remoting::kConsumerSendMsgBack);
    header.Encode(&command.ext);
    return command;
  }
  remoting::Command SendBack() { return broker_.Call(CommandOf(header_)); }
  // What is parked in a delay level.
  std::vector<MessageView> Parked(std::int32_t level) {
    return broker_.Messages("SCHEDULE_TOPIC_XXXX", level - 1);
  }

  MessageHarness broker_;
  remoting::SendBackRequest header_;
  std::string message_id_;
};

TEST_F(SendBackTest, WhatAClientSaysOfItsAttemptsIsCountedOnFromWithinBounds) {
  for (const std::int32_t said :
       {std::numeric_limits<std::int32_t>::max(), std::numeric_limits<std::int32_t>::min()}) {
    remoting::SendMessageRequest header = MessageHarness::SendHeader("T");
    header.reconsume_times = said;
    ASSERT_EQ(broker_.Send(header, "bold").code, remoting::kSuccess);
    header_.offset = broker_.Messages("T", 0).back().physical_offset.value();
    ASSERT_EQ(SendBack().code, remoting::kSuccess);
  }
  ASSERT_TRUE(broker_.WaitForMessages("%DLQ%g", 0, 1));
  EXPECT_EQ(broker_.Messages("%DLQ%g", 0).at(0).reconsume_times, kReconsumeTimesMax + 1);
  EXPECT_EQ(Parked(3).at(0).reconsume_times, 1);
}

TEST_F(SendBackTest, AFailedMessageWaitsForItsNextAttempt) {
  ASSERT_EQ(SendBack().code, remoting::kSuccess);
  const auto parked = Parked(3);  // the first retry comes after level 3
  ASSERT_EQ(parked.size(), 1u);
  EXPECT_EQ(parked[0].body, "failed");
  EXPECT_EQ(parked[0].reconsume_times, 1);
  EXPECT_EQ(parked[0].born_time_ms, 1700000000000);
  EXPECT_EQ(FormatHostPort(parked[0].born_host), "10.0.0.9:50000");
  const auto property = [&](const char* name) {
    return std::string(FindProperty(parked[0].properties, name));
  };
  EXPECT_EQ(property("RETRY_TOPIC"), "T");
  EXPECT_EQ(property("ORIGIN_MESSAGE_ID"), message_id_);
  EXPECT_EQ(property("REAL_TOPIC"), "%RETRY%g");
  EXPECT_EQ(property("REAL_QID"), "0");
  EXPECT_EQ(property("DELAY"), "3");
  EXPECT_EQ(property("WAIT"), "false");
  EXPECT_EQ(property("TAGS"), "A");
  EXPECT_TRUE(broker_.store().state().FindTopic(Topic("%RETRY%g")).has_value());
}

TEST_F(SendBackTest, AnExplicitLevelIsTaken) {
  header_.delay_level = 5;
  ASSERT_EQ(SendBack().code, remoting::kSuccess);
  EXPECT_EQ(Parked(5).size(), 1u);
}

TEST_F(SendBackTest, ANegativeLevelMeansDeadLetters) {
  header_.delay_level = -1;
  ASSERT_EQ(SendBack().code, remoting::kSuccess);
  const auto dead = broker_.Messages("%DLQ%g", 0);
  ASSERT_EQ(dead.size(), 1u);
  EXPECT_EQ(FindProperty(dead[0].properties, "DELAY"), "0");
  EXPECT_EQ(FindProperty(dead[0].properties, "RETRY_TOPIC"), "T");
}

TEST_F(SendBackTest, AfterTheLastAttemptItIsDead) {
  header_.max_reconsume_times = 0;
  ASSERT_EQ(SendBack().code, remoting::kSuccess);
  EXPECT_EQ(broker_.Messages("%DLQ%g", 0).size(), 1u);
}

TEST_F(SendBackTest, WithoutALimitInTheRequestTheGroupsCounts) {
  GroupConfig group;
  group.name = GroupName("g");
  group.retry_max_times = 0;
  broker_.CreateGroup(group);
  header_.max_reconsume_times.reset();
  ASSERT_EQ(SendBack().code, remoting::kSuccess);
  EXPECT_EQ(broker_.Messages("%DLQ%g", 0).size(), 1u);
}

TEST_F(SendBackTest, TheFirstTopicAndIdStayOverSeveralRounds) {
  header_.delay_level = -1;
  ASSERT_EQ(SendBack().code, remoting::kSuccess);
  const auto dead = broker_.Messages("%DLQ%g", 0);
  header_.offset = dead.at(0).physical_offset.value();
  header_.group = "g2";
  header_.delay_level = 0;
  ASSERT_EQ(SendBack().code, remoting::kSuccess);
  const auto parked = Parked(4);  // 3 + one reconsumption
  ASSERT_EQ(parked.size(), 1u);
  EXPECT_EQ(parked[0].reconsume_times, 2);
  EXPECT_EQ(FindProperty(parked[0].properties, "RETRY_TOPIC"), "T");
  EXPECT_EQ(FindProperty(parked[0].properties, "ORIGIN_MESSAGE_ID"), message_id_);
}

TEST_F(SendBackTest, SentBackTwiceItComesOnce) {
  std::vector<MessageHarness::Answer> answers;
  for (int i = 0; i < 5; ++i) answers.push_back(broker_.Ask(CommandOf(header_)));
  for (auto& answer : answers) {
    ASSERT_EQ(answer.wait_for(kPatience), std::future_status::ready);
    EXPECT_EQ(answer.get().code, remoting::kSuccess);
  }
  EXPECT_EQ(SendBack().code, remoting::kSuccess);
  EXPECT_EQ(Parked(3).size(), 1u);
  header_.group = "other";  // but once for each group
  EXPECT_EQ(SendBack().code, remoting::kSuccess);
  EXPECT_EQ(Parked(3).size(), 2u);
}

// Its consumer has it from a peer that is ahead, or while its entry is being applied here.
TEST_F(SendBackTest, WhatIsCommittedAndNotAppliedYetIsWaitedForAndSentBack) {
  GroupConfig group;
  group.name = GroupName("g");
  broker_.CreateGroup(group);
  broker_.CreateTopic("%RETRY%g", 1);
  const dledger::Node& node = broker_.store().node();
  const auto send = [] { return MessageHarness::SendHeader("T"); };
  // How far behind the end of the log a message of this size will stand.
  const std::int64_t end = node.end_position().value();
  ASSERT_EQ(broker_.Send(send(), "body").code, remoting::kSuccess);
  const std::int64_t first = broker_.Messages("T", 0).back().physical_offset.value();

  std::promise<void> applying;
  std::promise<void> release;
  broker_.Dispatch(broker_.SendCommand(send(), "body"), [&](const remoting::Command&) {
    applying.set_value();
    release.get_future().wait();  // and with it the apply thread
  });
  ASSERT_EQ(applying.get_future().wait_for(kPatience), std::future_status::ready);
  const LogIndex applied = broker_.store().state().applied_index();
  header_.offset = node.end_position().value() + (first - end);
  broker_.Dispatch(broker_.SendCommand(send(), "body"), [](const remoting::Command&) {});
  EXPECT_TRUE(broker_.Eventually([&] { return node.status().commit_index > applied; }));
  auto sent_back = broker_.Ask(CommandOf(header_));
  // Whoever looked at once has been refused when these have, on the same two threads.
  for (int i = 1; i <= 10; ++i) {
    remoting::SendBackRequest nothing = header_;
    nothing.offset = first + i;
    EXPECT_EQ(broker_.Call(CommandOf(nothing)).code, remoting::kSystemError);
  }
  release.set_value();
  ASSERT_EQ(sent_back.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(sent_back.get().code, remoting::kSuccess);
  ASSERT_EQ(broker_.Messages("T", 0).back().physical_offset.value(), header_.offset);
  EXPECT_EQ(Parked(3).size(), 1u);
}

TEST_F(SendBackTest, AnUnknownOffsetIsAnErrorThatTheClientWorksAround) {
  header_.offset += 1;
  const auto response = SendBack();
  EXPECT_EQ(response.code, remoting::kSystemError);
  EXPECT_NE(response.remark.find("look message by offset failed"), std::string::npos);
  header_.offset -= 1;  // nothing is left in flight
  EXPECT_EQ(SendBack().code, remoting::kSuccess);
}

TEST_F(SendBackTest, AGroupWithoutRetriesDropsIt) {
  GroupConfig group;
  group.name = GroupName("g");
  group.retry_queue_nums = 0;
  broker_.CreateGroup(group);
  EXPECT_EQ(SendBack().code, remoting::kSuccess);
  EXPECT_TRUE(Parked(3).empty());
}

TEST(SendBackWithoutAutoCreate, DLQ_3_AnUnknownGroupIsRefused) {
  MessageHarness broker([](BrokerConfig* config) { config->auto_create_group = false; });
  remoting::Command command = remoting::Command::Request(remoting::kConsumerSendMsgBack);
  remoting::SendBackRequest header;
  header.group = "g";
  header.Encode(&command.ext);
  EXPECT_EQ(broker.Call(command).code, remoting::kSubscriptionGroupNotExist);
}

remoting::Command SendBackBy(const std::string& language, PhysicalOffset message) {
  remoting::SendBackRequest header;
  header.offset = message.value();
  header.group = "g";
  header.max_reconsume_times = 16;
  remoting::Command command = remoting::Command::Request(remoting::kConsumerSendMsgBack);
  header.Encode(&command.ext);
  command.language = language;
  return command;
}

// The disk hangs past the answer's deadline; the client asks again; then the disk goes on.
TEST(SendBackOnASlowDisk, AnUnknownOutcomeIsNotStoredASecondTime) {
  StallingFileSystem disk;
  MessageHarness broker([](BrokerConfig* config) { config->flush = FlushDiskType::kSyncFlush; },
                        disk);
  broker.CreateTopic("T", 1);
  for (const char* body : {"first", "second"}) {
    ASSERT_EQ(broker.Send(MessageHarness::SendHeader("T"), body).code, remoting::kSuccess);
  }
  const auto messages = broker.Messages("T", 0);
  const auto send_back = [&](std::size_t which, const std::string& language = "JAVA") {
    return broker.Ask(SendBackBy(language, messages.at(which).physical_offset));
  };
  ASSERT_EQ(send_back(0).get().code, remoting::kSuccess);  // the group and its retry topic exist

  disk.Hold();
  auto silent = send_back(1, "GO");  // takes every answer for a success
  auto unknown = send_back(1);
  ASSERT_EQ(unknown.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(unknown.get().code, remoting::kSystemError);
  auto again = send_back(1);
  disk.Release();
  ASSERT_EQ(again.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(again.get().code, remoting::kSuccess);
  EXPECT_EQ(broker.Messages("SCHEDULE_TOPIC_XXXX", 2).size(), 2u) << "one copy of each message";
  EXPECT_THROW(silent.get(), std::future_error) << "it was answered";
  EXPECT_EQ(send_back(1, "GO").get().code, remoting::kSuccess);  // what may not pass is answered
}

TEST(SendBackOnASlowDisk, ARetryTopicThatIsNotMadeInTimeIsNoSuccessForAGoClient) {
  StallingFileSystem disk;
  MessageHarness broker([](BrokerConfig* config) { config->flush = FlushDiskType::kSyncFlush; },
                        disk);
  broker.CreateTopic("T", 1);
  ASSERT_EQ(broker.Send(MessageHarness::SendHeader("T"), "m").code, remoting::kSuccess);
  const PhysicalOffset message = broker.Messages("T", 0).at(0).physical_offset;
  disk.Hold();
  auto silent = broker.Ask(SendBackBy("GO", message));
  auto told = broker.Ask(SendBackBy("JAVA", message));
  ASSERT_EQ(told.wait_for(kPatience), std::future_status::ready);
  EXPECT_NE(told.get().code, remoting::kSuccess);
  EXPECT_THROW(silent.get(), std::future_error) << "it was answered";
  disk.Release();
  EXPECT_EQ(broker.Ask(SendBackBy("GO", message)).get().code, remoting::kSuccess);
}

}  // namespace
}  // namespace triad::broker
