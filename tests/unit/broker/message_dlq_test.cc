// Dead letters: what they carry, and how an administrator settles them (cases.md DLQ-1 to DLQ-4).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broker/processor/failure_properties.h"
#include "broker/processor/system_state.h"
#include "remoting/codes.h"
#include "remoting/json.h"
#include "tests/unit/broker/message_harness.h"
#include "tests/unit/broker/stalling_file_system.h"

namespace triad::broker {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class DlqTest : public testing::Test {
 protected:
  DlqTest() { broker_.CreateTopic("T", 2); }

  // Stores a message in queue 1 of T; its physical offset.
  std::int64_t Store(const std::string& body, const std::string& properties = {}) {
    remoting::SendMessageRequest header = MessageHarness::SendHeader("T");
    header.queue_id = 1;
    if (!properties.empty()) header.properties = properties;
    CHECK(broker_.Send(header, body).code == remoting::kSuccess);
    return broker_.Messages("T", 1).back().physical_offset.value();
  }
  remoting::Command SendBack(std::int64_t offset, std::int32_t level,
                             const std::string& reason = {}) {
    remoting::SendBackRequest header;
    header.offset = offset;
    header.group = "g";
    header.delay_level = level;
    header.max_reconsume_times = 16;
    remoting::Command command = remoting::Command::Request(remoting::kConsumerSendMsgBack);
    header.Encode(&command.ext);
    if (!reason.empty()) command.ext.Set("failureReason", reason);
    return broker_.Call(command);
  }
  // Makes a dead letter of a new message; its offset in %DLQ%g.
  std::int64_t Die(const std::string& body) {
    CHECK(SendBack(Store(body), -1).code == remoting::kSuccess);
    return static_cast<std::int64_t>(Dead().size()) - 1;
  }
  std::vector<MessageView> Dead() { return broker_.Messages("%DLQ%g", 0); }
  static std::string Property(const MessageView& message, std::string_view name) {
    return std::string(FindProperty(message.properties, name));
  }

  static remoting::Command SettleCommand(std::int32_t code, std::int64_t offset,
                                         const std::string& to = {}) {
    remoting::Command command = remoting::Command::Request(code);
    command.ext.Set("group", std::string("g"));
    command.ext.Set("queueId", std::int64_t{0});
    command.ext.Set("queueOffset", offset);
    if (!to.empty()) command.ext.Set("to", to);
    return command;
  }
  remoting::Command Replay(std::int64_t offset, const std::string& to = {}) {
    return broker_.Call(SettleCommand(remoting::kDlqReplay, offset, to));
  }
  std::string Outcome(const remoting::Command& response) {
    EXPECT_EQ(response.code, remoting::kSuccess) << response.remark;
    return response.ext.StringOr("outcome", "");
  }
  std::int64_t Count(const std::string& topic, std::int32_t queue = 0) {
    return broker_.store().RangeOf({Topic(topic), QueueId(queue)}).max.value();
  }

  MessageHarness broker_;
};

TEST_F(DlqTest, DLQ_1_DeadLettersCanBeReadAndTheirTopicHasOneQueue) {
  Die("x");
  const auto topic = broker_.store().state().FindTopic(Topic("%DLQ%g"));
  ASSERT_TRUE(topic.has_value());
  EXPECT_EQ(topic->perm, 6);
  EXPECT_EQ(topic->read_queues, 1);
  const auto pulled =
      broker_.Call(MessageHarness::PullCommand(MessageHarness::PullHeader("%DLQ%g", 0, 0)));
  EXPECT_EQ(pulled.code, remoting::kSuccess);
  EXPECT_NE(pulled.body.find('x'), std::string::npos);
}

TEST_F(DlqTest, DLQ_1_AWriteOnlyTopicOfAnOldBrokerIsMadeReadable) {
  broker_.CreateTopic("%DLQ%old", 1, 2);
  broker_.CreateTopic("WriteOnly", 1, 2);
  const StateCommand command = UnreadableDeadLetters(broker_.store().state());
  ASSERT_EQ(command.put_topics.size(), 1u);
  EXPECT_EQ(command.put_topics[0].name, Topic("%DLQ%old"));
  broker_.Propose(command);
  EXPECT_EQ(broker_.store().state().FindTopic(Topic("%DLQ%old"))->perm, 6);
  EXPECT_TRUE(UnreadableDeadLetters(broker_.store().state()).empty());
}

TEST_F(DlqTest, DLQ_2_ADeadLetterSaysWhereItCameFromWhenItFailedAndWhy) {
  std::string properties;
  for (const char* name : {"UNIQ_KEY", "KEYS", "TAGS"}) SetProperty(&properties, name, name);
  Store("before");
  const std::int64_t origin = Store("the body", properties);
  const std::string id =
      OffsetMessageId(broker_.Messages("T", 1)[1].store_host, PhysicalOffset(origin));
  const std::int64_t begin = broker_.store().state().log_time_ms();
  ASSERT_EQ(SendBack(origin, 3, "no route to bank").code, remoting::kSuccess);
  const auto parked = broker_.Messages("SCHEDULE_TOPIC_XXXX", 2);
  ASSERT_EQ(parked.size(), 1u);
  const std::string first_failure = Property(parked[0], kFirstFailureProperty);
  // The log's clock is read once per tick: it may stand behind the last entry.
  EXPECT_GE(std::stoll(first_failure), begin - 1000);
  ASSERT_EQ(SendBack(parked[0].physical_offset.value(), -1, "bank is closed").code,
            remoting::kSuccess);

  const auto dead = Dead();
  ASSERT_EQ(dead.size(), 1u);
  EXPECT_EQ(dead[0].body, "the body");
  for (const char* name : {"UNIQ_KEY", "KEYS", "TAGS"}) EXPECT_EQ(Property(dead[0], name), name);
  EXPECT_EQ(Property(dead[0], "RETRY_TOPIC"), "T");
  EXPECT_EQ(Property(dead[0], "ORIGIN_MESSAGE_ID"), id);
  EXPECT_EQ(Property(dead[0], "DLQ_ORIGIN_TOPIC"), "T");
  EXPECT_EQ(Property(dead[0], "DLQ_ORIGIN_MESSAGE_ID"), id);
  EXPECT_EQ(Property(dead[0], "ORIGIN_QUEUE_ID"), "1");
  EXPECT_EQ(Property(dead[0], "ORIGIN_QUEUE_OFFSET"), "1");
  EXPECT_EQ(Property(dead[0], "FIRST_FAILURE_TIME"), first_failure);
  EXPECT_EQ(Property(dead[0], "FAILURE_REASON"), "bank is closed");
}

TEST_F(DlqTest, DLQ_3_BoundaryValuesOfSendBack) {
  struct Case {
    const char* name;
    std::int32_t level;
    std::int32_t reconsumed;
    std::int32_t parked_at;  // 0: in the dead letters
  } const kCases[] = {
      {"-1 is dead", -1, 0, 0}, {"0 at first", 0, 0, 3}, {"0 after one", 0, 1, 4},
      {"0 after two", 0, 2, 5}, {"5 is 5", 5, 1, 5},     {"the header's limit wins", 0, 3, 0},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    remoting::SendMessageRequest header = MessageHarness::SendHeader("T");
    header.reconsume_times = c.reconsumed;
    ASSERT_EQ(broker_.Send(header, "m").code, remoting::kSuccess);
    remoting::SendBackRequest back;
    const auto [topic, queue] = c.parked_at == 0 ? std::pair<std::string, std::int32_t>("%DLQ%g", 0)
                                                 : std::pair<std::string, std::int32_t>(
                                                       "SCHEDULE_TOPIC_XXXX", c.parked_at - 1);
    const std::int64_t before = Count(topic, queue);
    for (std::int32_t id = 0; id < 2; ++id) {
      for (const MessageView& message : broker_.Messages("T", id)) {
        back.offset = std::max(back.offset, message.physical_offset.value());
      }
    }
    back.group = "g";
    back.delay_level = c.level;
    back.max_reconsume_times = 3;
    remoting::Command command = remoting::Command::Request(remoting::kConsumerSendMsgBack);
    back.Encode(&command.ext);
    ASSERT_EQ(broker_.Call(command).code, remoting::kSuccess);
    EXPECT_EQ(Count(topic, queue), before + 1);
  }
  EXPECT_EQ(SendBack(7, 0).code, remoting::kSystemError);
  EXPECT_EQ(SendBack(7, 0).remark.rfind("look message by offset failed, 7", 0), 0u);
  GroupConfig silent;
  silent.name = GroupName("silent");
  silent.retry_queue_nums = 0;
  broker_.CreateGroup(silent);
  remoting::SendBackRequest dropped;
  dropped.group = "silent";
  remoting::Command command = remoting::Command::Request(remoting::kConsumerSendMsgBack);
  dropped.Encode(&command.ext);
  EXPECT_EQ(broker_.Call(command).code, remoting::kSuccess);
  EXPECT_EQ(Count("%DLQ%silent"), 0);
}

TEST_F(DlqTest, DLQ_4_AMessageOfMaximumSizeFailsLikeAnyOther) {
  const std::string body(static_cast<std::size_t>(broker_.context().config.max_message_bytes), 'x');
  std::string properties;
  SetProperty(&properties, "UNIQ_KEY", "u");
  SetProperty(&properties, "filler", std::string(32500, 'p'));  // and nearly no room for more
  std::int64_t offset = Store(body, properties);
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(SendBack(offset, 18, std::string(2000, 'r')).code, remoting::kSuccess);
    const auto parked = broker_.Messages("SCHEDULE_TOPIC_XXXX", 17);
    ASSERT_EQ(parked.size(), static_cast<std::size_t>(round + 1));
    offset = parked.back().physical_offset.value();
  }
  ASSERT_EQ(SendBack(offset, -1).code, remoting::kSuccess);
  const auto dead = Dead();
  ASSERT_EQ(dead.size(), 1u);
  EXPECT_TRUE(dead[0].body == body);
  EXPECT_EQ(Property(dead[0], "RETRY_TOPIC"), "T");
  EXPECT_LE(dead[0].properties.size(), 32767u);
}

TEST(FailureProperties, AReasonIsCutAtACharacter) {
  MessageView message;
  message.topic = "T";
  message.store_host = Host("1.2.3.4:5");
  std::string reason(1023, 'a');
  reason += "\xC3\xBC and more";  // its first character begins at byte 1023
  std::string properties;
  NoteFailure(message, 5, reason, &properties);
  EXPECT_EQ(FindProperty(properties, kReasonProperty), std::string(1023, 'a'));
}

TEST(FailureProperties, WhatCanBeMissedMakesRoom) {
  std::string properties;
  SetProperty(&properties, kRetryTopicProperty, "T");
  SetProperty(&properties, kReasonProperty, std::string(100, 'r'));
  SetProperty(&properties, kOriginIdProperty, "id");
  const std::size_t all = properties.size();
  MakeRoom(all, &properties);
  EXPECT_EQ(properties.size(), all);
  MakeRoom(all - 1, &properties);
  EXPECT_EQ(FindProperty(properties, kReasonProperty), "");
  EXPECT_EQ(FindProperty(properties, kOriginIdProperty), "id");
  MakeRoom(0, &properties);
  EXPECT_EQ(FindProperty(properties, kRetryTopicProperty), "T");
}

TEST_F(DlqTest, ADirectSendThatDiesCarriesItsOriginToo) {
  remoting::SendMessageRequest header = MessageHarness::SendHeader("%RETRY%g");
  header.reconsume_times = 17;
  header.max_reconsume_times = 16;
  SetProperty(&header.properties, "RETRY_TOPIC", "T");
  SetProperty(&header.properties, "ORIGIN_MESSAGE_ID", "0A");
  ASSERT_EQ(broker_.Send(header, "m").code, remoting::kSuccess);
  const auto dead = Dead();
  ASSERT_EQ(dead.size(), 1u);
  EXPECT_EQ(Property(dead[0], "DLQ_ORIGIN_TOPIC"), "T");
  EXPECT_EQ(Property(dead[0], "DLQ_ORIGIN_MESSAGE_ID"), "0A");
  EXPECT_NE(Property(dead[0], "FIRST_FAILURE_TIME"), "");
  EXPECT_EQ(broker_.context().counters.retry_copies, 0);
}

TEST_F(DlqTest, AClientsOwnSendToItsRetryTopicIsCountedAsACopy) {
  remoting::SendMessageRequest header = MessageHarness::SendHeader("%RETRY%g");
  header.reconsume_times = 1;
  header.max_reconsume_times = 16;
  SetProperty(&header.properties, "RETRY_TOPIC", "T");
  SetProperty(&header.properties, "DELAY", "3");
  ASSERT_EQ(broker_.Send(header, "m").code, remoting::kSuccess);
  EXPECT_EQ(broker_.context().counters.retry_copies, 1);
}

// ---- Settling -----------------------------------------------------------------------------------

TEST_F(DlqTest, AReplayGoesToTheGroupsOwnRetryTopicAndBeginsAnew) {
  const std::int64_t offset = Die("again");
  const remoting::Command response = Replay(offset);
  EXPECT_EQ(Outcome(response), "replayed");
  EXPECT_EQ(response.ext.StringOr("topic", ""), "%RETRY%g");
  const auto copies = broker_.Messages("%RETRY%g", 0);
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].body, "again");
  EXPECT_EQ(copies[0].reconsume_times, 0);
  EXPECT_EQ(Property(copies[0], "RETRY_TOPIC"), "T");  // its consumer sees the topic it knows
  EXPECT_EQ(Property(copies[0], "DELAY"), "");
  EXPECT_EQ(Property(copies[0], "FAILURE_REASON"), "");
  EXPECT_EQ(Property(copies[0], "UNIQ_KEY"), "key");
}

TEST_F(DlqTest, AReplayToATopicIsAnOrdinaryMessageThere) {
  broker_.CreateTopic("Other", 1);
  EXPECT_EQ(Outcome(Replay(Die("again"), "Other")), "replayed");
  const auto copies = broker_.Messages("Other", 0);
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(Property(copies[0], "RETRY_TOPIC"), "");
  EXPECT_EQ(Property(copies[0], "ORIGIN_MESSAGE_ID"), "");
  EXPECT_EQ(Property(copies[0], "UNIQ_KEY"), "key");
}

TEST_F(DlqTest, RunAgainNothingIsSentTwiceAlsoAfterARestart) {
  const std::int64_t offset = Die("once");
  EXPECT_EQ(Outcome(Replay(offset)), "replayed");
  EXPECT_EQ(Outcome(Replay(offset)), "settled-before");
  broker_.Restart();
  EXPECT_EQ(Outcome(Replay(offset)), "settled-before");
  EXPECT_EQ(Count("%RETRY%g"), 1);
}

TEST_F(DlqTest, ADroppedDeadLetterIsNotReplayed) {
  const std::int64_t offset = Die("gone");
  EXPECT_EQ(Outcome(broker_.Call(SettleCommand(remoting::kDlqDrop, offset))), "dropped");
  EXPECT_EQ(Outcome(Replay(offset)), "settled-before");
  EXPECT_EQ(Count("%RETRY%g"), 0);
  EXPECT_EQ(Dead().size(), 1u);  // the log keeps what it holds
}

TEST_F(DlqTest, ProgressTellsWhatIsOpen) {
  for (const char* body : {"a", "b", "c", "d"}) Die(body);
  Replay(0);
  Replay(2);
  remoting::Command command = remoting::Command::Request(remoting::kDlqProgress);
  command.ext.Set("group", std::string("g"));
  const auto response = broker_.Call(command);
  ASSERT_EQ(response.code, remoting::kSuccess);
  EXPECT_EQ(response.body, R"({"queues":[{"floor":1,"maxOffset":4,"queueId":0,"settled":[2]}]})");
  command.ext.Set("group", std::string("nobody"));
  EXPECT_EQ(broker_.Call(command).body, R"({"queues":[]})");
}

TEST_F(DlqTest, WhatCannotBeReplayedIsRefusedInWordsAndStaysOpen) {
  const std::int64_t offset = Die("stays");
  const struct {
    const char* name;
    std::int64_t offset;
    const char* to;
    std::int32_t code;
    const char* remark;
  } kCases[] = {
      {"no such dead letter", offset + 1, "", remoting::kSystemError, "no dead letter 1"},
      {"no such topic", offset, "Nowhere", remoting::kQueryNotFound, "Nowhere"},
      {"a system topic", offset, "SCHEDULE_TOPIC_XXXX", remoting::kNoPermission, "no messages"},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.name);
    const auto response = Replay(c.offset, c.to);
    EXPECT_EQ(response.code, c.code);
    EXPECT_NE(response.remark.find(c.remark), std::string::npos) << response.remark;
  }
  EXPECT_EQ(Outcome(Replay(offset)), "replayed");
}

// The answer is lost, or its asker was killed: the second one sends nothing, whatever came of it.
TEST(DlqOnASlowDisk, AReplayWhoseFateIsOpenIsNotBegunASecondTime) {
  StallingFileSystem disk;
  MessageHarness broker([](BrokerConfig* config) { config->flush = FlushDiskType::kSyncFlush; },
                        disk);
  broker.CreateTopic("T", 1);
  ASSERT_EQ(broker.Send(MessageHarness::SendHeader("T"), "m").code, remoting::kSuccess);
  remoting::SendBackRequest back;
  back.offset = broker.Messages("T", 0).at(0).physical_offset.value();
  back.group = "g";
  back.delay_level = -1;
  remoting::Command send_back = remoting::Command::Request(remoting::kConsumerSendMsgBack);
  back.Encode(&send_back.ext);
  ASSERT_EQ(broker.Call(send_back).code, remoting::kSuccess);
  remoting::Command replay = remoting::Command::Request(remoting::kDlqReplay);
  replay.ext.Set("group", std::string("g"));
  replay.ext.Set("queueId", std::int64_t{0});
  replay.ext.Set("queueOffset", std::int64_t{0});
  disk.Hold();
  auto open = broker.Ask(replay);
  ASSERT_TRUE(broker.Eventually([&] { return broker.store().appender().waiting() > 0; }));
  EXPECT_EQ(broker.Call(replay).code, remoting::kSystemBusy);
  disk.Release();
  ASSERT_EQ(open.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(open.get().ext.StringOr("outcome", ""), "replayed");
  EXPECT_EQ(broker.Call(replay).ext.StringOr("outcome", ""), "settled-before");
  EXPECT_EQ(broker.Messages("%RETRY%g", 0).size(), 1u);
}

}  // namespace
}  // namespace triad::broker
