// Metrics as a monitoring system gets them: over HTTP, from every peer (cases.md ADM-4).

#include <gmock/gmock.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "tests/e2e/cluster_fixture.h"
#include "tests/http_exchange.h"

namespace triad {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

constexpr std::int64_t kSlackMs = 500;  // log time is a tick old, and the machine is busy

class Metrics : public ClusterTest {
 protected:
  // The page of a peer; empty when it does not answer.
  std::string Scrape(std::size_t i) {
    const LocalBroker& broker = cluster_->brokers()[i];
    HttpExchange exchange(broker.metrics_port, broker.host.address);
    if (!exchange.connected()) return "";
    const auto response = exchange.Get("/metrics");
    if (!response || response->status != 200) return "";
    EXPECT_THAT(response->head, HasSubstr("Content-Type: text/plain; version=0.0.4"));
    return response->body;
  }
  // The sum of the samples of `name` whose labels hold all of `labels`; nullopt: there is none.
  static std::optional<double> Sum(const std::string& page, const std::string& name,
                                   const std::vector<std::string>& labels = {}) {
    std::optional<double> sum;
    for (std::size_t at = page.find("\n" + name + "{"); at != std::string::npos;
         at = page.find("\n" + name + "{", at + 1)) {
      const std::string line = page.substr(at + 1, page.find('\n', at + 1) - at - 1);
      bool is_meant = true;
      for (const std::string& label : labels) {
        is_meant = is_meant && line.find(label) != std::string::npos;
      }
      if (is_meant) {
        sum = sum.value_or(0) + std::strtod(line.c_str() + line.rfind(' '), nullptr);
      }
    }
    return sum;
  }
  void Send(client::Producer* producer, int count) {
    for (int i = 0; i < count; ++i) {
      client::Message message;
      message.topic = "T";
      message.body = "body " + std::to_string(i);
      const auto sent = producer->Send(message);
      ASSERT_TRUE(sent.ok()) << sent.status();
    }
  }
  // A member of "g" consumes everything, and stops.
  void ConsumeAll() {
    client::PushConsumerOptions options;
    options.client = ClientOf("g");
    options.group = "g";
    options.consume_from = client::ConsumeFrom::kFirstOffset;
    options.offset_commit_interval = milliseconds(100);
    client::PushConsumer consumer(options);
    ASSERT_TRUE(consumer.Subscribe("T").ok());
    consumer.SetListener(
        [](const auto&, client::ConcurrentContext*) { return client::ConcurrentResult::kSuccess; });
    ASSERT_TRUE(consumer.Start().ok());
    ASSERT_TRUE(Eventually(
        [&] {
          const auto progress = admin_->ConsumerProgress("g");
          if (!progress.ok()) return false;
          std::size_t done = 0;
          for (const auto& [queue, where] : *progress) {
            if (queue.topic != "T") continue;
            if (where.broker_offset == 0 || where.consumer_offset != where.broker_offset) {
              return false;
            }
            ++done;
          }
          return done == 2;
        },
        seconds(60)));
  }
};

TEST_F(Metrics, ADM_4_AStoppedConsumersLagIsScrapedInMessagesAndMilliseconds) {
  // Who leads stays so on a busy machine.
  StartCluster({{"metricsExporterType", "PROM"}, {"dLegerElectionTimeoutMs", "2000"}});
  CreateTopic("T", 2);
  client::ProducerOptions options;
  options.client = ClientOf("producer");
  client::Producer producer(options);
  ASSERT_TRUE(producer.Start().ok());
  Send(&producer, 40);
  ConsumeAll();
  const std::vector<std::string> group = {"consumer_group=\"g\"", "topic=\"T\""};
  std::size_t leader = Leader();
  EXPECT_EQ(Sum(Scrape(leader), "rocketmq_consumer_lag_messages", group), 0);

  // As mqadmin tells it: whole records, at the peer that led.
  constexpr int kRecordMin = 91;  // bytes of one without topic, body and properties
  for (std::size_t i = 0; i < 3; ++i) {
    const auto info = admin_->RuntimeInfo(cluster_->brokers()[i].client_address);
    ASSERT_TRUE(info.ok()) << info.status();
    const int stored = std::atoi(info->at("putMessageTimesTotal").c_str());
    const int bytes = std::atoi(info->at("putMessageSizeTotal").c_str());
    EXPECT_GE(stored, i == leader ? 40 : 0) << i;
    EXPECT_GE(bytes, stored * kRecordMin) << i;
    if (i != leader) {
      EXPECT_EQ(bytes, 0) << i;
    }
  }

  const std::int64_t before_first = WallNowMs();
  Send(&producer, 1);
  const std::int64_t behind_first = WallNowMs();
  Send(&producer, 299);
  std::string page;
  std::int64_t asked = 0;
  ASSERT_TRUE(Eventually(
      [&] {
        asked = WallNowMs();
        page = Scrape(leader);
        return Sum(page, "rocketmq_consumer_lag_latency", group).value_or(0) >= 2000;
      },
      seconds(60)));
  EXPECT_EQ(Sum(page, "rocketmq_consumer_lag_messages", group), 300);
  EXPECT_EQ(Sum(page, "triad_queue_lag_messages", group), 300);
  const auto age =
      static_cast<std::int64_t>(Sum(page, "rocketmq_consumer_lag_latency", group).value_or(0));
  EXPECT_GE(age, asked - behind_first - kSlackMs);
  EXPECT_LE(age, WallNowMs() - before_first + kSlackMs);
  // Everything else of the case, in the same scrape.
  EXPECT_GE(Sum(page, "triad_send_latency_seconds_count"), 340);
  EXPECT_GE(Sum(page, "triad_pull_latency_seconds_count"), 1);
  EXPECT_GE(Sum(page, "rocketmq_messages_in_total", {"topic=\"T\""}), 340);
  EXPECT_GE(Sum(page, "rocketmq_messages_out_total", group), 40);
  EXPECT_EQ(Sum(page, "triad_queue_locks"), 0);
  EXPECT_EQ(Sum(page, "triad_leader"), 1);
  EXPECT_EQ(Sum(page, "triad_peer_connected"), 2);

  for (std::size_t i = 0; i < 3; ++i) {
    if (i == leader) continue;
    const std::string follower = Scrape(i);
    EXPECT_EQ(Sum(follower, "triad_leader"), 0);
    EXPECT_GT(Sum(follower, "triad_applied_index"), 0);
    EXPECT_THAT(follower, Not(HasSubstr("\nrocketmq_consumer_lag_messages{")));
    EXPECT_THAT(follower, Not(HasSubstr("\nrocketmq_messages_in_total{")));
  }

  // The next leader tells the same.
  ASSERT_TRUE(cluster_->Signal(leader, SIGKILL).ok());
  leader = Leader();
  ASSERT_TRUE(Eventually(
      [&] {
        page = Scrape(leader);
        return Sum(page, "rocketmq_consumer_lag_messages", group) == 300;
      },
      seconds(60)));
  EXPECT_GE(Sum(page, "rocketmq_consumer_lag_latency", group), static_cast<double>(age));
}

}  // namespace
}  // namespace triad
