// The producer against a small in-memory cluster over loopback sockets.

#include "triad/producer.h"

#include <gtest/gtest.h>

#include <set>

#include "client/compression.h"
#include "client/message_codec.h"
#include "client/sender.h"
#include "common/clock.h"
#include "remoting/codes.h"
#include "tests/unit/client/fake_cluster.h"

namespace triad::client {
namespace {

using remoting::Command;
using std::chrono::milliseconds;

Message Make(const std::string& body, const std::string& topic = "T") {
  Message message;
  message.topic = topic;
  message.body = body;
  return message;
}

bool IsSend(const Command& request) {
  return request.code == remoting::kSendMessageV2;
}

class ProducerTest : public testing::Test {
 protected:
  void StartProducer(ProducerOptions options = {}) {
    options.client = cluster_.client_options();
    producer_ = std::make_unique<Producer>(options);
    const Status started = producer_->Start();
    ASSERT_TRUE(started.ok()) << started;
  }

  std::vector<std::string> Bodies(const std::string& topic = "T") {
    std::vector<std::string> bodies;
    for (const StoredMessage& message : cluster_.Stored(topic)) bodies.push_back(message.body);
    return bodies;
  }

  FakeCluster cluster_;
  std::unique_ptr<Producer> producer_;
};

TEST_F(ProducerTest, SendsEverythingThatAMessageHas) {
  cluster_.CreateTopic("T", 1);
  StartProducer();
  Message message = Make("hello");
  message.tag = "TagA";
  message.keys = {"k1", "k2"};
  message.flag = 7;
  message.delay_level = 3;
  message.properties["color"] = "red";
  const auto sent = producer_->Send(message);
  ASSERT_TRUE(sent.ok()) << sent.status();
  const std::vector<StoredMessage> stored = cluster_.Stored("T");
  ASSERT_EQ(stored.size(), 1u);
  EXPECT_EQ(stored[0].body, "hello");
  EXPECT_EQ(stored[0].flag, 7);
  const Properties properties = ParseProperties(stored[0].properties);
  EXPECT_EQ(properties.at("TAGS"), "TagA");
  EXPECT_EQ(properties.at("KEYS"), "k1 k2");
  EXPECT_EQ(properties.at("DELAY"), "3");
  EXPECT_EQ(properties.at("color"), "red");
  EXPECT_EQ(properties.at("UNIQ_KEY"), sent->message_id);
  EXPECT_EQ(sent->queue, (MessageQueue{"T", FakeCluster::kBroker, 0}));
  EXPECT_EQ(sent->queue_offset, 0);
  EXPECT_EQ(sent->offset_message_id.size(), 32u);
}

TEST_F(ProducerTest, SpreadsMessagesOverTheQueues) {
  cluster_.CreateTopic("T", 4);
  StartProducer();
  std::set<int> queues;
  for (int i = 0; i < 8; ++i) queues.insert(producer_->Send(Make("x")).value().queue.queue_id);
  EXPECT_EQ(queues.size(), 4u);
}

TEST_F(ProducerTest, SendsToTheQueueThatWasChosen) {
  cluster_.CreateTopic("T", 4);
  StartProducer();
  const auto queues = producer_->Queues("T");
  ASSERT_TRUE(queues.ok()) << queues.status();
  ASSERT_EQ(queues->size(), 4u);
  EXPECT_EQ(producer_->Send(Make("a"), queues->at(2)).value().queue.queue_id, 2);
  const auto picked =
      producer_->Send(Make("b"), [](const std::vector<MessageQueue>& all, const Message& message) {
        return message.body == "b" ? all.size() - 1 : 0;
      });
  ASSERT_TRUE(picked.ok()) << picked.status();
  EXPECT_EQ(picked->queue.queue_id, 3);
  const auto bad = producer_->Send(
      Make("c"), [](const std::vector<MessageQueue>& all, const Message&) { return all.size(); });
  EXPECT_EQ(bad.status().code(), StatusCode::kInvalidArgument);
}

TEST_F(ProducerTest, AFirstSendCreatesTheTopicFromTheTemplate) {
  StartProducer();
  const auto sent = producer_->Send(Make("first", "New"));
  ASSERT_TRUE(sent.ok()) << sent.status();
  EXPECT_LT(sent->queue.queue_id, 4);
  EXPECT_EQ(Bodies("New"), std::vector<std::string>{"first"});
}

TEST_F(ProducerTest, ABatchIsStoredAsSeparateMessagesInOneQueue) {
  cluster_.CreateTopic("T", 4);
  StartProducer();
  Message tagged = Make("b");
  tagged.tag = "x";
  const auto sent = producer_->SendBatch({Make("a"), tagged, Make("c")});
  ASSERT_TRUE(sent.ok()) << sent.status();
  EXPECT_EQ(Bodies(), (std::vector<std::string>{"a", "b", "c"}));
  const std::vector<StoredMessage> stored = cluster_.Stored("T");
  EXPECT_EQ(ParseProperties(stored[1].properties).at("TAGS"), "x");
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(ParseProperties(stored[i].properties).at("UNIQ_KEY"), sent->at(i).message_id);
    EXPECT_EQ(sent->at(i).queue_offset, static_cast<std::int64_t>(i));
    EXPECT_EQ(sent->at(i).queue.queue_id, stored[i].queue_id);
    EXPECT_EQ(sent->at(i).offset_message_id.size(), 32u);
  }
}

TEST_F(ProducerTest, ABatchOfTwoTopicsOrWithADelayIsRefused) {
  StartProducer();
  EXPECT_EQ(producer_->SendBatch({Make("a"), Make("b", "U")}).status().code(),
            StatusCode::kInvalidArgument);
  Message delayed = Make("a");
  delayed.delay_level = 1;
  EXPECT_EQ(producer_->SendBatch({delayed}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(producer_->SendBatch({}).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(ProducerTest, CompressesLargeBodies) {
  cluster_.CreateTopic("T", 1);
  StartProducer();
  const std::string large(4096, 'a');
  ASSERT_TRUE(producer_->Send(Make(large)).ok());
  ASSERT_TRUE(producer_->Send(Make(large.substr(1))).ok());
  const std::vector<StoredMessage> stored = cluster_.Stored("T");
  EXPECT_EQ(stored[0].sys_flag & kCompressed, kCompressed);
  EXPECT_LT(stored[0].body.size(), 100u);
  EXPECT_EQ(Unpack(stored[0].sys_flag, stored[0].body).value(), large);
  EXPECT_EQ(stored[1].sys_flag & kCompressed, 0);
  EXPECT_EQ(stored[1].body.size(), 4095u);
}

TEST_F(ProducerTest, AnAsyncSendAnswersThroughItsCallback) {
  cluster_.CreateTopic("T", 2);
  StartProducer();
  int good = 0;
  for (int i = 0; i < 100; ++i) {
    producer_->SendAsync(Make("x"), [&](const Result<SendResult>& result) {
      cluster_.Note([&] { good += result.ok() ? 1 : 0; });
    });
  }
  EXPECT_TRUE(cluster_.Wait([&] { return good == 100; }));
  EXPECT_EQ(cluster_.Stored("T").size(), 100u);
}

TEST_F(ProducerTest, RefusesMoreAsyncSendsThanMayWait) {
  cluster_.CreateTopic("T", 1);
  ProducerOptions options;
  options.max_inflight = 2;
  StartProducer(options);
  bool hold = true;
  const auto hook = cluster_.SetHook([&](int, const Command& request, FakeCluster::Script* script) {
    if (hold && IsSend(request)) *script = FakeCluster::Script::kDrop;
    return std::optional<Command>();
  });
  std::vector<StatusCode> codes;
  const auto note = [&](const Result<SendResult>& result) {
    cluster_.Note([&] { codes.push_back(result.status().code()); });
  };
  producer_->SendAsync(Make("1"), note);
  producer_->SendOrderedAsync(Make("2"), "k", note);
  producer_->SendAsync(Make("3"), note);
  ASSERT_EQ(codes.size(), 1u);
  EXPECT_EQ(codes[0], StatusCode::kBusy);
  cluster_.Note([&] { hold = false; });
  EXPECT_TRUE(cluster_.Wait([&] { return codes.size() == 3; }));  // the next attempts succeed
}

TEST_F(ProducerTest, AOnewaySendArrives) {
  cluster_.CreateTopic("T", 1);
  StartProducer();
  ASSERT_TRUE(producer_->SendOneway(Make("x")).ok());
  EXPECT_TRUE(cluster_.Wait([&] { return Bodies() == std::vector<std::string>{"x"}; }));
}

TEST_F(ProducerTest, ARetryCodeIsTriedAgainAndAFinalOneIsNot) {
  struct Case {
    std::int32_t code;
    SendVerdict verdict;
  };
  const Case cases[] = {
      {0, SendVerdict::kStored},         {1, SendVerdict::kRetry},
      {2, SendVerdict::kRetry},          {14, SendVerdict::kRetry},
      {1500, SendVerdict::kRetry},       {204, SendVerdict::kRetry},
      {205, SendVerdict::kRetry},        {16, SendVerdict::kRetryFewTimes},
      {17, SendVerdict::kRetryFewTimes}, {13, SendVerdict::kFailed},
      {29, SendVerdict::kFailed},        {3, SendVerdict::kFailed},
      {10, SendVerdict::kFailed},
  };
  for (const Case& c : cases) EXPECT_EQ(JudgeSend(c.code), c.verdict) << c.code;
}

TEST_F(ProducerTest, TriesAnotherPeerWhenTheLeaderSaysNotNow) {
  cluster_.CreateTopic("T", 1);
  StartProducer();
  std::vector<int> asked;
  const auto hook = cluster_.SetHook([&](int peer, const Command& request, FakeCluster::Script*) {
    std::optional<Command> answer;
    if (!IsSend(request)) return answer;
    asked.push_back(peer);
    if (peer == 0) answer = Command::ResponseTo(request, 14, "no leader");
    return answer;
  });
  ASSERT_TRUE(producer_->Send(Make("x")).ok());
  EXPECT_EQ(asked, (std::vector<int>{0, 1}));
  EXPECT_EQ(Bodies().size(), 1u);
}

TEST_F(ProducerTest, GoesOnThroughAnotherPeerWhenTheLeaderDies) {
  cluster_.CreateTopic("T", 4);
  StartProducer();
  ASSERT_TRUE(producer_->Send(Make("before")).ok());
  cluster_.StopPeer(0);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) {
    const auto sent = producer_->Send(Make("after"));
    ASSERT_TRUE(sent.ok()) << sent.status();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
  EXPECT_EQ(Bodies().size(), 21u);
}

TEST_F(ProducerTest, LearnsOfANewLeaderAtOnceAfterAFailure) {
  cluster_.CreateTopic("T", 1);
  StartProducer();
  ASSERT_TRUE(producer_->Send(Make("before")).ok());
  std::set<int> asked;
  const auto hook = cluster_.SetHook([&](int peer, const Command& request, FakeCluster::Script*) {
    if (IsSend(request)) asked.insert(peer);
    return std::optional<Command>();
  });
  cluster_.SetLeader(2);
  cluster_.StopPeer(0);
  // Peer 1 forwards until the route is there; from then on the new leader is asked.
  bool new_leader_asked = false;
  const TimePoint deadline = MonoNow() + std::chrono::seconds(20);
  while (!new_leader_asked && MonoNow() < deadline) {
    const auto sent = producer_->Send(Make("after"));
    ASSERT_TRUE(sent.ok()) << sent.status();
    cluster_.Note([&] { new_leader_asked = asked.contains(2); });
  }
  EXPECT_TRUE(new_leader_asked);
}

TEST_F(ProducerTest, AFinalAnswerIsAnErrorThatSaysWhy) {
  cluster_.CreateTopic("T", 1);
  StartProducer();
  const auto hook = cluster_.SetHook([&](int, const Command& request, FakeCluster::Script*) {
    std::optional<Command> answer;
    if (IsSend(request)) answer = Command::ResponseTo(request, 13, "the message is illegal");
    return answer;
  });
  const auto sent = producer_->Send(Make("x"));
  EXPECT_EQ(sent.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(sent.status().message().find("the message is illegal"), std::string_view::npos);
  EXPECT_EQ(cluster_.Count(remoting::kSendMessageV2), 1);
}

TEST_F(ProducerTest, WithoutAnAnswerTheOutcomeIsUnknown) {
  cluster_.CreateTopic("T", 1);
  ProducerOptions options;
  options.send_timeout = milliseconds(150);
  StartProducer(options);
  const auto hook = cluster_.SetHook([&](int, const Command& request, FakeCluster::Script* script) {
    if (IsSend(request)) *script = FakeCluster::Script::kDrop;
    return std::optional<Command>();
  });
  EXPECT_EQ(producer_->Send(Make("x")).status().code(), StatusCode::kTimedOut);
}

TEST_F(ProducerTest, WhenNobodyListensTheSendCertainlyFailed) {
  cluster_.CreateTopic("T", 1);
  ProducerOptions options;
  options.send_timeout = milliseconds(300);
  StartProducer(options);
  for (int peer = 0; peer < 3; ++peer) cluster_.StopPeer(peer);
  const auto sent = producer_->Send(Make("x"));
  EXPECT_EQ(sent.status().code(), StatusCode::kUnavailable) << sent.status();
}

TEST_F(ProducerTest, MessagesOfOneKeyStayInOrderThroughFailures) {
  cluster_.CreateTopic("T", 8);
  StartProducer();
  int sends = 0;
  const auto hook = cluster_.SetHook([&](int, const Command& request, FakeCluster::Script*) {
    std::optional<Command> answer;
    // Every third attempt fails before it is stored.
    if (IsSend(request) && ++sends % 3 == 0) answer = Command::ResponseTo(request, 14, "not now");
    return answer;
  });
  int good = 0;
  constexpr int kKeys = 5;
  constexpr int kEach = 12;
  for (int i = 0; i < kEach; ++i) {
    for (int key = 0; key < kKeys; ++key) {
      producer_->SendOrderedAsync(Make(std::to_string(key) + ":" + std::to_string(i)),
                                  "key" + std::to_string(key),
                                  [&](const Result<SendResult>& result) {
                                    cluster_.Note([&] { good += result.ok() ? 1 : 0; });
                                  });
    }
  }
  ASSERT_TRUE(cluster_.Wait([&] { return good == kKeys * kEach; }));
  std::map<int, std::vector<int>> seen;
  std::map<int, std::set<int>> queues;
  for (const StoredMessage& message : cluster_.Stored("T")) {
    const std::size_t colon = message.body.find(':');
    const int key = std::stoi(message.body.substr(0, colon));
    seen[key].push_back(std::stoi(message.body.substr(colon + 1)));
    queues[key].insert(message.queue_id);
    EXPECT_EQ(ParseProperties(message.properties).at("__SHARDINGKEY"), "key" + std::to_string(key));
  }
  for (int key = 0; key < kKeys; ++key) {
    EXPECT_EQ(queues[key].size(), 1u);
    ASSERT_EQ(seen[key].size(), static_cast<std::size_t>(kEach));
    EXPECT_TRUE(std::is_sorted(seen[key].begin(), seen[key].end()));
  }
}

TEST_F(ProducerTest, ALaterMessageOfAKeyIsNotSentBeforeTheEarlierOnesFateIsKnown) {
  cluster_.CreateTopic("T", 1);
  StartProducer();
  bool held = true;
  std::vector<std::string> arrived;
  const auto hook = cluster_.SetHook([&](int, const Command& request, FakeCluster::Script* script) {
    if (!IsSend(request)) return std::optional<Command>();
    arrived.push_back(request.body);
    if (request.body == "first" && held) *script = FakeCluster::Script::kDrop;
    return std::optional<Command>();
  });
  std::vector<std::string> done;
  for (const char* body : {"first", "second"}) {
    producer_->SendOrderedAsync(Make(body), "k", [&, body](const Result<SendResult>& result) {
      cluster_.Note([&] { done.push_back(body + std::string(result.ok() ? " ok" : " failed")); });
    });
  }
  ASSERT_TRUE(cluster_.Wait([&] { return arrived.size() == 1; }));
  ASSERT_TRUE(producer_->Send(Make("other")).ok());  // others go on
  EXPECT_EQ(std::count(arrived.begin(), arrived.end(), "second"), 0);
  cluster_.Note([&] { held = false; });
  ASSERT_TRUE(cluster_.Wait([&] { return done.size() == 2; }));
  EXPECT_EQ(done, (std::vector<std::string>{"first ok", "second ok"}));
}

TEST_F(ProducerTest, AFailedMessageCancelsThoseBehindItOfTheSameKey) {
  cluster_.CreateTopic("T", 4);
  StartProducer();
  const auto hook = cluster_.SetHook([&](int, const Command& request, FakeCluster::Script*) {
    std::optional<Command> answer;
    if (IsSend(request) && request.body == "bad") answer = Command::ResponseTo(request, 13, "no");
    return answer;
  });
  std::vector<StatusCode> codes;
  const auto note = [&](const Result<SendResult>& result) {
    cluster_.Note([&] { codes.push_back(result.status().code()); });
  };
  cluster_.Note([&] {  // nothing is answered before all three are queued
    producer_->SendOrderedAsync(Make("bad"), "k", note);
    producer_->SendOrderedAsync(Make("behind"), "k", note);
    producer_->SendOrderedAsync(Make("behind too"), "k", note);
  });
  ASSERT_TRUE(cluster_.Wait([&] { return codes.size() == 3; }));
  EXPECT_EQ(codes, (std::vector<StatusCode>{StatusCode::kInvalidArgument, StatusCode::kCancelled,
                                            StatusCode::kCancelled}));
  EXPECT_TRUE(Bodies().empty());
  EXPECT_TRUE(producer_->SendOrdered(Make("again"), "k").ok()) << "the key begins anew";
}

TEST_F(ProducerTest, SaysWhatIsMissingBeforeItStarts) {
  Producer idle{ProducerOptions()};
  EXPECT_EQ(idle.Start().code(), StatusCode::kInvalidArgument);  // no name server
  EXPECT_EQ(idle.Send(Make("x")).status().code(), StatusCode::kUnavailable);
  ProducerOptions nobody;
  nobody.client.namesrv_address = "127.0.0.1:1";
  Producer unreachable(nobody);
  const Status status = unreachable.Start();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("127.0.0.1:1"), std::string_view::npos) << status;
}

TEST_F(ProducerTest, ATopicThatCannotBeIsNotFound) {
  FakeCluster bare;  // with a template topic that may not be written
  bare.CreateTopic("TBW102", 8, 1);
  ProducerOptions options;
  options.client = bare.client_options();
  Producer producer(options);
  ASSERT_TRUE(producer.Start().ok());
  EXPECT_EQ(producer.Send(Make("x", "Nowhere")).status().code(), StatusCode::kPermissionDenied);
}

TEST_F(ProducerTest, TellsTheLeaderThatItIsThere) {
  cluster_.CreateTopic("T", 1);
  StartProducer();
  ASSERT_TRUE(producer_->Send(Make("x")).ok());
  EXPECT_TRUE(cluster_.Wait([&] { return cluster_.Count(remoting::kHeartBeat) >= 1; }));
  // Answers of one connection come in order: behind this one the heartbeat's is here.
  ASSERT_TRUE(producer_->Send(Make("y")).ok());
  producer_->Shutdown();
  EXPECT_EQ(cluster_.Count(remoting::kUnregisterClient), 1);
}

TEST_F(ProducerTest, ShutdownCancelsWhatIsUnderWay) {
  cluster_.CreateTopic("T", 1);
  StartProducer();
  const auto hook = cluster_.SetHook([&](int, const Command& request, FakeCluster::Script*) {
    std::optional<Command> answer;
    if (IsSend(request)) answer = Command::ResponseTo(request, 14, "not now");
    return answer;
  });
  std::vector<StatusCode> codes;
  producer_->SendOrderedAsync(Make("x"), "k", [&](const Result<SendResult>& result) {
    cluster_.Note([&] { codes.push_back(result.status().code()); });
  });
  ASSERT_TRUE(cluster_.Wait([&] { return cluster_.Count(remoting::kSendMessageV2) > 0; }));
  producer_->Shutdown();
  EXPECT_EQ(codes, std::vector<StatusCode>{StatusCode::kCancelled});
}

}  // namespace
}  // namespace triad::client
