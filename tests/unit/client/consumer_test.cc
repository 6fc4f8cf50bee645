// The concurrent push consumer against a small in-memory cluster over loopback sockets.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "client/message_codec.h"
#include "remoting/codes.h"
#include "remoting/json.h"
#include "tests/unit/client/consumer_fixture.h"

namespace triad::client {
namespace {

TEST_F(ConsumerTest, ConsumesWhatIsThereAndWhatComes) {
  cluster_.CreateTopic("T", 4);
  cluster_.Put("T", 0, "a");
  cluster_.Put("T", 3, "b");
  const auto consumer = Start(Options(), Listener());
  ASSERT_TRUE(cluster_.Wait([&] { return bodies_.size() == 2; }));
  cluster_.Put("T", 1, "c");
  ASSERT_TRUE(cluster_.Wait([&] { return bodies_.size() == 3; }));
  EXPECT_EQ(Seen(), (std::multiset<std::string>{"a", "b", "c"}));
  EXPECT_EQ(consumer->AssignedQueues().size(), 5u);  // four, and the retry topic's one
}

TEST_F(ConsumerTest, AHeldPullWaitsAtTheBrokerAndDoesNotSpin) {
  cluster_.CreateTopic("T", 1);
  const auto consumer = Start(Options(), Listener());
  cluster_.Put("T", 0, "a");
  ASSERT_TRUE(cluster_.Wait([&] { return bodies_.size() == 1; }));
  EXPECT_LE(cluster_.Count(remoting::kPullMessage), 4);
}

TEST_F(ConsumerTest, CommitsItsOffsetsAndGoesOnThere) {
  cluster_.CreateTopic("T", 1);
  for (int i = 0; i < 5; ++i) cluster_.Put("T", 0, std::to_string(i));
  {
    const auto consumer = Start(Options(), Listener());
    ASSERT_TRUE(cluster_.Wait([&] { return cluster_.Offset("g", "T", 0) == 5; }));
  }
  cluster_.Put("T", 0, "next");
  const auto consumer = Start(Options(), Listener());
  ASSERT_TRUE(cluster_.Wait([&] { return bodies_.size() == 6; }));
  EXPECT_EQ(bodies_.back(), "next");
}

TEST_F(ConsumerTest, ShutdownCommitsWhatTheTimerHasNot) {
  cluster_.CreateTopic("T", 1);
  cluster_.Put("T", 0, "a");
  PushConsumerOptions options = Options();
  options.offset_commit_interval = std::chrono::hours(1);
  const auto consumer = Start(options, Listener());
  ASSERT_TRUE(cluster_.Wait([&] { return bodies_.size() == 1; }));
  EXPECT_EQ(cluster_.Offset("g", "T", 0), std::nullopt);
  consumer->Shutdown();
  EXPECT_EQ(cluster_.Offset("g", "T", 0), 1);
  EXPECT_EQ(cluster_.Count(remoting::kUnregisterClient), 3) << "every peer is told";
}

TEST_F(ConsumerTest, ShutdownRepeatsACommitThatTheBrokerDidNotManage) {
  cluster_.CreateTopic("T", 1);
  cluster_.Put("T", 0, "a");
  PushConsumerOptions options = Options();
  options.offset_commit_interval = std::chrono::hours(1);
  const auto consumer = Start(options, Listener());
  ASSERT_TRUE(cluster_.Wait([&] { return bodies_.size() == 1; }));
  int refusals = 0;
  const auto hook = cluster_.SetHook([&](int, const Command& request, FakeCluster::Script*) {
    std::optional<Command> answer;
    if (request.code == remoting::kUpdateConsumerOffset && ++refusals % 2 == 1) {
      answer = Command::ResponseTo(request, 1, "appended, but not committed in time");
    }
    return answer;
  });
  consumer->Shutdown();
  EXPECT_EQ(cluster_.Offset("g", "T", 0), 1);
}

TEST_F(ConsumerTest, NeverCommitsPastAMessageThatIsStillConsumed) {
  cluster_.CreateTopic("T", 1);
  for (int i = 0; i < 4; ++i) cluster_.Put("T", 0, std::to_string(i));
  bool hold = true;
  const auto consumer = Start(Options(), Listener([&](const ReceivedMessage& message) {
                                if (message.body == "1") cluster_.Wait([&] { return !hold; });
                                return ConcurrentResult::kSuccess;
                              }));
  ASSERT_TRUE(cluster_.Wait([&] { return bodies_.size() == 3; }));
  ASSERT_TRUE(cluster_.Wait([&] { return cluster_.Offset("g", "T", 0) == 1; }));
  cluster_.Note([&] { hold = false; });
  ASSERT_TRUE(cluster_.Wait([&] { return cluster_.Offset("g", "T", 0) == 4; }));
}

TEST_F(ConsumerTest, WhereToBeginWithoutAStoredOffset) {
  struct Case {
    const char* name;
    ConsumeFrom from;
    std::vector<std::string> expected;
  };
  const Case cases[] = {
      {"last", ConsumeFrom::kLastOffset, {"new"}},
      {"first", ConsumeFrom::kFirstOffset, {"old", "new"}},
      {"timestamp", ConsumeFrom::kTimestamp, {"new"}},  // the fake finds every time at the end
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    FakeCluster cluster;
    cluster.CreateTopic("T", 1);
    cluster.Put("T", 0, "old");
    PushConsumerOptions options = Options();
    options.client = cluster.client_options();
    options.consume_from = c.from;
    std::vector<std::string> bodies;
    const auto consumer =
        Start(options, [&](const std::vector<ReceivedMessage>& messages, ConcurrentContext*) {
          cluster.Note([&] { bodies.push_back(messages.front().body); });
          return ConcurrentResult::kSuccess;
        });
    ASSERT_TRUE(cluster.Wait([&] { return cluster.Count(remoting::kPullMessage) >= 2; }));
    cluster.Put("T", 0, "new");
    ASSERT_TRUE(cluster.Wait([&] { return bodies.size() == c.expected.size(); }));
    std::sort(bodies.rbegin(), bodies.rend());  // threads of the listener take them in any order
    EXPECT_EQ(bodies, c.expected);
  }
}

TEST_F(ConsumerTest, AnOffsetThatCannotBeToldIsAskedForAgainAndNeverGuessed) {
  cluster_.CreateTopic("T", 1);
  cluster_.Put("T", 0, "a");
  cluster_.Put("T", 0, "b");
  cluster_.SetOffset("g", "T", 0, 1);
  int refusals = 0;
  const auto hook = cluster_.SetHook([&](int, const Command& request, FakeCluster::Script*) {
    std::optional<Command> answer;
    if (request.code == remoting::kQueryConsumerOffset && refusals < 3) {
      ++refusals;
      answer = Command::ResponseTo(request, 1, "cannot tell");
    }
    return answer;
  });
  const auto consumer = Start(Options(), Listener());
  ASSERT_TRUE(cluster_.Wait([&] { return bodies_.size() == 1; }));
  EXPECT_EQ(bodies_.front(), "b");
}

TEST_F(ConsumerTest, FiltersByTagTextNotByHash) {
  cluster_.CreateTopic("T", 1);
  cluster_.Put("T", 0, "wanted",
               "TAGS\x01"
               "Aa\x02");
  cluster_.Put("T", 0, "same hash",
               "TAGS\x01"
               "BB\x02");
  cluster_.Put("T", 0, "no tag");
  cluster_.Put("T", 0, "wanted too",
               "TAGS\x01"
               "C\x02");
  const auto consumer = Start(Options(), Listener(), "Aa || C");
  ASSERT_TRUE(cluster_.Wait([&] { return bodies_.size() == 2; }));
  EXPECT_EQ(Seen(), (std::multiset<std::string>{"wanted", "wanted too"}));
  EXPECT_TRUE(cluster_.Wait([&] { return cluster_.Offset("g", "T", 0) == 4; }));
}

TEST_F(ConsumerTest, FilteredOutMessagesMoveTheOffset) {
  cluster_.CreateTopic("T", 1);
  for (int i = 0; i < 3; ++i) cluster_.Put("T", 0, "x", "TAGS\x01other\x02");
  const auto consumer = Start(Options(), Listener(), "mine");
  EXPECT_TRUE(cluster_.Wait([&] { return cluster_.Offset("g", "T", 0) == 3; }));
  EXPECT_TRUE(bodies_.empty());
}

TEST_F(ConsumerTest, HandsOverBatchesOfTheSizeAskedFor) {
  cluster_.CreateTopic("T", 1);
  for (int i = 0; i < 10; ++i) cluster_.Put("T", 0, std::to_string(i));
  PushConsumerOptions options = Options();
  options.consume_batch = 4;
  std::vector<std::size_t> sizes;
  const auto consumer =
      Start(options, [&](const std::vector<ReceivedMessage>& messages, ConcurrentContext*) {
        cluster_.Note([&] { sizes.push_back(messages.size()); });
        return ConcurrentResult::kSuccess;
      });
  ASSERT_TRUE(cluster_.Wait([&] { return sizes.size() == 3; }));
  std::sort(sizes.begin(), sizes.end());
  EXPECT_EQ(sizes, (std::vector<std::size_t>{2, 4, 4}));
}

TEST_F(ConsumerTest, StopsPullingWhileTooMuchIsCached) {
  cluster_.CreateTopic("T", 1);
  for (int i = 0; i < 100; ++i) cluster_.Put("T", 0, std::to_string(i));
  PushConsumerOptions options = Options();
  options.max_cached_messages = 10;
  options.pull_batch = 5;
  std::int64_t pulled_to = 0;
  const auto hook = cluster_.SetHook([&](int, const Command& request, FakeCluster::Script*) {
    if (request.code == remoting::kPullMessage && request.ext.StringOr("topic", "") == "T") {
      pulled_to = std::max(pulled_to, *request.ext.GetInt64("queueOffset"));
    }
    return std::optional<Command>();
  });
  bool hold = true;
  const auto consumer = Start(options, Listener([&](const ReceivedMessage&) {
                                cluster_.Wait([&] { return !hold; });
                                return ConcurrentResult::kSuccess;
                              }));
  ASSERT_TRUE(cluster_.Wait([&] { return pulled_to == 5; }));
  ASSERT_TRUE(cluster_.Wait([&] { return cluster_.Count(remoting::kUpdateConsumerOffset) > 0; }));
  EXPECT_LE(pulled_to, 10);
  cluster_.Note([&] { hold = false; });
  EXPECT_TRUE(cluster_.Wait([&] { return bodies_.size() == 100; }));
}

TEST_F(ConsumerTest, TwoMembersShareTheQueuesAndASurvivorTakesOver) {
  cluster_.CreateTopic("T", 4);
  const auto first = Start(Options("one"), Listener());
  auto second = Start(Options("two"), Listener());
  cluster_.Notify("g");
  const auto of_topic = [](const PushConsumer& consumer) {
    const auto queues = consumer.AssignedQueues();
    return std::count_if(queues.begin(), queues.end(),
                         [](const MessageQueue& queue) { return queue.topic == "T"; });
  };
  ASSERT_TRUE(cluster_.Wait([&] { return of_topic(*first) == 2 && of_topic(*second) == 2; }));
  second->Shutdown();
  cluster_.Notify("g");
  ASSERT_TRUE(cluster_.Wait([&] { return of_topic(*first) == 4; }));
  for (int queue = 0; queue < 4; ++queue) cluster_.Put("T", queue, std::to_string(queue));
  ASSERT_TRUE(cluster_.Wait([&] { return bodies_.size() == 4; }));
}

TEST_F(ConsumerTest, GoesOnWhenTheLeaderDies) {
  cluster_.CreateTopic("T", 2);
  const auto consumer = Start(Options(), Listener());
  cluster_.Put("T", 0, "before");
  ASSERT_TRUE(cluster_.Wait([&] { return bodies_.size() == 1; }));
  cluster_.StopPeer(0);
  cluster_.SetLeader(1);
  cluster_.Put("T", 0, "after");
  cluster_.Put("T", 1, "after");
  ASSERT_TRUE(cluster_.Wait([&] { return bodies_.size() >= 3; }));
  EXPECT_TRUE(cluster_.Wait([&] { return cluster_.Offset("g", "T", 0) == 2; }));
}

TEST_F(ConsumerTest, FollowsTheBrokerWhenItsOffsetIsWrong) {
  cluster_.CreateTopic("T", 1);
  cluster_.Put("T", 0, "a");
  cluster_.SetOffset("g", "T", 0, 100);  // beyond the end: the broker answers 21 with 1
  const auto consumer = Start(Options(), Listener());
  ASSERT_TRUE(cluster_.Wait([&] { return cluster_.Offset("g", "T", 0) == 1; }));
  cluster_.Put("T", 0, "b");
  ASSERT_TRUE(cluster_.Wait([&] { return bodies_.size() == 1; }));
  EXPECT_EQ(bodies_[0], "b");
}

TEST_F(ConsumerTest, ARequestToResetMovesItBack) {
  cluster_.CreateTopic("T", 1);
  for (int i = 0; i < 3; ++i) cluster_.Put("T", 0, std::to_string(i));
  const auto consumer = Start(Options(), Listener());
  ASSERT_TRUE(cluster_.Wait([&] { return bodies_.size() == 3; }));
  cluster_.ResetOffset("g", "T", 0, 1);
  ASSERT_TRUE(cluster_.Wait([&] { return bodies_.size() >= 5; }));
  EXPECT_EQ(Seen().count("1"), 2u);
  EXPECT_EQ(Seen().count("2"), 2u);
}

TEST_F(ConsumerTest, AQueueWhoseNewOffsetIsRefusedStartsAnewAllTheSame) {
  cluster_.CreateTopic("T", 1);
  cluster_.Put("T", 0, "a");
  const auto consumer = Start(Options(), Listener());
  ASSERT_TRUE(cluster_.Wait([&] { return bodies_.size() == 1; }));
  const auto hook = cluster_.SetHook([](int, const Command& request, FakeCluster::Script*) {
    std::optional<Command> answer;
    if (request.code == remoting::kUpdateConsumerOffset) {
      answer = Command::ResponseTo(request, remoting::kNoPermission, "somebody else has it");
    }
    return answer;
  });
  cluster_.ResetOffset("g", "T", 0, 0);
  cluster_.Put("T", 0, "b");
  // The listener is a concurrent one: "a" may come again before or after it.
  EXPECT_TRUE(cluster_.Wait(
      [&] { return std::find(bodies_.begin(), bodies_.end(), "b") != bodies_.end(); }));
}

TEST_F(ConsumerTest, ShutdownWaitsOnceForABrokerGroupThatIsGone) {
  constexpr int kQueues = 8;
  cluster_.CreateTopic("T", kQueues);
  for (int queue = 0; queue < kQueues; ++queue) cluster_.Put("T", queue, "m");
  PushConsumerOptions options = Options();
  options.offset_commit_interval = std::chrono::hours(1);
  const auto consumer = Start(options, Listener());
  ASSERT_TRUE(cluster_.Wait([&] { return bodies_.size() == kQueues; }));
  for (int peer = 0; peer < 3; ++peer) cluster_.StopPeer(peer);
  const auto begin = std::chrono::steady_clock::now();
  consumer->Shutdown();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(25));
}

TEST_F(ConsumerTest, WaitsForATopicThatComesLater) {
  const auto consumer = Start(Options(), Listener());
  cluster_.CreateTopic("T", 1);
  cluster_.Put("T", 0, "a");
  EXPECT_TRUE(cluster_.Wait([&] { return bodies_.size() == 1; }));
}

TEST_F(ConsumerTest, SuspendHoldsTheListenerBack) {
  cluster_.CreateTopic("T", 1);
  const auto consumer = Start(Options(), Listener());
  cluster_.Put("T", 0, "a");
  ASSERT_TRUE(cluster_.Wait([&] { return bodies_.size() == 1; }));
  consumer->Suspend();
  cluster_.Put("T", 0, "b");
  ASSERT_TRUE(cluster_.Wait([&] { return cluster_.Offset("g", "T", 0) == 1; }));
  EXPECT_EQ(bodies_.size(), 1u);
  consumer->Resume();
  EXPECT_TRUE(cluster_.Wait([&] { return bodies_.size() == 2; }));
}

TEST_F(ConsumerTest, BroadcastingReadsEveryQueueAndKeepsOffsetsInAFile) {
  char dir[] = "/tmp/triad-client-XXXXXX";
  ASSERT_NE(mkdtemp(dir), nullptr);
  cluster_.CreateTopic("T", 2);
  PushConsumerOptions options = Options();
  options.model = MessageModel::kBroadcasting;
  options.broadcast_offset_dir = dir;
  options.threads = 1;  // so one message at most is in the listener's hands
  cluster_.Put("T", 0, "a");
  cluster_.Put("T", 1, "b");
  {
    const auto consumer = Start(options, Listener([](const ReceivedMessage&) {
                                  return ConcurrentResult::kReconsumeLater;  // no retries here
                                }));
    ASSERT_TRUE(cluster_.Wait([&] { return bodies_.size() == 2; }));
  }
  cluster_.Put("T", 0, "c");
  const auto consumer = Start(options, Listener());
  // What was in the listener's hands at the end of the first one may come again.
  ASSERT_TRUE(cluster_.Wait([&] { return std::count(bodies_.begin(), bodies_.end(), "c") == 1; }));
  EXPECT_LE(bodies_.size(), 4u);
  EXPECT_EQ(cluster_.Count(remoting::kUpdateConsumerOffset), 0);
  EXPECT_EQ(cluster_.Count(remoting::kConsumerSendMsgBack), 0);
  EXPECT_EQ(cluster_.Count(remoting::kGetConsumerListByGroup), 0);
  std::filesystem::remove_all(dir);
}

TEST_F(ConsumerTest, RefusesToStartWhenSomethingIsMissing) {
  struct Case {
    const char* name;
    std::function<Status(PushConsumerOptions)> start;
  };
  const auto listener = [](const std::vector<ReceivedMessage>&, ConcurrentContext*) {
    return ConcurrentResult::kSuccess;
  };
  const Case cases[] = {
      {"no listener",
       [](PushConsumerOptions options) {
         PushConsumer consumer(options);
         EXPECT_TRUE(consumer.Subscribe("T").ok());
         return consumer.Start();
       }},
      {"no subscription",
       [&](PushConsumerOptions options) {
         PushConsumer consumer(options);
         consumer.SetListener(MessageListenerConcurrently(listener));
         return consumer.Start();
       }},
      {"no group",
       [&](PushConsumerOptions options) {
         options.group = "";
         PushConsumer consumer(options);
         EXPECT_TRUE(consumer.Subscribe("T").ok());
         consumer.SetListener(MessageListenerConcurrently(listener));
         return consumer.Start();
       }},
      {"a group whose retry topic would have too long a name",
       [&](PushConsumerOptions options) {
         options.group = std::string(249, 'g');
         PushConsumer consumer(options);
         EXPECT_TRUE(consumer.Subscribe("T").ok());
         consumer.SetListener(MessageListenerConcurrently(listener));
         return consumer.Start();
       }},
      {"no thread",
       [&](PushConsumerOptions options) {
         options.threads = 0;
         PushConsumer consumer(options);
         EXPECT_TRUE(consumer.Subscribe("T").ok());
         consumer.SetListener(MessageListenerConcurrently(listener));
         return consumer.Start();
       }},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(c.start(Options()).code(), StatusCode::kInvalidArgument);
  }
  const auto first = Start(Options(), listener);
  PushConsumer second(Options());
  ASSERT_TRUE(second.Subscribe("T").ok());
  second.SetListener(MessageListenerConcurrently(listener));
  EXPECT_EQ(second.Start().code(), StatusCode::kAlreadyExists);
}

// ---- what tools ask through the broker (admin.md §6.4 to §6.6) ----------------------------------

Command Directed(std::int32_t code, const std::string& group) {
  Command request = Command::Request(code);
  request.ext.Set("consumerGroup", group);
  request.ext.Set("group", group);
  request.ext.Set("topic", "T");
  request.ext.Set("clientId", "any");
  return request;
}

TEST_F(ConsumerTest, TellsWhatItHoldsAndHowFarItIs) {
  cluster_.CreateTopic("T", 1);
  cluster_.Put("T", 0, "a");
  const auto consumer = Start(Options(), Listener());
  ASSERT_TRUE(cluster_.Wait([&] { return cluster_.Offset("g", "T", 0) == 1; }));
  const auto info = cluster_.AskClients(Directed(remoting::kGetConsumerRunningInfo, "g")).at(0);
  ASSERT_TRUE(info.ok()) << info.status();
  ASSERT_EQ(info->code, 0) << info->remark;
  const auto json = remoting::Json::Parse(info->body);
  ASSERT_TRUE(json.ok()) << info->body;
  EXPECT_EQ((*json)["properties"]["PROP_CONSUME_TYPE"].AsString(), "CONSUME_PASSIVELY");
  EXPECT_EQ((*json)["properties"]["PROP_CONSUMEORDERLY"].AsString(), "false");
  EXPECT_EQ((*json)["subscriptionSet"].items().size(), 2u);
  const std::string queue = R"({"brokerName":"broker-a","queueId":0,"topic":"T"}:)";
  EXPECT_NE(info->body.find(queue + R"({"cachedMsgCount":0,)"), std::string::npos) << info->body;
  EXPECT_NE(info->body.find(R"("commitOffset":1,)"), std::string::npos) << info->body;

  const auto status =
      cluster_.AskClients(Directed(remoting::kGetConsumerStatusFromClient, "g")).at(0);
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->body, R"({"consumerTable":{},"messageQueueTable":{)" + queue + "1}}");
}

TEST_F(ConsumerTest, AnswersForItsOwnGroupsOnly) {
  cluster_.CreateTopic("T", 1);
  const auto consumer = Start(Options(), Listener());
  const auto answer = cluster_.AskClients(Directed(remoting::kGetConsumerRunningInfo, "h")).at(0);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->code, 1);
  EXPECT_EQ(answer->remark, "The Consumer Group <h> not exist in this consumer");
}

TEST_F(ConsumerTest, ConsumesAMessageDirectlyAndItsOffsetStays) {
  cluster_.CreateTopic("T", 1);
  const auto consumer = Start(Options(), Listener([](const ReceivedMessage& message) {
                                if (message.body == "throws") throw std::runtime_error("no");
                                return message.body == "good" ? ConcurrentResult::kSuccess
                                                              : ConcurrentResult::kReconsumeLater;
                              }));
  struct Case {
    const char* body;
    const char* result;
  };
  for (const Case& c : {Case{"good", "CR_SUCCESS"}, Case{"bad", "CR_LATER"},
                        Case{"throws", "CR_THROW_EXCEPTION"}}) {
    SCOPED_TRACE(c.body);
    StoredMessage message;
    message.topic = "T";
    message.body = c.body;
    Command request = Directed(remoting::kConsumeMessageDirectly, "g");
    request.ext.Set("brokerName", std::string(FakeCluster::kBroker));
    request.body = EncodeRecord(message);
    const auto answer = cluster_.AskClients(request).at(0);
    ASSERT_TRUE(answer.ok()) << answer.status();
    ASSERT_EQ(answer->code, 0) << answer->remark;
    EXPECT_EQ(remoting::Json::Parse(answer->body).value()["consumeResult"].AsString(), c.result);
  }
  EXPECT_EQ(cluster_.Offset("g", "T", 0).value_or(0), 0);
  Command broken = Directed(remoting::kConsumeMessageDirectly, "g");
  broken.body = "no record";
  EXPECT_EQ(cluster_.AskClients(broken).at(0)->code, 1);
}

}  // namespace
}  // namespace triad::client
