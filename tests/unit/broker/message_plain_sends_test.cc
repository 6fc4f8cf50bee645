// PlainSends against the long way: what it takes, stores and answers.

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "broker/processor/plain_sends.h"
#include "remoting/codes.h"
#include "tests/unit/broker/message_harness.h"
#include "tests/unit/broker/one_peer.h"

namespace triad::broker {
namespace {

constexpr char kKey[] = "UNIQ_KEY\x01u1\x02";

std::string FrameOf(const remoting::Command& command) {
  auto frame = remoting::EncodeFrame(command);
  CHECK(frame.ok()) << frame.status();
  return *frame;
}

class PlainSendsTest : public testing::Test {
 protected:
  bool Takes(const remoting::SendMessageRequest& header, const std::string& body = "b") {
    return Takes(broker_.SendCommand(header, body));
  }
  bool Takes(const remoting::Command& command) {
    MessageHarness::Answer answer;
    if (!broker_.TakenAsPlain(command, &answer)) return false;
    EXPECT_EQ(answer.get().code, remoting::kSuccess);
    return true;
  }
  remoting::SendMessageRequest Header(std::int32_t queue = 0) {
    auto header = MessageHarness::SendHeader("T");
    header.queue_id = queue;
    return header;
  }
  void CreateTopic(const TopicConfig& topic) {
    StateCommand command;
    command.put_topics.push_back(topic);
    broker_.Propose(std::move(command));
  }

  MessageHarness broker_;
};

TEST_F(PlainSendsTest, BothWaysCountHowLongAMessageTook) {
  broker_.CreateTopic("T", 4);
  const auto counted = [this] {
    return broker_.context().counters.put_times.Read(SystemClock().MonoNow()).count;
  };
  ASSERT_TRUE(Takes(Header()));
  EXPECT_EQ(counted(), 1u);
  ASSERT_EQ(broker_.Send(Header(), "b").code, remoting::kSuccess);
  EXPECT_EQ(counted(), 2u);
}

TEST_F(PlainSendsTest, StoresAndAnswersAsTheLongWay) {
  broker_.CreateTopic("T", 4);
  TopicConfig tags;
  tags.name = Topic("Tags");
  tags.read_queues = tags.write_queues = 4;
  tags.multi_tag = true;
  CreateTopic(tags);
  std::vector<remoting::SendMessageRequest> headers(6, Header());
  headers[1].properties =
      "TAGS\x01"
      "a\x02UNIQ_KEY\x01u2\x02KEYS\x01k1 k2";  // no last separator
  headers[1].flag = 9;
  headers[1].sys_flag = 1;
  headers[1].reconsume_times = 3;
  headers[2].topic = "Tags";
  headers[3].properties = "UNIQ_KEY\x01\xC3\xBC\x02";
  headers[4].reconsume_times = -7;
  headers[5].reconsume_times = std::numeric_limits<std::int32_t>::max();
  for (auto& header : headers) {
    for (const auto type : {remoting::SerializeType::kJson, remoting::SerializeType::kRocketmq}) {
      std::vector<remoting::Command> answers;
      for (const bool plain : {true, false}) {
        broker_.plain_sends = plain;
        header.queue_id = plain ? 1 : 2;
        remoting::Command command = broker_.SendCommand(header, "some body");
        command.serialize_type = type;
        command.opaque = 77;
        answers.push_back(broker_.Call(std::move(command)));
      }
      EXPECT_EQ(answers[0].code, answers[1].code);
      EXPECT_EQ(answers[0].opaque, answers[1].opaque);
      EXPECT_EQ(answers[0].flag, answers[1].flag);
      EXPECT_EQ(answers[0].serialize_type, answers[1].serialize_type);
      for (const auto& [key, value] : answers[1].ext.items()) {
        if (key == "msgId" || key == "queueId") continue;
        EXPECT_EQ(answers[0].ext.Find(key), value) << key;
      }
      EXPECT_EQ(answers[0].ext.size(), answers[1].ext.size());
    }
  }
  for (const char* topic : {"T", "Tags"}) {
    const auto plain = broker_.Messages(topic, 1);
    const auto usual = broker_.Messages(topic, 2);
    ASSERT_EQ(plain.size(), usual.size());
    for (std::size_t i = 0; i < plain.size(); ++i) {
      EXPECT_EQ(plain[i].record.size(), usual[i].record.size());
      EXPECT_EQ(plain[i].flag, usual[i].flag);
      EXPECT_EQ(plain[i].sys_flag, usual[i].sys_flag);
      EXPECT_EQ(plain[i].born_time_ms, usual[i].born_time_ms);
      EXPECT_EQ(plain[i].born_host, usual[i].born_host);
      EXPECT_EQ(plain[i].store_host, usual[i].store_host);
      EXPECT_EQ(plain[i].reconsume_times, usual[i].reconsume_times);
      EXPECT_EQ(plain[i].queue_offset, usual[i].queue_offset);
      EXPECT_EQ(plain[i].body, usual[i].body);
      EXPECT_EQ(plain[i].properties, usual[i].properties);
      EXPECT_TRUE(ParseMessage(plain[i].record, true).ok());
    }
  }
}

TEST_F(PlainSendsTest, LeavesWhatNeedsADecisionToTheLongWay) {
  broker_.CreateTopic("T", 4);
  broker_.CreateTopic("ReadOnly", 4, 4);
  broker_.CreateTopic("%RETRY%g", 1);
  TopicConfig dedup;
  dedup.name = Topic("Once");
  dedup.read_queues = dedup.write_queues = 4;
  dedup.attributes["dedup"] = "keys";
  CreateTopic(dedup);
  ASSERT_TRUE(Takes(Header()));
  const auto with_topic = [&](const char* topic) {
    auto header = Header();
    header.topic = topic;
    return header;
  };
  EXPECT_FALSE(Takes(with_topic("Unknown")));
  EXPECT_FALSE(Takes(with_topic("ReadOnly")));
  EXPECT_FALSE(Takes(with_topic("%RETRY%g")));
  EXPECT_FALSE(Takes(with_topic("Once")));
  EXPECT_FALSE(Takes(with_topic("SCHEDULE_TOPIC_XXXX")));
  EXPECT_FALSE(Takes(Header(-1)));
  EXPECT_FALSE(Takes(Header(4)));
  EXPECT_TRUE(Takes(Header(3)));
  EXPECT_FALSE(Takes(Header(), ""));
  EXPECT_FALSE(Takes(Header(), std::string(4194305, 'x')));
  for (const std::string& properties :
       {std::string("TAGS\x01t\x02"),
        kKey + std::string("DELAY\x01"
                           "1\x02"),
        kKey + std::string("TRAN_MSG\x01true\x02"),
        kKey + std::string("TIMER_DELAY_MS\x01"
                           "9\x02"),
        kKey + std::string("INNER_NUM\x01"
                           "1\x02"),
        kKey + std::string("MSG_REGION\x01r\x02"),
        kKey + std::string("K\x01") + std::string(32760, 'v') + "\x02"}) {
    SCOPED_TRACE(properties.substr(0, 40));
    auto header = Header();
    header.properties = properties;
    EXPECT_FALSE(Takes(header));
  }
  auto prepared = Header();
  prepared.sys_flag = 4;
  EXPECT_FALSE(Takes(prepared));
}

TEST_F(PlainSendsTest, FollowsEveryChangeOfATopic) {
  EXPECT_FALSE(Takes(Header()));
  broker_.CreateTopic("T", 4);
  EXPECT_TRUE(Takes(Header()));
  broker_.CreateTopic("T", 4, 4);
  EXPECT_FALSE(Takes(Header()));
  broker_.CreateTopic("T", 8);
  EXPECT_TRUE(Takes(Header(7)));
  StateCommand command;
  command.delete_topics.push_back(Topic("T"));
  broker_.Propose(std::move(command));
  EXPECT_FALSE(Takes(Header()));
}

TEST(PlainSends, ABrokerThatMayNotBeWrittenToTakesNone) {
  MessageHarness broker([](BrokerConfig* config) { config->broker_permission = 4; });
  broker.CreateTopic("T", 4);
  MessageHarness::Answer answer;
  EXPECT_FALSE(
      broker.TakenAsPlain(broker.SendCommand(MessageHarness::SendHeader("T"), "b"), &answer));
}

TEST_F(PlainSendsTest, WhatOneReadBringsIsAnsweredTogetherAndInOrder) {
  broker_.CreateTopic("T", 1);
  const auto connection = std::make_shared<RecordingConnection>(7, "10.0.0.9:50000");
  constexpr int kCount = 150;  // more than one unit
  for (int i = 0; i < kCount; ++i) {
    remoting::Command command = broker_.SendCommand(Header(), "b" + std::to_string(i));
    command.opaque = i;
    ASSERT_TRUE(broker_.plain().Take(connection, FrameOf(command)));
  }
  broker_.plain().Flush();
  for (int i = 0; i < kCount; ++i) {
    const remoting::Command answer = connection->Next();
    EXPECT_EQ(answer.opaque, i);
    EXPECT_EQ(answer.ext.Find("queueOffset"), std::to_string(i));
  }
  const auto messages = broker_.Messages("T", 0);
  ASSERT_EQ(messages.size(), static_cast<std::size_t>(kCount));
  for (int i = 0; i < kCount; ++i) {
    EXPECT_EQ(messages[static_cast<std::size_t>(i)].body, "b" + std::to_string(i));
  }
}

TEST_F(PlainSendsTest, WhatIsLeftToTheLongWayDoesNotOvertake) {
  broker_.CreateTopic("T", 1);
  const auto connection = std::make_shared<RecordingConnection>(7, "10.0.0.9:50000");
  ASSERT_TRUE(broker_.plain().Take(connection, FrameOf(broker_.SendCommand(Header(), "first"))));
  auto unusual = Header();
  unusual.properties = "TAGS\x01t\x02";
  const remoting::Command second = broker_.SendCommand(unusual, "second");
  ASSERT_FALSE(broker_.plain().Take(connection, FrameOf(second)));
  const auto answer = broker_.Call(second);
  EXPECT_EQ(answer.ext.Find("queueOffset"), "1");
  EXPECT_EQ(connection->Next().ext.Find("queueOffset"), "0");
}

TEST_F(PlainSendsTest, WhatSurelyWasNotStoredGoesTheLongWay) {
  broker_.CreateTopic("T", 1);
  broker_.store().Stop();  // the gate does not know: it sees a leader that refuses
  const auto connection = std::make_shared<RecordingConnection>(7, "10.0.0.9:50000");
  for (int i = 0; i < 2; ++i) {
    remoting::Command command = broker_.SendCommand(Header(), "b");
    command.opaque = i;
    ASSERT_TRUE(broker_.plain().Take(connection, FrameOf(command)));
  }
  broker_.plain().Flush();
  // Held for its whole budget, then told that nothing was done.
  for (int i = 0; i < 2; ++i) {
    const remoting::Command answer = connection->Next();
    EXPECT_EQ(answer.code, remoting::kServiceNotAvailable);
    EXPECT_NE(answer.remark.find("nothing was done"), std::string::npos) << answer.remark;
  }
}

TEST(PlainSends, BehindItsTopicsDeletionEachOfAUnitIsJudgedAlone) {
  MessageHarness broker([](BrokerConfig* config) { config->auto_create_topic = false; });
  broker.CreateTopic("T", 1);
  broker.CreateTopic("Gone", 1);
  const auto connection = std::make_shared<RecordingConnection>(7, "10.0.0.9:50000");
  for (const char* topic : {"T", "Gone"}) {
    auto header = MessageHarness::SendHeader(topic);
    header.queue_id = 0;
    remoting::Command command = broker.SendCommand(header, "b");
    command.opaque = topic == std::string("T") ? 1 : 2;
    ASSERT_TRUE(broker.plain().Take(connection, FrameOf(command)));
  }
  StateCommand deletion;
  deletion.delete_topics.emplace_back("Gone");
  broker.Propose(std::move(deletion));
  broker.plain().Flush();
  std::map<std::int32_t, std::int32_t> codes;  // by opaque; a refusal may come first
  for (int i = 0; i < 2; ++i) {
    const remoting::Command answer = connection->Next();
    codes[answer.opaque] = answer.code;
  }
  EXPECT_EQ(codes[1], remoting::kSuccess);
  EXPECT_EQ(codes[2], remoting::kTopicNotExist);
  EXPECT_EQ(broker.Messages("T", 0).size(), 1u);
}

}  // namespace
}  // namespace triad::broker
