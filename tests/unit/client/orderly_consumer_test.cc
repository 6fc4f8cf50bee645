// The orderly push consumer against a small in-memory cluster over loopback sockets.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "client/lock_keeper.h"
#include "client/message_codec.h"
#include "client/rebalancer.h"
#include "client/retry_sender.h"
#include "remoting/codes.h"
#include "tests/unit/client/fake_cluster.h"
#include "triad/push_consumer.h"

namespace triad::client {
namespace {

using remoting::Command;
using std::chrono::milliseconds;

class OrderlyConsumerTest : public testing::Test {
 protected:
  using Judge = std::function<OrderlyResult(const ReceivedMessage&, OrderlyContext*)>;

  PushConsumerOptions Options(const std::string& instance = {}) {
    PushConsumerOptions options;
    options.client = cluster_.client_options(instance);
    options.group = "g";
    options.consume_from = ConsumeFrom::kFirstOffset;
    options.threads = 4;
    options.offset_commit_interval = milliseconds(20);
    options.rebalance_interval = milliseconds(500);
    options.lock_interval = milliseconds(50);
    options.suspend_current_queue = milliseconds(10);
    return options;
  }

  std::unique_ptr<PushConsumer> Start(PushConsumerOptions options, Judge judge = nullptr) {
    auto consumer = std::make_unique<PushConsumer>(std::move(options));
    EXPECT_TRUE(consumer->Subscribe("T").ok());
    consumer->SetListener(MessageListenerOrderly(
        [this, judge](const std::vector<ReceivedMessage>& messages, OrderlyContext* context) {
          OrderlyResult result = OrderlyResult::kSuccess;
          for (const ReceivedMessage& message : messages) {
            if (judge) result = judge(message, context);
            cluster_.Note([&] {
              messages_.push_back(message);
              tokens_.push_back(context->fence_token);
            });
          }
          return result;
        }));
    const Status started = consumer->Start();
    EXPECT_TRUE(started.ok()) << started;
    return consumer;
  }

  std::vector<std::string> Bodies(int queue) {
    std::vector<std::string> bodies;
    for (const ReceivedMessage& message : messages_) {
      if (message.queue.queue_id == queue) bodies.push_back(message.body);
    }
    return bodies;
  }

  FakeCluster cluster_;
  std::vector<ReceivedMessage> messages_;
  std::vector<std::uint64_t> tokens_;
};

TEST_F(OrderlyConsumerTest, ConsumesEveryQueueInOrderUnderItsLock) {
  cluster_.CreateTopic("T", 3);
  for (int i = 0; i < 60; ++i) cluster_.Put("T", i % 3, std::to_string(100 + i));
  const auto consumer = Start(Options());
  ASSERT_TRUE(cluster_.Wait([&] { return messages_.size() == 60; }));
  for (int queue = 0; queue < 3; ++queue) {
    EXPECT_EQ(Bodies(queue).size(), 20u);
    const auto bodies = Bodies(queue);
    EXPECT_TRUE(std::is_sorted(bodies.begin(), bodies.end()));
    EXPECT_FALSE(cluster_.LockHolder("T", queue).empty());
  }
  EXPECT_EQ(std::count(tokens_.begin(), tokens_.end(), 0u), 0) << "the token is offered";
  EXPECT_TRUE(cluster_.Wait([&] { return cluster_.Offset("g", "T", 0) == 20; }));
}

TEST_F(OrderlyConsumerTest, OneQueueIsConsumedByOneThreadAtATime) {
  cluster_.CreateTopic("T", 2);
  for (int i = 0; i < 200; ++i) cluster_.Put("T", i % 2, std::to_string(i));
  std::array<std::atomic<int>, 2> inside{};
  std::atomic<int> violations = 0;
  const auto consumer = Start(Options(), [&](const ReceivedMessage& message, OrderlyContext*) {
    std::atomic<int>& counter = inside[static_cast<std::size_t>(message.queue.queue_id)];
    if (counter.fetch_add(1) != 0) ++violations;
    std::this_thread::yield();
    counter.fetch_sub(1);
    return OrderlyResult::kSuccess;
  });
  ASSERT_TRUE(cluster_.Wait([&] { return messages_.size() == 200; }));
  EXPECT_EQ(violations, 0);
}

TEST_F(OrderlyConsumerTest, ConsumesNothingOfAQueueThatSomebodyElseHasLocked) {
  cluster_.CreateTopic("T", 2);
  cluster_.SetLockHolder("T", 0, "somebody else");
  cluster_.Put("T", 0, "theirs");
  cluster_.Put("T", 1, "ours");
  const auto consumer = Start(Options());
  ASSERT_TRUE(cluster_.Wait([&] { return messages_.size() == 1; }));
  // The lock was asked for again meanwhile, and refused.
  const int asked = cluster_.Count(remoting::kLockBatchMq);
  ASSERT_TRUE(cluster_.Wait([&] { return cluster_.Count(remoting::kLockBatchMq) >= asked + 2; }));
  EXPECT_EQ(messages_[0].body, "ours");
  cluster_.SetLockHolder("T", 0, "");
  ASSERT_TRUE(cluster_.Wait([&] { return messages_.size() == 2; }));
  EXPECT_EQ(messages_[1].body, "theirs");
}

TEST_F(OrderlyConsumerTest, AFailureHoldsItsQueueAndIsTriedAgainInPlace) {
  cluster_.CreateTopic("T", 2);
  cluster_.Put("T", 0, "bad");
  cluster_.Put("T", 0, "behind");
  cluster_.Put("T", 1, "elsewhere");
  std::atomic<int> failures = 0;
  const auto consumer = Start(Options(), [&](const ReceivedMessage& message, OrderlyContext*) {
    if (message.body == "bad" && failures.fetch_add(1) < 3) {
      return OrderlyResult::kSuspendCurrentQueue;
    }
    return OrderlyResult::kSuccess;
  });
  ASSERT_TRUE(cluster_.Wait([&] { return messages_.size() == 6; }));
  EXPECT_EQ(Bodies(0), (std::vector<std::string>{"bad", "bad", "bad", "bad", "behind"}));
  std::vector<int> times;
  for (const ReceivedMessage& message : messages_) {
    if (message.body == "bad") times.push_back(message.reconsume_times);
  }
  EXPECT_EQ(times, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(cluster_.Count(remoting::kConsumerSendMsgBack), 0);
}

TEST_F(OrderlyConsumerTest, ASuspendedQueueWaitsAsLongAsTheListenerSays) {
  cluster_.CreateTopic("T", 1);
  cluster_.Put("T", 0, "bad");
  std::vector<TimePoint> times;
  const auto consumer = Start(Options(), [&](const ReceivedMessage&, OrderlyContext* context) {
    cluster_.Note([&] { times.push_back(SystemClock().MonoNow()); });
    context->suspend = milliseconds(200);
    return times.size() == 1 ? OrderlyResult::kSuspendCurrentQueue : OrderlyResult::kSuccess;
  });
  ASSERT_TRUE(cluster_.Wait([&] { return times.size() == 1; }));
  cluster_.Put("T", 0, "behind");  // its arrival must not end the pause
  ASSERT_TRUE(cluster_.Wait([&] { return times.size() >= 2; }));
  consumer->Shutdown();  // from here on nobody writes
  EXPECT_GE(times[1] - times[0], milliseconds(200));
  EXPECT_EQ(messages_.front().body, "bad");
}

TEST_F(OrderlyConsumerTest, AfterTheMaximumAMessageIsADeadLetterAndTheQueueMovesOn) {
  cluster_.CreateTopic("T", 1);
  cluster_.Put("T", 0, "poison", "UNIQ_KEY\x01U\x02");
  cluster_.Put("T", 0, "good");
  PushConsumerOptions options = Options();
  options.max_reconsume_times = 3;
  const auto consumer = Start(options, [](const ReceivedMessage& message, OrderlyContext*) {
    return message.body == "poison" ? OrderlyResult::kSuspendCurrentQueue : OrderlyResult::kSuccess;
  });
  ASSERT_TRUE(cluster_.Wait([&] { return cluster_.Stored("%DLQ%g").size() == 1; }));
  ASSERT_TRUE(cluster_.Wait([&] { return messages_.size() == 5; }));
  EXPECT_EQ(Bodies(0), (std::vector<std::string>{"poison", "poison", "poison", "poison", "good"}));
  const StoredMessage dead = cluster_.Stored("%DLQ%g")[0];
  EXPECT_EQ(dead.body, "poison");
  EXPECT_EQ(ParseProperties(dead.properties).at("UNIQ_KEY"), "U");
  EXPECT_TRUE(cluster_.Wait([&] { return cluster_.Offset("g", "T", 0) == 2; }));
}

TEST_F(OrderlyConsumerTest, ADeadLetterWhoseAnswerIsLostIsMadeOnce) {
  cluster_.CreateTopic("T", 1);
  cluster_.Put("T", 0, "poison");
  cluster_.Put("T", 0, "good");
  int lost = 0;
  const auto hook = cluster_.SetHook([&](int, const Command& request, FakeCluster::Script* script) {
    const bool gives_up =
        request.code == remoting::kConsumerSendMsgBack || request.code == remoting::kSendMessageV2;
    if (gives_up && lost < 2) {  // under the cluster's lock
      ++lost;
      *script = FakeCluster::Script::kLoseAnswer;
    }
    return std::optional<Command>();
  });
  PushConsumerOptions options = Options();
  options.max_reconsume_times = 1;
  const auto consumer = Start(options, [](const ReceivedMessage& message, OrderlyContext*) {
    return message.body == "poison" ? OrderlyResult::kSuspendCurrentQueue : OrderlyResult::kSuccess;
  });
  ASSERT_TRUE(cluster_.Wait([&] { return cluster_.Offset("g", "T", 0) == 2; }));
  EXPECT_EQ(lost, 2);
  EXPECT_EQ(cluster_.Stored("%DLQ%g").size(), 1u);
  EXPECT_EQ(cluster_.Stored("%RETRY%g").size(), 0u);
}

TEST_F(OrderlyConsumerTest, ADeadLetterOfUnknownOutcomeIsNotConsumedOnceMore) {
  cluster_.CreateTopic("T", 1);
  cluster_.Put("T", 0, "poison");
  cluster_.Put("T", 0, "good");
  int asked = 0;
  const auto hook = cluster_.SetHook([&](int, const Command& request, FakeCluster::Script*) {
    std::optional<Command> answer;
    if (request.code != remoting::kConsumerSendMsgBack) return answer;
    // More often than it is asked in one go; under the cluster's lock.
    if (++asked <= 4) answer = Command::ResponseTo(request, 1, "the outcome is unknown");
    return answer;
  });
  PushConsumerOptions options = Options();
  options.max_reconsume_times = 1;
  const auto consumer = Start(options, [](const ReceivedMessage& message, OrderlyContext*) {
    return message.body == "poison" ? OrderlyResult::kSuspendCurrentQueue : OrderlyResult::kSuccess;
  });
  ASSERT_TRUE(cluster_.Wait([&] { return cluster_.Offset("g", "T", 0) == 2; }));
  EXPECT_EQ(asked, 5);
  EXPECT_EQ(Bodies(0), (std::vector<std::string>{"poison", "poison", "good"}));
  EXPECT_EQ(cluster_.Stored("%DLQ%g").size(), 1u);
}

TEST_F(OrderlyConsumerTest, ALockThatSomebodyElseHadInBetweenStartsTheQueueAnew) {
  cluster_.CreateTopic("T", 1);
  cluster_.Put("T", 0, "a");
  const auto consumer = Start(Options());
  ASSERT_TRUE(cluster_.Wait([&] { return cluster_.Offset("g", "T", 0) == 1; }));
  const std::uint64_t first_token = tokens_[0];
  cluster_.Note([&] {
    cluster_.SetLockHolder("T", 0, "somebody else");
    cluster_.Put("T", 0, "theirs");
  });
  const int asked = cluster_.Count(remoting::kLockBatchMq);
  ASSERT_TRUE(cluster_.Wait([&] { return cluster_.Count(remoting::kLockBatchMq) >= asked + 2; }));
  cluster_.Note([&] {  // it consumed and left
    cluster_.SetOffset("g", "T", 0, 2);
    cluster_.SetLockHolder("T", 0, "");
  });
  cluster_.Put("T", 0, "ours");
  ASSERT_TRUE(cluster_.Wait([&] { return !messages_.empty() && messages_.back().body == "ours"; }));
  EXPECT_GT(tokens_.back(), first_token);
  EXPECT_LE(std::count_if(messages_.begin(), messages_.end(),
                          [](const ReceivedMessage& m) { return m.body == "theirs"; }),
            1);
}

// The parts of a consumer that renew and take locks, without one.
class LockPartsTest : public OrderlyConsumerTest {
 protected:
  void SetUp() override {
    cluster_.CreateTopic("T", 2);
    context_->options = Options();
    context_->orderly = true;
    auto instance = ClientInstance::Attach(context_->options.client);
    ASSERT_TRUE(instance.ok()) << instance.status();
    context_->instance = *instance;
    context_->calls = std::make_unique<BrokerCalls>(instance->get());
    ASSERT_TRUE(context_->instance->routes().Get("T", false).ok());
  }
  void TearDown() override { context_->instance->Detach(); }
  static ProcessQueuePtr Queue(int id) {
    return std::make_shared<ProcessQueue>(MessageQueue{"T", FakeCluster::kBroker, id},
                                          ProcessQueue::Limits());
  }

  const ConsumerContextPtr context_ = std::make_shared<ConsumerContext>();
  const std::shared_ptr<QueueTable> table_ = std::make_shared<QueueTable>();
};

TEST_F(LockPartsTest, ALockRenewedBesideItsReleaseIsLeftToTheRebalancer) {
  const ProcessQueuePtr queue = Queue(0);
  table_->Add(queue);
  const auto hook = cluster_.SetHook([&](int, const Command& request, FakeCluster::Script*) {
    if (request.code == remoting::kLockBatchMq) table_->Remove(queue->queue());
    return std::optional<Command>();
  });
  std::vector<MessageQueue> surplus;
  LockKeeper keeper(
      context_, table_.get(), [](const ProcessQueuePtr&) { ADD_FAILURE() << "nothing is lost"; },
      [&](const std::vector<MessageQueue>& queues) { cluster_.Note([&] { surplus = queues; }); });
  EXPECT_TRUE(cluster_.Wait([&] { return !surplus.empty(); }));
  keeper.Stop();
  EXPECT_EQ(surplus, std::vector<MessageQueue>{queue->queue()});
  EXPECT_EQ(cluster_.Count(remoting::kUnlockBatchMq), 0) << "it may be taken again by now";
}

TEST_F(LockPartsTest, TheRebalancerGivesBackOnlyWhatItHasNotTakenAgain) {
  const ProcessQueuePtr taken_again = Queue(0);
  const ProcessQueuePtr unused = Queue(1);
  for (int id = 0; id < 2; ++id) cluster_.SetLockHolder("T", id, context_->instance->client_id());
  table_->Add(taken_again);
  const auto rebalancer = std::make_shared<Rebalancer>(context_, table_, nullptr,
                                                       std::map<MessageQueue, std::int64_t>());
  rebalancer->Start();
  rebalancer->Surplus({taken_again->queue(), unused->queue()});
  EXPECT_TRUE(cluster_.Wait([&] { return cluster_.LockHolder("T", 1).empty(); }));
  rebalancer->Stop();
  EXPECT_EQ(cluster_.LockHolder("T", 0), context_->instance->client_id());
}

TEST_F(OrderlyConsumerTest, GivesAQueueUpOnlyAfterItsListenerFinished) {
  cluster_.CreateTopic("T", 1);
  cluster_.Put("T", 0, "a");
  cluster_.Put("T", 0, "b");
  bool hold = true;
  bool inside = false;
  const auto first = Start(Options("one"), [&](const ReceivedMessage&, OrderlyContext*) {
    cluster_.Note([&] { inside = true; });
    cluster_.Wait([&] { return !hold; });
    return OrderlyResult::kSuccess;
  });
  ASSERT_TRUE(cluster_.Wait([&] { return inside; }));
  const std::string holder = cluster_.LockHolder("T", 0);
  cluster_.SetMembers({"0"});  // sorts before every client id: the only queue is its own now
  cluster_.Notify("g");
  ASSERT_TRUE(cluster_.Wait([&] { return first->AssignedQueues().empty(); }));
  EXPECT_EQ(cluster_.LockHolder("T", 0), holder) << "the listener still runs";
  cluster_.Note([&] { hold = false; });
  ASSERT_TRUE(cluster_.Wait([&] { return cluster_.LockHolder("T", 0).empty(); }));
  EXPECT_EQ(cluster_.Offset("g", "T", 0), 1) << "what was consumed is committed before";
}

TEST_F(OrderlyConsumerTest, ShutdownCommitsAndReleasesTheLocks) {
  cluster_.CreateTopic("T", 2);
  cluster_.Put("T", 0, "a");
  PushConsumerOptions options = Options();
  options.offset_commit_interval = std::chrono::hours(1);
  const auto consumer = Start(options);
  ASSERT_TRUE(cluster_.Wait([&] { return messages_.size() == 1; }));
  consumer->Shutdown();
  EXPECT_EQ(cluster_.Offset("g", "T", 0), 1);
  EXPECT_EQ(cluster_.LockHolder("T", 0), "");
  EXPECT_EQ(cluster_.LockHolder("T", 1), "");
}

TEST_F(OrderlyConsumerTest, KeepsItsLocksAndItsOrderWhenTheLeaderDies) {
  cluster_.CreateTopic("T", 2);
  for (int i = 0; i < 20; ++i) cluster_.Put("T", i % 2, std::to_string(100 + i));
  const auto consumer = Start(Options());
  ASSERT_TRUE(cluster_.Wait([&] { return messages_.size() == 20; }));
  cluster_.StopPeer(0);
  cluster_.SetLeader(1);
  for (int i = 20; i < 40; ++i) cluster_.Put("T", i % 2, std::to_string(100 + i));
  ASSERT_TRUE(cluster_.Wait([&] { return messages_.size() >= 40; }));
  for (int queue = 0; queue < 2; ++queue) {
    const auto bodies = Bodies(queue);
    EXPECT_TRUE(std::is_sorted(bodies.begin(), bodies.end()));
    EXPECT_EQ(bodies.size(), 20u) << "nothing twice: the lock was never lost";
  }
}

TEST(RetryTask, CarriesWhatTheBrokerNeedsToCount) {
  ReceivedMessage message;
  message.topic = "T";
  message.body = "b";
  message.offset_message_id = "ID";
  message.reconsume_times = 5;
  message.queue.queue_id = 3;
  message.queue_offset = 77;
  message.properties = {{"TAGS", "x"}, {"TRAN_MSG", "true"}};
  const SendTask task = MakeRetryTask(message, "g", 5, "no money");
  EXPECT_EQ(task.header.topic, "%RETRY%g");
  EXPECT_EQ(task.header.producer_group, "CLIENT_INNER_PRODUCER");
  EXPECT_EQ(task.header.reconsume_times, 6);
  EXPECT_EQ(task.header.max_reconsume_times, 5);
  const Properties properties = ParseProperties(task.header.properties);
  EXPECT_EQ(properties.at("RETRY_TOPIC"), "T");
  EXPECT_EQ(properties.at("ORIGIN_MESSAGE_ID"), "ID");
  EXPECT_EQ(properties.at("DELAY"), "8");
  EXPECT_EQ(properties.at("TAGS"), "x");
  EXPECT_FALSE(properties.contains("TRAN_MSG"));
  EXPECT_EQ(properties.at("ORIGIN_QUEUE_ID"), "3");
  EXPECT_EQ(properties.at("ORIGIN_QUEUE_OFFSET"), "77");
  EXPECT_EQ(properties.at("FAILURE_REASON"), "no money");
  message.properties = {{"RETRY_TOPIC", "First"}, {"ORIGIN_MESSAGE_ID", "FirstId"}};
  const Properties again = ParseProperties(MakeRetryTask(message, "g", 5).header.properties);
  EXPECT_EQ(again.at("RETRY_TOPIC"), "First") << "the first topic stays over several rounds";
  EXPECT_EQ(again.at("ORIGIN_MESSAGE_ID"), "FirstId");
  EXPECT_FALSE(again.contains("ORIGIN_QUEUE_ID")) << "where it stands now is not its origin";
  EXPECT_FALSE(again.contains("FAILURE_REASON"));
}

}  // namespace
}  // namespace triad::client
