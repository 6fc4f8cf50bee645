#include <gtest/gtest.h>

#include <future>

#include "remoting/codes.h"
#include "tests/unit/broker/message_harness.h"
#include "tests/unit/broker/stalling_file_system.h"

namespace triad::broker {
namespace {

using std::chrono::milliseconds;

constexpr std::int32_t kCommit = 0x1;
constexpr std::int32_t kSuspend = 0x2;
constexpr std::int32_t kSubscription = 0x4;

class PullTest : public testing::Test {
 protected:
  PullTest() { broker_.CreateTopic("T", 2); }

  void Send(const std::string& body, const std::string& tag = {}) {
    remoting::SendMessageRequest header = MessageHarness::SendHeader("T");
    if (!tag.empty()) SetProperty(&header.properties, "TAGS", tag);
    ASSERT_EQ(broker_.Send(header, body).code, remoting::kSuccess);
  }
  remoting::Command Pull(const remoting::PullMessageRequest& header) {
    return broker_.Call(MessageHarness::PullCommand(header));
  }
  remoting::Command PullAt(std::int64_t offset) {
    return Pull(MessageHarness::PullHeader("T", 0, offset));
  }
  // A pull that waits for `hold`.
  static remoting::PullMessageRequest Holding(std::int64_t offset, milliseconds hold) {
    auto header = MessageHarness::PullHeader("T", 0, offset);
    header.sys_flag |= kSuspend;
    header.suspend_timeout_ms = hold.count();
    return header;
  }
  bool WaitUntilHeld(std::size_t count = 1) {
    return broker_.Eventually([&] { return broker_.long_polling().size() == count; });
  }
  static remoting::Command Take(MessageHarness::Answer* answer) {
    CHECK(answer->wait_for(kPatience) == std::future_status::ready) << "not answered";
    return answer->get();
  }
  static void ExpectAnswer(const remoting::Command& response, std::int32_t code, std::int64_t next,
                           std::int64_t min, std::int64_t max) {
    EXPECT_EQ(response.code, code) << response.remark;
    const auto header = remoting::PullMessageResponse::Decode(response.ext);
    ASSERT_TRUE(header.ok()) << header.status();
    EXPECT_EQ(header->next_begin_offset, next);
    EXPECT_EQ(header->min_offset, min);
    EXPECT_EQ(header->max_offset, max);
    EXPECT_EQ(header->suggest_which_broker_id, 0);
  }
  static std::vector<std::string> Bodies(const remoting::Command& response) {
    std::vector<std::string> bodies;
    std::string_view rest = response.body;
    while (!rest.empty()) {
      const auto message = ParseMessage(rest, true);
      CHECK(message.ok()) << message.status();
      bodies.emplace_back(message->body);
      rest.remove_prefix(message->record.size());
    }
    return bodies;
  }

  MessageHarness broker_;
};

// What it knows may be less than its predecessor showed.
TEST(NewLeader, SpeaksOfItsQueuesOnlyWhenItsOwnEntryIsApplied) {
  StallingFileSystem disk;
  MessageHarness broker([](BrokerConfig* config) { config->flush = FlushDiskType::kSyncFlush; },
                        disk);
  broker.CreateTopic("T", 1);
  ASSERT_EQ(broker.Send(MessageHarness::SendHeader("T"), "m").code, remoting::kSuccess);
  MessageHarness::Answer inside;
  MessageHarness::Answer at_end;
  const auto is_leader = [&] {
    return broker.store().node().leader_info().role == dledger::Role::kLeader;
  };
  const std::string log_file(20, '0');
  broker.Restart([&] { disk.Hold(log_file); },
                 [&] {
                   EXPECT_TRUE(broker.Eventually(is_leader));
                   const auto pull = [&](std::int64_t offset) {
                     return broker.Ask(
                         MessageHarness::PullCommand(MessageHarness::PullHeader("T", 0, offset)));
                   };
                   inside = pull(0);
                   at_end = pull(1);
                   for (const auto* answer : {&inside, &at_end}) {
                     EXPECT_EQ(answer->wait_for(milliseconds(100)), std::future_status::timeout);
                   }
                   disk.Release();
                 });
  EXPECT_EQ(inside.get().code, remoting::kSuccess);
  EXPECT_EQ(at_end.get().code, remoting::kPullNotFound);
}

TEST_F(PullTest, FoundMessagesComeInOrderAndTheNextOffsetIsBehindThem) {
  for (const char* body : {"a", "b", "c"}) Send(body);
  const auto response = PullAt(1);
  ExpectAnswer(response, remoting::kSuccess, 3, 0, 3);
  EXPECT_EQ(Bodies(response), (std::vector<std::string>{"b", "c"}));
}

TEST_F(PullTest, CountsHowLongItTookWhenSomethingWasFound) {
  const auto counted = [this] {
    return broker_.context().counters.get_times.Read(SystemClock().MonoNow()).count;
  };
  Send("a");
  PullAt(0);
  EXPECT_EQ(counted(), 1u);
  PullAt(1);
  EXPECT_EQ(counted(), 1u);
}

TEST_F(PullTest, LitePullIsServedAlike) {
  Send("a");
  auto command = MessageHarness::PullCommand(MessageHarness::PullHeader("T", 0, 0));
  command.code = remoting::kLitePullMessage;
  EXPECT_EQ(Bodies(broker_.Call(command)), (std::vector<std::string>{"a"}));
}

TEST_F(PullTest, NoMoreThanAskedForIsHandedOut) {
  for (int i = 0; i < 5; ++i) Send("m");
  auto header = MessageHarness::PullHeader("T", 0, 0);
  header.max_msg_nums = 2;
  ExpectAnswer(Pull(header), remoting::kSuccess, 2, 0, 5);
}

TEST_F(PullTest, AMessageAboveTheByteLimitComesAlone) {
  Send("small");
  Send(std::string(400000, 'x'));
  Send("small");
  ExpectAnswer(PullAt(0), remoting::kSuccess, 1, 0, 3);
  ExpectAnswer(PullAt(1), remoting::kSuccess, 2, 0, 3);
}

TEST_F(PullTest, OFS_2_OutOfRangeOffsetsAreCorrected) {
  // Nothing was ever written.
  ExpectAnswer(PullAt(0), remoting::kPullNotFound, 0, 0, 0);
  ExpectAnswer(PullAt(7), remoting::kPullOffsetMoved, 0, 0, 0);
  Send("a");
  ExpectAnswer(PullAt(1), remoting::kPullNotFound, 1, 0, 1);
  ExpectAnswer(PullAt(2), remoting::kPullOffsetMoved, 1, 0, 1);
  ExpectAnswer(PullAt(500), remoting::kPullOffsetMoved, 1, 0, 1);
  ExpectAnswer(PullAt(-1), remoting::kPullOffsetMoved, 0, 0, 1);
}

TEST_F(PullTest, TheCommitBitOfAnUnknownGroupStoresNothing) {
  Send("a");
  auto header = MessageHarness::PullHeader("T", 0, 0);
  header.commit_offset = 1;
  header.sys_flag = kCommit | kSubscription;
  header.consumer_group = "unknown";
  EXPECT_EQ(Pull(header).code, remoting::kSuccess);
  EXPECT_EQ(broker_.context().offsets.pending(), 0u);
}

TEST_F(PullTest, OldMessagesAreOfferedByAFollowerUnlessTheGroupIsOrdered) {
  MessageHarness broker([](BrokerConfig* config) { config->slave_read = true; });
  broker.CreateTopic("T", 1);
  ASSERT_EQ(broker.Send(MessageHarness::SendHeader("T"), "a").code, remoting::kSuccess);
  ASSERT_EQ(broker.Send(MessageHarness::SendHeader("T"), "b").code, remoting::kSuccess);
  const auto suggested = [&] {
    auto pull = MessageHarness::PullHeader("T", 0, 0);
    pull.max_msg_nums = 1;
    const auto response = broker.Call(MessageHarness::PullCommand(pull));
    EXPECT_EQ(response.code, remoting::kSuccess);
    return remoting::PullMessageResponse::Decode(response.ext)->suggest_which_broker_id;
  };
  broker.context().memory_bytes = std::int64_t{1} << 34;
  EXPECT_EQ(suggested(), 0) << "the message is in memory";
  broker.context().memory_bytes = 200;
  EXPECT_EQ(suggested(), 1);
  GroupConfig group;
  group.name = GroupName("g");
  group.which_broker_when_consume_slowly = 3;
  broker.CreateGroup(group);
  EXPECT_EQ(suggested(), 3);
  StateCommand lock;
  lock.locks.push_back({{GroupName("g"), Queue("T", 0)}, ClientId("c"), 1});
  broker.Propose(lock);
  EXPECT_EQ(suggested(), 0) << "an ordered group reads from the leader";
}

TEST_F(PullTest, WithoutSlaveReadEnableNobodyIsSentElsewhere) {
  Send("a");
  Send("b");
  broker_.context().memory_bytes = 200;
  ExpectAnswer(PullAt(0), remoting::kSuccess, 2, 0, 2);  // and 0 is suggested
}

TEST_F(PullTest, AHeldPullIsAnsweredByTheNextMessage) {
  auto answer = broker_.Ask(MessageHarness::PullCommand(Holding(0, kPatience)));
  ASSERT_TRUE(WaitUntilHeld());
  Send("a");
  const auto response = Take(&answer);
  ExpectAnswer(response, remoting::kSuccess, 1, 0, 1);
  EXPECT_EQ(Bodies(response), (std::vector<std::string>{"a"}));
}

TEST_F(PullTest, AHeldPullEndsAtItsDeadlineAndNotBefore) {
  const auto begin = std::chrono::steady_clock::now();
  const auto response = Pull(Holding(0, milliseconds(200)));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(200));
  ExpectAnswer(response, remoting::kPullNotFound, 0, 0, 0);
}

TEST_F(PullTest, AHeldPullIgnoresWhatItsFilterRefuses) {
  auto header = Holding(0, milliseconds(500));
  header.subscription = "A";
  auto nothing = broker_.Ask(MessageHarness::PullCommand(header));
  header.suspend_timeout_ms = milliseconds(kPatience).count();
  auto found = broker_.Ask(MessageHarness::PullCommand(header));
  ASSERT_TRUE(WaitUntilHeld(2));
  Send("1", "B");
  // Its offset moves past what was skipped.
  ExpectAnswer(Take(&nothing), remoting::kPullRetryImmediately, 1, 0, 1);
  Send("2", "A");
  const auto response = Take(&found);
  ExpectAnswer(response, remoting::kSuccess, 2, 0, 2);
  EXPECT_EQ(Bodies(response), (std::vector<std::string>{"2"}));
}

TEST_F(PullTest, AHeldPullIsDroppedWithItsConnection) {
  const auto other = std::make_shared<TestConnection>(77, broker_.timers());
  auto answer = broker_.Ask(MessageHarness::PullCommand(Holding(0, kPatience)), other);
  ASSERT_TRUE(WaitUntilHeld());
  broker_.long_polling().OnConnectionClosed(77);
  EXPECT_EQ(broker_.long_polling().size(), 0u);
  EXPECT_THROW(answer.get(), std::future_error);  // the reply was dropped unused
}

TEST_F(PullTest, HowFarAGroupWasServedIsKnown) {
  const auto pulled = [this] {
    return broker_.context().pulled->Find("g", {Topic("T"), QueueId(0)},
                                          broker_.store().node().leader_info().term);
  };
  EXPECT_EQ(pulled(), std::nullopt);
  for (const char* body : {"a", "b", "c"}) Send(body);
  auto two = MessageHarness::PullHeader("T", 0, 0);
  two.max_msg_nums = 2;
  Pull(two);
  EXPECT_EQ(pulled(), QueueOffset(2));
  PullAt(2);
  EXPECT_EQ(pulled(), QueueOffset(3));
  PullAt(0);
  two.queue_offset = 1;
  Pull(two);
  EXPECT_EQ(pulled(), QueueOffset(3));
  Pull(MessageHarness::PullHeader("T", 1, 0));
  EXPECT_EQ(pulled(), QueueOffset(3)) << "another queue";
  two.queue_offset = 0;
  two.max_msg_nums = 1;
  Pull(two);
  EXPECT_EQ(pulled(), QueueOffset(1));
  auto held = broker_.Ask(MessageHarness::PullCommand(Holding(3, kPatience)));
  ASSERT_TRUE(WaitUntilHeld());
  EXPECT_EQ(pulled(), QueueOffset(3)) << "one that waits";
  Send("d");
  Take(&held);
}

TEST_F(PullTest, TagsSelectAndSkippedMessagesMoveTheOffset) {
  Send("1", "A");
  Send("2", "B");
  Send("3");
  Send("4", "C");
  auto header = MessageHarness::PullHeader("T", 0, 0);
  header.subscription = "A || C";
  const auto response = Pull(header);
  EXPECT_EQ(Bodies(response), (std::vector<std::string>{"1", "4"}));
  header.subscription = "X";
  ExpectAnswer(Pull(header), remoting::kPullRetryImmediately, 4, 0, 4);
}

TEST_F(PullTest, WithoutASubscriptionInTheRequestTheHeartbeatsCounts) {
  Send("1", "A");
  Send("2", "B");
  auto header = MessageHarness::PullHeader("T", 0, 0);
  header.sys_flag = 0;
  EXPECT_EQ(Pull(header).code, remoting::kSubscriptionNotExist);
  remoting::ConsumerData consumer;
  consumer.group_name = "g";
  consumer.subscriptions.emplace_back();
  consumer.subscriptions[0].topic = "T";
  consumer.subscriptions[0].sub_string = "B";
  consumer.subscriptions[0].sub_version = 5;
  ASSERT_TRUE(broker_.context()
                  .consumers
                  .Heartbeat(broker_.connection(), ClientInfo{ClientId("c"), "JAVA", 479}, consumer,
                             false, SystemClock().MonoNow())
                  .ok());
  header.sub_version = 6;
  EXPECT_EQ(Pull(header).code, remoting::kSubscriptionNotLatest);
  header.sub_version = 5;
  EXPECT_EQ(Bodies(Pull(header)), (std::vector<std::string>{"2"}));
  header.topic = "BenchmarkTest";
  EXPECT_EQ(Pull(header).code, remoting::kSubscriptionNotExist);
}

TEST_F(PullTest, WhatMayNotBePulledIsRefused) {
  broker_.CreateTopic("WriteOnly", 1, 2);
  GroupConfig closed;
  closed.name = GroupName("closed");
  closed.consume_enable = false;
  broker_.CreateGroup(closed);
  const auto refusal = [&](auto change) {
    auto header = MessageHarness::PullHeader("T", 0, 0);
    change(&header);
    return Pull(header).code;
  };
  using Header = remoting::PullMessageRequest;
  EXPECT_EQ(refusal([](Header* h) { h->topic = "Nope"; }), remoting::kTopicNotExist);
  EXPECT_EQ(refusal([](Header* h) { h->topic = "WriteOnly"; }), remoting::kNoPermission);
  EXPECT_EQ(refusal([](Header* h) { h->queue_id = 2; }), remoting::kInvalidParameter);
  EXPECT_EQ(refusal([](Header* h) { h->queue_id = -1; }), remoting::kInvalidParameter);
  EXPECT_EQ(refusal([](Header* h) { h->consumer_group = "closed"; }), remoting::kNoPermission);
  EXPECT_EQ(refusal([](Header* h) { h->consumer_group = "a b"; }),
            remoting::kSubscriptionGroupNotExist);
  EXPECT_EQ(refusal([](Header* h) { h->subscription = "||"; }), remoting::kSubscriptionParseFailed);
  EXPECT_EQ(refusal([](Header* h) { h->expression_type = "SQL92"; }), remoting::kSystemError);
}

TEST_F(PullTest, AMissingFieldIsNamed) {
  remoting::Command command = remoting::Command::Request(remoting::kPullMessage);
  const auto response = broker_.Call(command);
  EXPECT_EQ(response.code, remoting::kSystemError);
  EXPECT_EQ(response.remark, "missing required field consumerGroup");
}

TEST_F(PullTest, TheCommitBitStoresTheOffset) {
  GroupConfig group;
  group.name = GroupName("g");
  broker_.CreateGroup(group);
  for (const char* body : {"a", "b", "c"}) Send(body);
  const GroupQueue key{GroupName("g"), Queue("T", 0)};
  auto header = MessageHarness::PullHeader("T", 0, 2);
  header.commit_offset = 2;
  EXPECT_EQ(Pull(header).code, remoting::kSuccess);
  header.commit_offset = 1;
  header.sys_flag = kCommit | kSubscription;
  EXPECT_EQ(Pull(header).code, remoting::kSuccess);
  ASSERT_TRUE(
      broker_.Eventually([&] { return broker_.store().state().FindOffset(key).has_value(); }));
  EXPECT_EQ(broker_.store().state().FindOffset(key), QueueOffset(1));
}

TEST_F(PullTest, MessagesAreReadFromTheDiskAfterARestart) {
  for (int i = 0; i < 40; ++i) Send("m" + std::to_string(i));
  broker_.Restart();
  std::vector<std::string> all;
  for (std::int64_t next = 0; next < 40;) {
    const auto response = PullAt(next);
    ASSERT_EQ(response.code, remoting::kSuccess) << response.remark;
    for (std::string& body : Bodies(response)) all.push_back(std::move(body));
    next = remoting::PullMessageResponse::Decode(response.ext)->next_begin_offset;
  }
  ASSERT_EQ(all.size(), 40u);
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(all[static_cast<std::size_t>(i)], "m" + std::to_string(i));
  }
}

}  // namespace
}  // namespace triad::broker
