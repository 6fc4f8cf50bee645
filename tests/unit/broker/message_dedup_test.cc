// Topics with the attribute dedup: a retried send is answered with the first one's result.

#include <gtest/gtest.h>

#include "common/byte_order.h"
#include "remoting/codes.h"
#include "tests/unit/broker/message_harness.h"
#include "tests/unit/broker/stalling_file_system.h"

namespace triad::broker {
namespace {

void MakeTopic(MessageHarness* broker, const std::map<std::string, std::string>& attributes) {
  StateCommand command;
  TopicConfig& topic = command.put_topics.emplace_back();
  topic.name = Topic("T");
  topic.read_queues = topic.write_queues = 4;
  topic.attributes = attributes;
  broker->Propose(std::move(command));
}

remoting::SendMessageRequest HeaderOf(const std::string& uniq_key, std::int32_t queue) {
  remoting::SendMessageRequest header = MessageHarness::SendHeader("T");
  header.queue_id = queue;
  header.properties.clear();
  SetProperty(&header.properties, "UNIQ_KEY", uniq_key);
  return header;
}

remoting::SendMessageResponse ResultOf(const remoting::Command& response) {
  EXPECT_EQ(response.code, remoting::kSuccess) << response.remark;
  auto decoded = remoting::SendMessageResponse::Decode(response.ext);
  EXPECT_TRUE(decoded.ok());
  return decoded.ok() ? *decoded : remoting::SendMessageResponse();
}

void ExpectSame(const remoting::SendMessageResponse& a, const remoting::SendMessageResponse& b) {
  EXPECT_EQ(a.msg_id, b.msg_id);
  EXPECT_EQ(a.queue_id, b.queue_id);
  EXPECT_EQ(a.queue_offset, b.queue_offset);
}

class DedupTest : public testing::Test {
 protected:
  remoting::SendMessageResponse Send(const remoting::SendMessageRequest& header,
                                     const std::string& body = "b") {
    return ResultOf(broker_.Send(header, body));
  }
  std::int64_t Stored(std::int32_t queue) {
    return broker_.store().RangeOf({Topic("T"), QueueId(queue)}).max.value();
  }

  MessageHarness broker_;
};

TEST_F(DedupTest, AClientCannotPassItsMessageOffAsOneThatWasParked) {
  MakeTopic(&broker_, {{"dedup", "uniqKey"}});
  remoting::SendMessageRequest header = HeaderOf("k", 0);
  SetProperty(&header.properties, "REAL_TOPIC", "T");
  SetProperty(&header.properties, "REAL_QID", "3");
  const auto first = Send(header);
  ExpectSame(Send(header), first);
  EXPECT_EQ(Stored(0), 1);
  const auto stored = broker_.Messages("T", 0);
  EXPECT_TRUE(FindProperty(stored.at(0).properties, "REAL_TOPIC").empty());
  EXPECT_TRUE(FindProperty(stored.at(0).properties, "REAL_QID").empty());
}

TEST_F(DedupTest, WithoutTheAttributeEverySendIsStored) {
  MakeTopic(&broker_, {});
  Send(HeaderOf("k", 0));
  Send(HeaderOf("k", 0));
  EXPECT_EQ(Stored(0), 2);
}

TEST_F(DedupTest, ARetryToAnotherQueueGetsTheFirstResult) {
  MakeTopic(&broker_, {{"dedup", "uniqKey"}});
  const auto first = Send(HeaderOf("k", 2));
  Send(HeaderOf("other", 2));
  const auto again = Send(HeaderOf("k", 3));
  ExpectSame(again, first);
  EXPECT_EQ(again.queue_id, 2);
  EXPECT_EQ(Stored(2), 2);
  EXPECT_EQ(Stored(3), 0);
  EXPECT_EQ(broker_.context().counters.put_duplicates, 1);
  EXPECT_EQ(broker_.context().counters.put_messages, 2);
}

TEST_F(DedupTest, KeysAreWhatTheApplicationCalledTheMessage) {
  MakeTopic(&broker_, {{"dedup", "keys"}});
  auto header = HeaderOf("u1", 0);
  SetProperty(&header.properties, "KEYS", "order 17");
  const auto first = Send(header);
  SetProperty(&header.properties, "UNIQ_KEY", "u2");
  ExpectSame(Send(header), first);
  SetProperty(&header.properties, "KEYS", "order 18");
  Send(header);
  Send(HeaderOf("u1", 0));  // no key at all
  EXPECT_EQ(Stored(0), 3);
}

TEST_F(DedupTest, AKeyThatIsTooLongIsRefusedInWords) {
  MakeTopic(&broker_, {{"dedup", "keys"}});
  auto header = HeaderOf("u1", 0);
  SetProperty(&header.properties, "KEYS", std::string(129, 'x'));
  const auto response = broker_.Send(header, "b");
  EXPECT_EQ(response.code, remoting::kMessageIllegal);
  EXPECT_NE(response.remark.find("129"), std::string::npos) << response.remark;
  EXPECT_NE(response.remark.find("128"), std::string::npos) << response.remark;
}

TEST_F(DedupTest, ARetriedBatchGetsTheFirstResultWhole) {
  MakeTopic(&broker_, {{"dedup", "uniqKey"}});
  remoting::SendMessageRequest header = HeaderOf("of-the-batch", 1);
  header.batch = true;
  std::string body;
  for (const char* item : {"a", "b", "c"}) {
    const std::string properties = std::string("UNIQ_KEY\x01u-") + item;
    AppendBe32(&body, static_cast<std::uint32_t>(22 + 1 + properties.size()));
    body.append(12, '\0');
    AppendBe32(&body, 1);
    body += item;
    AppendBe16(&body, static_cast<std::uint16_t>(properties.size()));
    body += properties;
  }
  const auto first = Send(header, body);
  ExpectSame(Send(header, body), first);
  EXPECT_EQ(Stored(1), 3);
}

TEST_F(DedupTest, ADelayedMessageIsParkedOnceAndDeliveredOnce) {
  MakeTopic(&broker_, {{"dedup", "uniqKey"}});
  auto header = HeaderOf("k", 1);
  SetProperty(&header.properties, "DELAY", "1");
  const auto first = Send(header);
  EXPECT_EQ(first.queue_id, 1);
  ExpectSame(Send(header), first);  // while it waits
  ASSERT_TRUE(broker_.WaitForMessages("T", 1, 1));
  ExpectSame(Send(header), first);  // and after it came
  EXPECT_EQ(Stored(1), 1);
  EXPECT_EQ(broker_.store().RangeOf({Topic("SCHEDULE_TOPIC_XXXX"), QueueId(0)}).max.value(), 1);
}

TEST_F(DedupTest, KeysAreKnownAfterARestart) {
  MakeTopic(&broker_, {{"dedup", "uniqKey"}});
  const auto first = Send(HeaderOf("k", 0));
  broker_.Restart();
  ExpectSame(Send(HeaderOf("k", 0)), first);
  EXPECT_EQ(Stored(0), 1);
}

// The first send's outcome is unknown at its deadline; its retry gets the result when there is one.
TEST(DedupOnASlowDisk, ARetryOfAnUnknownOutcomeIsNotStoredASecondTime) {
  StallingFileSystem disk;
  MessageHarness broker([](BrokerConfig* config) { config->flush = FlushDiskType::kSyncFlush; },
                        disk);
  MakeTopic(&broker, {{"dedup", "uniqKey"}});
  disk.Hold();
  auto unknown = broker.Ask(broker.SendCommand(HeaderOf("k", 0), "b"));
  ASSERT_EQ(unknown.wait_for(kPatience), std::future_status::ready);
  EXPECT_NE(unknown.get().code, remoting::kSuccess);
  auto again = broker.Ask(broker.SendCommand(HeaderOf("k", 1), "b"));
  disk.Release();
  ASSERT_EQ(again.wait_for(kPatience), std::future_status::ready);
  const auto result = ResultOf(again.get());
  EXPECT_EQ(result.queue_id, 0);
  EXPECT_EQ(result.queue_offset, 0);
  EXPECT_EQ(broker.store().RangeOf({Topic("T"), QueueId(0)}).max.value(), 1);
  EXPECT_EQ(broker.store().RangeOf({Topic("T"), QueueId(1)}).max.value(), 0);
}

}  // namespace
}  // namespace triad::broker
