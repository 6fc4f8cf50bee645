#include <gtest/gtest.h>

#include <future>
#include <map>
#include <set>

#include "common/byte_order.h"
#include "remoting/codes.h"
#include "tests/unit/broker/message_harness.h"

namespace triad::broker {
namespace {

class SendTest : public testing::Test {
 protected:
  remoting::SendMessageResponse Sent(const remoting::SendMessageRequest& header,
                                     const std::string& body) {
    const remoting::Command response = broker_.Send(header, body);
    EXPECT_EQ(response.code, remoting::kSuccess) << response.remark;
    auto decoded = remoting::SendMessageResponse::Decode(response.ext);
    EXPECT_TRUE(decoded.ok()) << decoded.status();
    return decoded.ok() ? *decoded : remoting::SendMessageResponse();
  }
  void ExpectRefused(const remoting::SendMessageRequest& header, const std::string& body,
                     std::int32_t code, const std::string& remark) {
    const remoting::Command response = broker_.Send(header, body);
    EXPECT_EQ(response.code, code) << response.remark;
    EXPECT_NE(response.remark.find(remark), std::string::npos) << response.remark;
  }

  MessageHarness broker_;
};

std::string BatchItem(const std::string& body, const std::string& properties) {
  std::string item;
  AppendBe32(&item, static_cast<std::uint32_t>(22 + body.size() + properties.size()));
  item.append(12, '\0');  // magic, CRC, flag
  AppendBe32(&item, static_cast<std::uint32_t>(body.size()));
  item += body;
  AppendBe16(&item, static_cast<std::uint16_t>(properties.size()));
  return item + properties;
}

TEST_F(SendTest, AMessageIsStoredAsItWasSentWithTheBrokersProperties) {
  broker_.CreateTopic("T", 4);
  remoting::SendMessageRequest header = MessageHarness::SendHeader("T");
  header.queue_id = 3;
  header.flag = 7;
  header.sys_flag = 0x1;
  header.reconsume_times = 2;
  header.properties = "TAGS\x01TagA\x02UNIQ_KEY\x01u1\x02POP_CK\x01x";  // no last separator
  const auto response = Sent(header, "hello");
  EXPECT_EQ(response.queue_id, 3);
  EXPECT_EQ(response.queue_offset, 0);
  EXPECT_EQ(response.transaction_id, "u1");
  EXPECT_EQ(response.msg_region, "DefaultRegion");
  EXPECT_EQ(response.trace_on, true);

  const auto messages = broker_.Messages("T", 3);
  ASSERT_EQ(messages.size(), 1u);
  const MessageView& message = messages[0];
  EXPECT_EQ(message.body, "hello");
  EXPECT_EQ(message.flag, 7);
  EXPECT_EQ(message.sys_flag & 0x1, 0x1);
  EXPECT_EQ(message.reconsume_times, 2);
  EXPECT_EQ(message.born_time_ms, 1700000000000);
  EXPECT_EQ(FormatHostPort(message.born_host), "10.0.0.9:50000");
  EXPECT_EQ(FormatHostPort(message.store_host), "127.0.0.1:10911");
  EXPECT_EQ(response.msg_id, OffsetMessageId(message.store_host, message.physical_offset));
  const auto properties = ParseProperties(message.properties);
  const std::map<std::string, std::string> expected = {{"CLUSTER", "DefaultCluster"},
                                                       {"MSG_REGION", "DefaultRegion"},
                                                       {"TAGS", "TagA"},
                                                       {"TRACE_ON", "true"},
                                                       {"UNIQ_KEY", "u1"}};
  EXPECT_EQ(properties, expected);
}

TEST_F(SendTest, UPG_2_AMissingUniqueKeyIsMade) {
  broker_.CreateTopic("T", 1);
  remoting::SendMessageRequest header = MessageHarness::SendHeader("T");
  header.properties.clear();
  const auto first = Sent(header, "a");
  const auto second = Sent(header, "b");
  EXPECT_EQ(first.transaction_id.size(), 32u);
  EXPECT_NE(first.transaction_id, second.transaction_id);
  EXPECT_EQ(second.queue_offset, 1);
}

TEST_F(SendTest, WIRE_1_TheFirstMessageCreatesItsTopicFromTheTemplateOnce) {
  std::vector<MessageHarness::Answer> answers;
  for (int i = 0; i < 20; ++i) {
    remoting::SendMessageRequest header = MessageHarness::SendHeader("New");
    header.queue_id = i % 4;
    answers.push_back(broker_.Ask(broker_.SendCommand(header, "x")));
  }
  for (auto& answer : answers) {
    ASSERT_EQ(answer.wait_for(kPatience), std::future_status::ready);
    EXPECT_EQ(answer.get().code, remoting::kSuccess);
  }
  const auto topic = broker_.store().state().FindTopic(Topic("New"));
  ASSERT_TRUE(topic.has_value());
  EXPECT_EQ(topic->read_queues, 4);  // min(4 asked for, 8 of the template)
  EXPECT_EQ(topic->write_queues, 4);
  EXPECT_EQ(topic->perm, 6);
  for (int queue = 0; queue < 4; ++queue) EXPECT_EQ(broker_.Messages("New", queue).size(), 5u);
}

TEST_F(SendTest, AnUnknownTopicWithoutATemplateIsRefused) {
  remoting::SendMessageRequest header = MessageHarness::SendHeader("Nope");
  header.default_topic = "Nothing";
  ExpectRefused(header, "x", remoting::kTopicNotExist, "topic[Nope] not exist");
  header.default_topic = "SELF_TEST_TOPIC";  // exists, but nobody inherits from it
  ExpectRefused(header, "x", remoting::kTopicNotExist, "topic[Nope] not exist");
}

TEST(SendWithoutAutoCreate, RefusesAnUnknownTopic) {
  MessageHarness broker([](BrokerConfig* config) { config->auto_create_topic = false; });
  const auto response = broker.Send(MessageHarness::SendHeader("Nope"), "x");
  EXPECT_EQ(response.code, remoting::kTopicNotExist);
}

TEST(SendOnAFullDisk, OPS_4_IsRefusedWithAReasonWhilePullsGoOn) {
  MessageHarness broker([](BrokerConfig* config) {
    config->disk_warning_percent = 0;
    config->disk_free_floor_bytes = std::int64_t{1} << 62;
  });
  broker.CreateTopic("T", 1);
  const auto response = broker.Send(MessageHarness::SendHeader("T"), "x");
  EXPECT_EQ(response.code, remoting::kServiceNotAvailable);
  EXPECT_NE(response.remark.find("is full"), std::string::npos);
  const auto pull = MessageHarness::PullCommand(MessageHarness::PullHeader("T", 0, 0));
  EXPECT_EQ(broker.Call(pull).code, remoting::kPullNotFound);
}

TEST_F(SendTest, NamesAndSystemTopicsAreChecked) {
  ExpectRefused(MessageHarness::SendHeader(""), "x", remoting::kInvalidParameter, "blank");
  ExpectRefused(MessageHarness::SendHeader("a b"), "x", remoting::kInvalidParameter, "illegal");
  ExpectRefused(MessageHarness::SendHeader("a.b"), "x", remoting::kInvalidParameter, "illegal");
  ExpectRefused(MessageHarness::SendHeader(std::string(128, 'a')), "x", remoting::kInvalidParameter,
                "longer");
  Sent(MessageHarness::SendHeader(std::string(127, 'a')), "x");
  ExpectRefused(MessageHarness::SendHeader("SCHEDULE_TOPIC_XXXX"), "x", remoting::kNoPermission,
                "forbidden");
}

TEST_F(SendTest, QueuesAreCheckedAndPicked) {
  broker_.CreateTopic("T", 2);
  remoting::SendMessageRequest header = MessageHarness::SendHeader("T");
  header.queue_id = 2;
  ExpectRefused(header, "x", remoting::kInvalidParameter, "queueId[2]");
  header.queue_id = -1;
  std::set<std::int32_t> picked;
  for (int i = 0; i < 4; ++i) picked.insert(Sent(header, "x").queue_id);
  EXPECT_EQ(picked, (std::set<std::int32_t>{0, 1}));
  broker_.CreateTopic("R", 1, 4);
  ExpectRefused(MessageHarness::SendHeader("R"), "x", remoting::kNoPermission, "not writable");
}

TEST_F(SendTest, WIRE_4_SizesAreChecked) {
  broker_.CreateTopic("T", 1);
  remoting::SendMessageRequest header = MessageHarness::SendHeader("T");
  ExpectRefused(header, "", remoting::kMessageIllegal, "empty");
  // The remark says how large it is, and how large it may be.
  for (const char* says : {"maxMessageSize", "4194305", "4194304"}) {
    ExpectRefused(header, std::string(4194305, 'x'), remoting::kMessageIllegal, says);
  }
  Sent(header, std::string(4194304, 'x'));
  header.properties = "K\x01" + std::string(32000 - 3, 'v') + "\x02";
  Sent(header, "x");
  header.properties = "K\x01" + std::string(32768 - 3, 'v') + "\x02";
  for (const char* says : {"properties", "bytes, the limit is 32767"}) {
    ExpectRefused(header, "x", remoting::kMessageIllegal, says);
  }
}

TEST_F(SendTest, AMissingHeaderFieldIsNamed) {
  remoting::Command command = remoting::Command::Request(remoting::kSendMessage);
  command.ext.Add("producerGroup", "pg");
  const auto response = broker_.Call(command);
  EXPECT_EQ(response.code, remoting::kSystemError);
  EXPECT_EQ(response.remark, "missing required field topic");
}

TEST_F(SendTest, ForbiddenTypesAreNeverStored) {
  broker_.CreateTopic("T", 1);
  remoting::SendMessageRequest header = MessageHarness::SendHeader("T");
  header.sys_flag = 0x4;
  ExpectRefused(header, "x", remoting::kNoPermission, "transaction");
  header.sys_flag = 0;
  header.properties = "TRAN_MSG\x01true\x02";
  ExpectRefused(header, "x", remoting::kNoPermission, "transaction");
  header.properties = "TIMER_DELAY_SEC\x01\x35\x02";
  ExpectRefused(header, "x", remoting::kSystemError, "timer");
  header.properties.clear();
  header.batch = true;
  ExpectRefused(header, BatchItem("a", "TRAN_MSG\x01true\x02"), remoting::kNoPermission,
                "transaction");
  ExpectRefused(header, BatchItem("a", "TIMER_DELIVER_MS\x01\x35\x02"), remoting::kSystemError,
                "timer");
  EXPECT_TRUE(broker_.Messages("T", 0).empty());
}

TEST_F(SendTest, ABatchIsStoredAsConsecutiveMessagesWithTheirOwnProperties) {
  broker_.CreateTopic("T", 1);
  remoting::SendMessageRequest header = MessageHarness::SendHeader("T");
  header.batch = true;
  header.properties = "UNIQ_KEY\x01of-the-batch\x02";
  Sent(MessageHarness::SendHeader("T"), "before");
  std::string body;
  for (const char* item : {"a", "b", "c"}) {
    body += BatchItem(item, std::string("UNIQ_KEY\x01u-") + item + "\x02TAGS\x01" + item);
  }
  remoting::Command command = broker_.SendCommand(header, body);
  command.code = remoting::kSendMessageV2;  // the flag tells a batch, not the code
  const auto response = broker_.Call(command);
  ASSERT_EQ(response.code, remoting::kSuccess) << response.remark;
  const auto sent = remoting::SendMessageResponse::Decode(response.ext).value();
  EXPECT_EQ(sent.queue_offset, 1);

  const auto messages = broker_.Messages("T", 0);
  ASSERT_EQ(messages.size(), 4u);
  std::string ids;
  for (std::size_t i = 1; i < 4; ++i) {
    const std::string name(1, static_cast<char>('a' + i - 1));
    EXPECT_EQ(messages[i].body, name);
    EXPECT_EQ(FindProperty(messages[i].properties, "UNIQ_KEY"), "u-" + name);
    EXPECT_EQ(FindProperty(messages[i].properties, "TAGS"), name);
    EXPECT_EQ(FindProperty(messages[i].properties, "CLUSTER"), "DefaultCluster");
    if (i > 1) ids += ',';
    ids += OffsetMessageId(messages[i].store_host, messages[i].physical_offset);
  }
  EXPECT_EQ(sent.msg_id, ids);
}

TEST_F(SendTest, REP_4_BatchesAndSingleSendsAtTheSameTimeShareAQueueWithoutAGap) {
  broker_.CreateTopic("T", 1);
  remoting::SendMessageRequest header = MessageHarness::SendHeader("T");
  header.queue_id = 0;
  struct Sent {
    std::string name;
    int count;
    MessageHarness::Answer answer;
  };
  std::vector<Sent> sent;
  for (int i = 0; i < 300; ++i) {
    const std::string name = "m" + std::to_string(i);
    const int count = i % 2 == 0 ? 1 : 1 + i % 32;
    header.batch = i % 2 != 0;
    std::string body = name + "." + std::to_string(0);
    if (header.batch) body.clear();
    for (int n = 0; header.batch && n < count; ++n) {
      body += BatchItem(name + "." + std::to_string(n), "");
    }
    sent.push_back({name, count, broker_.Ask(broker_.SendCommand(header, body))});
  }
  std::map<std::int64_t, std::string> expected;
  for (Sent& one : sent) {
    ASSERT_EQ(one.answer.wait_for(kPatience), std::future_status::ready);
    const remoting::Command response = one.answer.get();
    ASSERT_EQ(response.code, remoting::kSuccess) << response.remark;
    const auto first = remoting::SendMessageResponse::Decode(response.ext)->queue_offset;
    for (int n = 0; n < one.count; ++n) {
      const std::string name = one.name + "." + std::to_string(n);
      EXPECT_TRUE(expected.emplace(first + n, name).second) << name << " shares its place";
    }
  }
  const auto messages = broker_.Messages("T", 0);
  ASSERT_EQ(messages.size(), expected.size());
  std::int64_t offset = 0;
  for (const MessageView& message : messages) {
    EXPECT_EQ(message.queue_offset.value(), offset);
    EXPECT_EQ(message.body, expected[offset]) << offset;
    ++offset;
  }
}

TEST_F(SendTest, ABadBatchIsRefusedWhole) {
  broker_.CreateTopic("T", 1);
  remoting::SendMessageRequest header = MessageHarness::SendHeader("T");
  header.batch = true;
  const std::string good = BatchItem("a", "");
  ExpectRefused(header, "", remoting::kMessageIllegal, "empty batch");
  ExpectRefused(header, good + good.substr(0, good.size() - 1), remoting::kMessageIllegal, "");
  ExpectRefused(header, good + BatchItem("", ""), remoting::kMessageIllegal, "empty");
  ExpectRefused(header, good + BatchItem("a", "DELAY\x01\x33\x02"), remoting::kMessageIllegal,
                "delayed");
  EXPECT_TRUE(broker_.Messages("T", 0).empty());
  header.topic = "%RETRY%g";
  ExpectRefused(header, good, remoting::kMessageIllegal, "retry");
}

TEST_F(SendTest, ADelayedMessageIsParkedAndAnsweredWithItsOwnQueue) {
  broker_.CreateTopic("T", 4);
  remoting::SendMessageRequest header = MessageHarness::SendHeader("T");
  header.queue_id = 2;
  header.properties =
      "UNIQ_KEY\x01u\x02"
      "DELAY\x01\x31\x38\x02";  // level 18: two hours
  const auto response = Sent(header, "later");
  EXPECT_EQ(response.queue_id, 2);
  EXPECT_TRUE(broker_.Messages("T", 2).empty());
  const auto parked = broker_.Messages("SCHEDULE_TOPIC_XXXX", 17);
  ASSERT_EQ(parked.size(), 1u);
  EXPECT_EQ(FindProperty(parked[0].properties, "REAL_TOPIC"), "T");
  EXPECT_EQ(FindProperty(parked[0].properties, "REAL_QID"), "2");
}

TEST_F(SendTest, ARetryCreatesGroupAndTopicAndStaysInItWithinTheLimit) {
  remoting::SendMessageRequest header = MessageHarness::SendHeader("%RETRY%g");
  header.reconsume_times = 3;
  header.max_reconsume_times = 3;
  Sent(header, "again");
  EXPECT_EQ(broker_.Messages("%RETRY%g", 0).size(), 1u);
  EXPECT_TRUE(broker_.store().state().FindGroup(GroupName("g")).has_value());
}

TEST_F(SendTest, ARetryBeyondTheLimitGoesToTheDeadLetters) {
  remoting::SendMessageRequest header = MessageHarness::SendHeader("%RETRY%g");
  header.properties =
      "UNIQ_KEY\x01u\x02"
      "DELAY\x01\x36\x02";
  header.reconsume_times = 4;
  header.max_reconsume_times = 3;
  Sent(header, "dead");
  const auto dead = broker_.Messages("%DLQ%g", 0);
  ASSERT_EQ(dead.size(), 1u);
  EXPECT_EQ(FindProperty(dead[0].properties, "DELAY"), "-1");
  EXPECT_EQ(dead[0].reconsume_times, 4);
  EXPECT_TRUE(broker_.Messages("%RETRY%g", 0).empty());
}

TEST_F(SendTest, WithoutALimitInTheRequestTheGroupsCounts) {
  GroupConfig group;
  group.name = GroupName("g");
  group.retry_max_times = 1;
  broker_.CreateGroup(group);
  remoting::SendMessageRequest header = MessageHarness::SendHeader("%RETRY%g");
  header.reconsume_times = 2;
  Sent(header, "dead");
  EXPECT_EQ(broker_.Messages("%DLQ%g", 0).size(), 1u);
}

TEST_F(SendTest, ORD_3_ARetryOfAnOrderlyGroupGoesToTheDeadLettersAtOnce) {
  broker_.CreateTopic("T", 1);
  auto locked = std::make_shared<std::promise<bool>>();
  broker_.context().locks.Lock(
      GroupName("g"), ClientId("c"), {Queue("T", 0)}, SystemClock().MonoNow() + kPatience,
      [locked](const auto& held) { locked->set_value(held.ok() && held->size() == 1); });
  ASSERT_TRUE(locked->get_future().get());
  auto header = MessageHarness::SendHeader("%RETRY%g");
  header.reconsume_times = 1;
  header.max_reconsume_times = 1;
  SetProperty(&header.properties, "RETRY_TOPIC", "T");
  SetProperty(&header.properties, "DELAY", "4");
  Sent(header, "dead");
  EXPECT_EQ(broker_.Messages("%DLQ%g", 0).size(), 1u);
  EXPECT_TRUE(broker_.Messages("SCHEDULE_TOPIC_XXXX", 3).empty());
}

TEST_F(SendTest, ORD_3_MoreRetriesThanAllowedAreDeadAlsoWithoutALock) {
  auto header = MessageHarness::SendHeader("%RETRY%g");
  header.reconsume_times = 2;
  header.max_reconsume_times = 1;
  SetProperty(&header.properties, "DELAY", "4");
  Sent(header, "dead");
  EXPECT_EQ(broker_.Messages("%DLQ%g", 0).size(), 1u);
  EXPECT_TRUE(broker_.Messages("SCHEDULE_TOPIC_XXXX", 3).empty());
}

}  // namespace
}  // namespace triad::broker
