// Consumption across failures: order, exclusive queues, exact attempts, offsets that survive a
// leader.

#include <signal.h>

#include <atomic>

#include "tests/e2e/cluster_fixture.h"

namespace triad {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Consuming : public ClusterTest {
 protected:
  std::unique_ptr<client::PushConsumer> Consumer(const std::string& group,
                                                 const std::string& instance,
                                                 const std::string& topic,
                                                 client::PushConsumerOptions options = {}) {
    options.client = ClientOf(instance);
    options.group = group;
    options.consume_from = client::ConsumeFrom::kFirstOffset;
    options.threads = 4;
    auto consumer = std::make_unique<client::PushConsumer>(options);
    EXPECT_TRUE(consumer->Subscribe(topic).ok());
    return consumer;
  }
};

// Who is inside a listener of which queue, and what each queue delivered.
struct QueueWatch {
  std::mutex mutex;
  std::map<client::MessageQueue, int> inside;
  int overlaps = 0;
  std::map<std::string, int> next;  // key -> next step
  int out_of_order = 0;
  std::set<std::string> distinct;
  int deliveries = 0;
  std::map<client::MessageQueue, std::uint64_t> token;
  int tokens_back = 0;

  void Enter(const client::MessageQueue& queue, std::uint64_t fence) {
    std::lock_guard hold(mutex);
    if (++inside[queue] > 1) ++overlaps;
    if (fence < token[queue]) ++tokens_back;
    token[queue] = std::max(token[queue], fence);
  }
  void Leave(const client::MessageQueue& queue) {
    std::lock_guard hold(mutex);
    --inside[queue];
  }
  void Deliver(const client::ReceivedMessage& message) {
    std::lock_guard hold(mutex);
    const std::size_t colon = message.body.find(':');
    const std::string key = message.body.substr(0, colon);
    const int step = std::stoi(message.body.substr(colon + 1));
    if (step > next[key]) ++out_of_order;
    next[key] = std::max(next[key], step + 1);
    distinct.insert(message.body);
    ++deliveries;
  }
  std::size_t distinct_count() {
    std::lock_guard hold(mutex);
    return distinct.size();
  }
};

TEST_F(Consuming, TwoOrderlyConsumersNeverHoldOneQueueAtOnceAlsoAcrossALeaderKill) {
  StartCluster();
  CreateTopic("Orderly", 8);
  QueueWatch watch;
  std::vector<std::unique_ptr<client::PushConsumer>> consumers;
  for (int i = 0; i < 2; ++i) {
    consumers.push_back(Consumer("g_orderly", "orderly" + std::to_string(i), "Orderly"));
    consumers.back()->SetListener(client::MessageListenerOrderly(
        [&watch](const auto& messages, client::OrderlyContext* context) {
          watch.Enter(context->queue, context->fence_token);
          for (const auto& message : messages) watch.Deliver(message);
          watch.Leave(context->queue);
          return client::OrderlyResult::kSuccess;
        }));
    ASSERT_TRUE(consumers.back()->Start().ok());
  }
  OrderedLoad load(ClientOf("producer"), "Orderly", 40);
  ASSERT_TRUE(load.Start().ok());
  load.Send(800);
  const std::size_t leader = Leader();
  ASSERT_TRUE(cluster_->Signal(leader, SIGKILL).ok());
  load.Send(800);
  load.Drain();
  ASSERT_EQ(load.acked_count(), 1600u);
  EXPECT_TRUE(Eventually([&] { return watch.distinct_count() == 1600; }, seconds(60)))
      << watch.distinct_count();
  for (auto& consumer : consumers) consumer->Shutdown();
  EXPECT_EQ(watch.overlaps, 0);
  EXPECT_EQ(watch.out_of_order, 0);
  EXPECT_EQ(watch.tokens_back, 0);
}

TEST_F(Consuming, AFailedMessageIsDeliveredOncePlusMaximumThenDeadLetteredOnce) {
  StartCluster({{"messageDelayLevel", "1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s"}});
  CreateTopic("Poison", 4);
  client::PushConsumerOptions options;
  options.max_reconsume_times = 2;
  auto consumer = Consumer("g_poison", "poison", "Poison", options);
  std::mutex mutex;
  std::map<std::string, std::vector<int>> attempts;
  consumer->SetListener(
      client::MessageListenerConcurrently([&](const auto& messages, client::ConcurrentContext*) {
        std::lock_guard hold(mutex);
        bool bad = false;
        for (const auto& message : messages) {
          attempts[message.body].push_back(message.reconsume_times);
          bad = bad || message.body.ends_with(":0");
        }
        return bad ? client::ConcurrentResult::kReconsumeLater : client::ConcurrentResult::kSuccess;
      }));
  ASSERT_TRUE(consumer->Start().ok());
  OrderedLoad load(ClientOf("producer"), "Poison", 5);
  ASSERT_TRUE(load.Start().ok());
  load.Send(50);
  load.Drain();
  // The leader goes while retries wait in the delay levels.
  const std::size_t leader = Leader();
  ASSERT_TRUE(Eventually(
      [&] {
        std::lock_guard hold(mutex);
        return attempts.size() == 50;
      },
      seconds(40)));
  ASSERT_TRUE(cluster_->Signal(leader, SIGKILL).ok());
  Leader();
  std::vector<client::ReceivedMessage> dead;
  EXPECT_TRUE(Eventually(
      [&] {
        Result<std::vector<client::MessageQueue>> queues = reader_->Queues("%DLQ%g_poison");
        if (!queues.ok()) return false;
        dead = ReadQueue((*queues)[0]);
        return dead.size() >= 5;
      },
      seconds(60)));
  consumer->Shutdown();
  EXPECT_EQ(dead.size(), 5u);
  std::set<std::string> bodies;
  for (const auto& message : dead) {
    bodies.insert(message.body);
    EXPECT_EQ(message.properties.count("ORIGIN_MESSAGE_ID"), 1u);
    EXPECT_EQ(message.properties.at("RETRY_TOPIC"), "Poison");
  }
  EXPECT_EQ(bodies.size(), 5u);
  for (const auto& [body, times] : attempts) {
    if (body.ends_with(":0")) {
      // A redelivery of the same copy around the kill is legal (at least once): every retry number
      // came, none beyond. There is one copy for each, below.
      EXPECT_EQ(std::set<int>(times.begin(), times.end()), (std::set<int>{0, 1, 2})) << body;
    } else {
      EXPECT_EQ(times[0], 0) << body;
    }
  }
  std::multiset<std::pair<std::string, int>> copies;
  for (const auto& [queue, messages] : ReadTopic("%RETRY%g_poison")) {
    for (const auto& message : messages) copies.emplace(message.body, message.reconsume_times);
  }
  std::multiset<std::pair<std::string, int>> expected;
  for (const std::string& body : bodies) {
    for (const int retry : {1, 2}) expected.emplace(body, retry);
  }
  EXPECT_EQ(copies, expected);
}

// Level 1 is one second. What was sent last comes last of its level: then all others have had their
// turn, and a second one too.
TEST_F(Consuming, DLY_1_EachDelayedMessageIsDeliveredOnceAcrossLeaderKills) {
  StartCluster();
  CreateTopic("Delayed", 4);
  client::ProducerOptions options;
  options.client = ClientOf("delayed");
  options.retries = 0;  // of one attempt never two
  client::Producer producer(options);
  ASSERT_TRUE(producer.Start().ok());
  std::set<std::string> acked;
  int attempts = 0;
  const auto send = [&](const std::string& body) {
    client::Message message;
    message.topic = "Delayed";
    message.body = body;
    message.delay_level = 1;
    ++attempts;
    const bool ok = producer.Send(std::move(message)).ok();
    if (ok) acked.insert(body);
    return ok;
  };
  const auto delivered = [&] {
    std::multiset<std::string> bodies;
    for (const auto& [queue, messages] : ReadTopic("Delayed")) {
      for (const auto& message : messages) bodies.insert(message.body);
    }
    return bodies;
  };
  int kills = 0;
  for (; kills < 4; ++kills) {
    const std::size_t leader = Leader();
    const std::size_t before = delivered().size();
    for (int i = 0; i < 300; ++i) send(std::to_string(kills) + ":" + std::to_string(i));
    // In the middle of what comes due.
    ASSERT_TRUE(Eventually([&] { return delivered().size() > before; }, seconds(30)));
    ASSERT_TRUE(cluster_->Signal(leader, SIGKILL).ok());
    ASSERT_TRUE(Eventually(
        [&] { return send(std::to_string(kills) + ":" + std::to_string(attempts)); }, seconds(30)));
    ASSERT_TRUE(cluster_->StartBroker(leader).ok());
    ASSERT_TRUE(cluster_->WaitForMembers(3, seconds(30)).ok());
  }
  ASSERT_TRUE(send("last"));
  std::multiset<std::string> all;
  ASSERT_TRUE(Eventually([&] { return delivered().contains("last"); }, seconds(60)));
  all = delivered();  // queues are read one by one: what came in front of it is there now
  EXPECT_EQ(kills, 4);
  EXPECT_GT(acked.size(), 1000u);
  for (const std::string& body : acked) EXPECT_EQ(all.count(body), 1u) << body;
  for (const std::string& body : all) EXPECT_EQ(all.count(body), 1u) << body;
}

TEST_F(Consuming, OFS_1_CommittedOffsetsSurviveALeaderKill) {
  StartCluster();
  CreateTopic("Offsets", 4);
  OrderedLoad load(ClientOf("producer"), "Offsets", 8);
  ASSERT_TRUE(load.Start().ok());
  load.Send(400);
  load.Drain();
  auto consumer = Consumer("g_offsets", "offsets", "Offsets");
  std::atomic<int> deliveries{0};
  consumer->SetListener(
      client::MessageListenerConcurrently([&](const auto& messages, client::ConcurrentContext*) {
        deliveries += static_cast<int>(messages.size());
        return client::ConcurrentResult::kSuccess;
      }));
  ASSERT_TRUE(consumer->Start().ok());
  ASSERT_TRUE(Eventually([&] { return deliveries == 400; }, seconds(40))) << deliveries;
  consumer->Shutdown();  // commits, acknowledged
  ASSERT_TRUE(cluster_->Signal(Leader(), SIGKILL).ok());
  Leader();
  Result<std::map<client::MessageQueue, client::ConsumeProgress>> progress =
      admin_->ConsumerProgress("g_offsets", "Offsets");
  ASSERT_TRUE(progress.ok()) << progress.status();
  ASSERT_EQ(progress->size(), 4u);
  for (const auto& [queue, at] : *progress)
    EXPECT_EQ(at.consumer_offset, at.broker_offset) << queue.queue_id;

  auto again = Consumer("g_offsets", "offsets2", "Offsets");
  std::atomic<int> repeated{0};
  again->SetListener(
      client::MessageListenerConcurrently([&](const auto& messages, client::ConcurrentContext*) {
        repeated += static_cast<int>(messages.size());
        return client::ConcurrentResult::kSuccess;
      }));
  ASSERT_TRUE(again->Start().ok());
  load.Send(8);
  load.Drain();
  EXPECT_TRUE(Eventually([&] { return repeated >= 8; }, seconds(40)));
  again->Shutdown();
  EXPECT_EQ(repeated, 8);
}

}  // namespace
}  // namespace triad
