// The page of metrics over a real store: lag in messages and age (cases.md ADM-4), counters,
// bounds.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "broker/service/metrics_page.h"
#include "tests/unit/broker/one_peer.h"
#include "tests/unit/broker/state_support.h"

namespace triad::broker {
namespace {

using testing::HasSubstr;
using testing::Not;

// The wall clock of a peer, moved by the test. Everything else runs on the real one.
class MovedClock final : public Clock {
 public:
  TimePoint MonoNow() const override { return SystemClock().MonoNow(); }
  std::int64_t WallNowMs() const override { return SystemClock().WallNowMs() + shift_ms_; }
  void Pass(std::int64_t ms) { shift_ms_ += ms; }

 private:
  std::atomic<std::int64_t> shift_ms_{0};
};

class MetricsTest : public testing::Test {
 protected:
  MetricsTest()
      : peer_(nullptr, nullptr, clock_),
        reads_(store().node()),
        offsets_({}, clock_, timers_, store().appender(), store().state(), reads_),
        locks_(clock_, store().appender(), store().state(), reads_, offsets_),
        disk_(PosixFileSystem(), "/", 100, 0),
        long_polling_(timers_),
        consumers_(100, [](const GroupName&, const std::vector<Member>&) {}),
        producers_(100) {
    config_.broker_name = "b0";
    config_.self = PeerId("n0");
    disk_.Refresh();
    StateCommand command;
    command.put_topics = {TopicOf("T", 2), TopicOf("U", 1)};
    command.put_groups = {GroupOf("g"), GroupOf("h")};
    peer_.Apply(command);
    locks_.OnLeaderTerm(peer_.term());
  }
  ~MetricsTest() override { timers_.Stop(); }

  MessageStore& store() { return peer_.store(); }
  void Send(const std::string& topic, std::int32_t queue, int count) {
    std::vector<MessageDraft> drafts;
    for (int i = 0; i < count; ++i) drafts.push_back(Draft(topic, queue, "body"));
    peer_.Send(std::move(drafts));
  }
  void Commit(const std::string& group, const std::string& topic, std::int32_t queue,
              std::int64_t offset) {
    StateCommand command;
    command.offsets.push_back({Key(group, topic, queue), QueueOffset(offset), 0});
    peer_.Apply(command);
  }
  // So much wall clock time goes by, and the log knows it.
  void Pass(std::int64_t ms) {
    const std::int64_t then = store().node().LogTimeMs() + ms;
    clock_.Pass(ms);
    const TimePoint deadline = SystemClock().MonoNow() + kPatience;
    while (store().node().LogTimeMs() < then && SystemClock().MonoNow() < deadline) {
      std::this_thread::yield();
    }
    ASSERT_GE(store().node().LogTimeMs(), then);
  }
  void Subscribe(const std::string& group, const std::string& topic) {
    remoting::ConsumerData data;
    data.group_name = group;
    data.subscriptions.emplace_back().topic = topic;
    ASSERT_TRUE(
        consumers_
            .Heartbeat(connection_, {ClientId("c"), "JAVA", 479}, data, false, clock_.MonoNow())
            .ok());
  }

  MetricsSources Sources() {
    return {config_,
            clock_,
            store(),
            consumers_,
            producers_,
            locks_,
            offsets_,
            long_polling_,
            disk_,
            alarm_,
            counters_,
            stats_,
            [] { return std::size_t{7}; },
            [](std::string_view topic) { return topic == "TBW102"; }};
  }
  std::string Page(MetricsLimits limits = {}) {
    MetricsPage page(Sources(), limits);
    Outcome<Result<MetricsPage::Body>> outcome;
    page.Render(outcome.Callback());
    const auto body = outcome.Get();
    CHECK(body.ok()) << body.status();
    return *body.value();
  }
  // The value behind `sample`, a name with all its labels but the common ones.
  static std::optional<double> Value(const std::string& page, const std::string& name,
                                     const std::string& labels = "") {
    const std::string line = "\n" + name + R"({cluster="DefaultCluster",node_type="broker",)" +
                             R"(node_id="b0")" + (labels.empty() ? "" : "," + labels) + "} ";
    const std::size_t at = page.find(line);
    if (at == std::string::npos) return std::nullopt;
    return std::strtod(page.c_str() + at + line.size(), nullptr);
  }
  static std::string OfGroup(const std::string& group, const std::string& topic,
                             const std::string& is_retry = "false") {
    return "consumer_group=\"" + group + "\",topic=\"" + topic + "\",is_retry=\"" + is_retry +
           "\",is_system=\"false\"";
  }
  // The test itself takes time too, since `began`; a tick is how exactly the log knows it.
  void ExpectAge(const std::string& page, const std::string& labels, double ms,
                 TimePoint began) const {
    constexpr double kTicksMs = 100;
    const double age = Value(page, "rocketmq_consumer_lag_latency", labels).value_or(-1);
    const double real_ms =
        std::chrono::duration<double, std::milli>(clock_.MonoNow() - began).count();
    EXPECT_GE(age, ms - kTicksMs);
    EXPECT_LE(age, ms + real_ms + kTicksMs);
  }
  static std::string OfQueue(const std::string& group, const std::string& topic, int queue) {
    return "consumer_group=\"" + group + "\",topic=\"" + topic + "\",queue_id=\"" +
           std::to_string(queue) + "\"";
  }

  MovedClock clock_;
  BrokerConfig config_;
  TimerQueue timers_;
  OnePeerStore peer_;
  LeaderReads reads_;
  OffsetService offsets_;
  LockService locks_;
  DiskGuard disk_;
  LogAlarm alarm_;
  Counters counters_;
  BrokerStats stats_{"DefaultCluster", clock_.MonoNow()};
  LongPolling long_polling_;
  ConsumerRegistry consumers_;
  ProducerRegistry producers_;
  std::shared_ptr<RecordingConnection> connection_ =
      std::make_shared<RecordingConnection>(1, "10.0.0.9:50000");
};

TEST_F(MetricsTest, ADM_4_AConsumerThatStopsFor30SecondsLags3000MessagesAnd30Seconds) {
  Send("T", 0, 50);
  Send("T", 1, 50);
  Commit("g", "T", 0, 50);
  Commit("g", "T", 1, 50);
  std::string page = Page();
  EXPECT_EQ(Value(page, "rocketmq_consumer_lag_messages", OfGroup("g", "T")), 0);
  EXPECT_EQ(Value(page, "rocketmq_consumer_lag_latency", OfGroup("g", "T")), 0);
  // 100 a second for 30 seconds.
  const TimePoint began = clock_.MonoNow();
  for (int second = 0; second < 30; ++second) {
    Send("T", second % 2, 100);
    Pass(1000);
  }
  page = Page();
  EXPECT_EQ(Value(page, "rocketmq_consumer_lag_messages", OfGroup("g", "T")), 3000);
  ExpectAge(page, OfGroup("g", "T"), 30000, began);
  EXPECT_EQ(Value(page, "triad_queue_lag_messages", OfQueue("g", "T", 0)), 1500);
  EXPECT_EQ(Value(page, "triad_queue_lag_messages", OfQueue("g", "T", 1)), 1500);
  const double first = Value(page, "triad_queue_lag_seconds", OfQueue("g", "T", 0)).value_or(0);
  const double second = Value(page, "triad_queue_lag_seconds", OfQueue("g", "T", 1)).value_or(0);
  EXPECT_GE(first, 29.9);
  EXPECT_GE(first, second + 0.9) << "its oldest message came a second earlier";
  // Half of it is consumed.
  Commit("g", "T", 0, 1550);
  Commit("g", "T", 1, 50 + 700);
  page = Page();
  EXPECT_EQ(Value(page, "rocketmq_consumer_lag_messages", OfGroup("g", "T")), 800);
  EXPECT_EQ(Value(page, "triad_queue_lag_seconds", OfQueue("g", "T", 0)), 0);
  ExpectAge(page, OfGroup("g", "T"), 15000, began);
}

TEST_F(MetricsTest, LagIsOfGroupsWithAnOffsetAndOfTheTopicsTheySubscribeTo) {
  Send("T", 0, 3);
  Send("U", 0, 5);
  Commit("g", "T", 0, 1);
  Commit("g", "U", 0, 1);
  std::string page = Page();
  EXPECT_EQ(Value(page, "rocketmq_consumer_lag_messages", OfGroup("g", "T")), 2);
  EXPECT_EQ(Value(page, "rocketmq_consumer_lag_messages", OfGroup("g", "U")), 4) << "offline";
  EXPECT_THAT(page, Not(HasSubstr("consumer_group=\"h\""))) << "it never committed";
  EXPECT_FALSE(Value(page, "triad_queue_lag_messages", OfQueue("g", "T", 1)).has_value());
  Subscribe("g", "T");
  page = Page();
  EXPECT_EQ(Value(page, "rocketmq_consumer_lag_messages", OfGroup("g", "T")), 2);
  EXPECT_FALSE(Value(page, "rocketmq_consumer_lag_messages", OfGroup("g", "U")).has_value());
  EXPECT_EQ(Value(page, "rocketmq_consumer_connections",
                  R"(consumer_group="g",language="JAVA",version="V5_3_3",consume_mode="PUSH",)"
                  R"(protocol_type="remoting",is_system="false")"),
            1);
}

TEST_F(MetricsTest, AnOffsetBehindTheEndIsNoLag) {
  Send("T", 0, 3);
  Commit("g", "T", 0, 100);
  EXPECT_EQ(Value(Page(), "rocketmq_consumer_lag_messages", OfGroup("g", "T")), 0);
}

TEST_F(MetricsTest, RetryTopicsAreMarked) {
  StateCommand command;
  command.put_topics = {TopicOf("%RETRY%g", 1)};
  peer_.Apply(command);
  Send("%RETRY%g", 0, 2);
  Commit("g", "%RETRY%g", 0, 0);
  EXPECT_EQ(Value(Page(), "rocketmq_consumer_lag_messages", OfGroup("g", "%RETRY%g", "true")), 2);
}

TEST_F(MetricsTest, OneScrapeHoldsLatenciesDeadLettersAndLocks) {
  const TimePoint now = clock_.MonoNow();
  counters_.NotePut(now, std::chrono::milliseconds(3), 5);
  counters_.NoteGet(now, std::chrono::microseconds(150));
  counters_.put_sizes.Record(2000);
  counters_.split_topics = 3;
  stats_.NotePut(Topic("T"), 5, 500);
  stats_.NotePut(Topic("%DLQ%g"), 2, 200);
  stats_.NoteGet(Topic("T"), "g", 4, 400);
  Outcome<Result<std::vector<LockService::Held>>> held;
  locks_.Lock(GroupName("g"), ClientId("c"), {Queue("T", 0), Queue("T", 1)}, now + kPatience,
              held.Callback());
  ASSERT_TRUE(held.Get().ok());
  const std::string page = Page();
  EXPECT_EQ(Value(page, "triad_send_latency_seconds_bucket", "le=\"0.002\""), 0);
  EXPECT_EQ(Value(page, "triad_send_latency_seconds_bucket", "le=\"0.005\""), 5);
  EXPECT_EQ(Value(page, "triad_send_latency_seconds_bucket", "le=\"+Inf\""), 5);
  EXPECT_EQ(Value(page, "triad_send_latency_seconds_sum"), 0.015);
  EXPECT_EQ(Value(page, "triad_pull_latency_seconds_bucket", "le=\"0.0001\""), 0);
  EXPECT_EQ(Value(page, "triad_pull_latency_seconds_count"), 1);
  EXPECT_EQ(Value(page, "rocketmq_message_size_bucket", "le=\"1024\""), 0);
  EXPECT_EQ(Value(page, "rocketmq_message_size_bucket", "le=\"4096\""), 1);
  EXPECT_EQ(Value(page, "rocketmq_messages_in_total", R"(topic="T",is_system="false")"), 5);
  EXPECT_EQ(Value(page, "rocketmq_throughput_in_total", R"(topic="T",is_system="false")"), 500);
  const char* out = R"(topic="T",consumer_group="g",is_retry="false",is_system="false")";
  EXPECT_EQ(Value(page, "rocketmq_messages_out_total", out), 4);
  EXPECT_EQ(Value(page, "rocketmq_throughput_out_total", out), 400);
  EXPECT_EQ(
      Value(page, "rocketmq_send_to_dlq_messages_total", R"(consumer_group="g",is_system="false")"),
      2);
  EXPECT_EQ(Value(page, "triad_queue_locks"), 2);
  EXPECT_EQ(Value(page, "triad_split_strict_topics"), 3);
  EXPECT_EQ(Value(page, "triad_connections"), 7);
  EXPECT_EQ(Value(page, "triad_leader"), 1);
  EXPECT_EQ(Value(page, "triad_log_alarm"), 0);
  alarm_.Raise(1, "damaged");
  EXPECT_EQ(Value(Page(), "triad_log_alarm"), 1);
}

// What a follower applies is counted where it was led.
TEST_F(MetricsTest, CopiesOfClientsAndKnownKeysOfEveryTopicAreCounted) {
  counters_.retry_copies = 3;
  StateCommand command;
  command.put_topics = {TopicOf("Known", 1), TopicOf("Plain", 1)};
  command.put_topics[0].attributes["dedup"] = "uniqKey";
  peer_.Apply(command);
  for (const char* topic : {"Known", "Plain"}) {
    for (const char* key : {"a", "b"}) {
      MessageDraft draft = Draft(topic, 0, "body");
      SetProperty(&draft.properties, "UNIQ_KEY", key);
      peer_.Send({std::move(draft)});
    }
  }
  const std::string page = Page();
  EXPECT_EQ(Value(page, "triad_retry_copies_total"), 3);
  EXPECT_EQ(Value(page, "triad_dedup_keys", R"(topic="Known")"), 2);
  EXPECT_EQ(Value(page, "triad_dedup_keys_evicted_total", R"(topic="Known")"), 0);
  EXPECT_EQ(Value(page, "triad_dedup_keys", R"(topic="Plain")"), std::nullopt);
}

TEST_F(MetricsTest, WhatCameWhileAnotherPeerLedIsNotCountedHere) {
  stats_.NotePut(Topic("T"), 5, 500, /*leads=*/false);
  EXPECT_THAT(Page(), Not(HasSubstr("rocketmq_messages_in_total{")));
  stats_.NotePut(Topic("T"), 2, 20, /*leads=*/true);
  EXPECT_EQ(Value(Page(), "rocketmq_messages_in_total", R"(topic="T",is_system="false")"), 2);
}

TEST_F(MetricsTest, SystemTopicsAndGroupsAreMarked) {
  stats_.NoteGet(Topic("TBW102"), "g", 1, 1);
  stats_.NoteGet(Topic("T"), "CID_RMQ_SYS_TRANS", 1, 1);
  const std::string page = Page();
  EXPECT_EQ(Value(page, "rocketmq_messages_out_total",
                  R"(topic="TBW102",consumer_group="g",is_retry="false",is_system="true")"),
            1);
  EXPECT_EQ(
      Value(page, "rocketmq_messages_out_total",
            R"(topic="T",consumer_group="CID_RMQ_SYS_TRANS",is_retry="false",is_system="true")"),
      1);
}

// What a scraper's parser asks for: a family is one block, and no sample comes twice.
TEST_F(MetricsTest, EveryFamilyIsOneBlockAndEverySampleIsThereOnce) {
  Send("T", 0, 1);
  Commit("g", "T", 0, 0);
  stats_.NotePut(Topic("T"), 1, 1);
  Subscribe("g", "T");
  std::istringstream lines(Page());
  std::set<std::string> families, samples;
  std::string family, line;
  while (std::getline(lines, line)) {
    if (line.starts_with("# HELP ")) {
      family = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_TRUE(families.insert(family).second) << line;
    } else if (line.starts_with("# TYPE ")) {
      EXPECT_TRUE(line.starts_with("# TYPE " + family + " ")) << line;
    } else {
      EXPECT_TRUE(line.starts_with(family)) << line << " stands below " << family;
      EXPECT_TRUE(samples.insert(line.substr(0, line.rfind(' '))).second) << line;
    }
  }
  EXPECT_GT(families.size(), 30u);
}

TEST_F(MetricsTest, LagIsBoundedAndSaysWhatItLeavesOut) {
  Send("T", 0, 1);
  Send("T", 1, 1);
  Send("U", 0, 1);
  Commit("g", "T", 0, 0);
  Commit("g", "T", 1, 0);
  Commit("g", "U", 0, 0);
  MetricsLimits limits;
  limits.lag.queues_max = 2;
  limits.lag.ages_max = 1;
  const std::string page = Page(limits);
  EXPECT_EQ(Value(page, "triad_lag_queues_left_out"), 1);
  EXPECT_EQ(Value(page, "triad_lag_ages_left_out"), 1);
  EXPECT_EQ(Value(page, "rocketmq_consumer_lag_messages", OfGroup("g", "T")), 2);
  EXPECT_FALSE(Value(page, "rocketmq_consumer_lag_latency", OfGroup("g", "T")).has_value())
      << "the age of one queue is not that of the topic";
  EXPECT_TRUE(Value(page, "triad_queue_lag_seconds", OfQueue("g", "T", 0)).has_value());
  EXPECT_FALSE(Value(page, "triad_queue_lag_seconds", OfQueue("g", "T", 1)).has_value());
}

TEST_F(MetricsTest, ThePageIsBoundedAndSaysWhatItLeavesOut) {
  for (int i = 0; i < 200; ++i) stats_.NotePut(Topic("T" + std::to_string(i)), 1, 1);
  MetricsLimits limits;
  limits.lines_max = 100;
  const std::string page = Page(limits);
  EXPECT_GT(Value(page, "triad_metrics_lines_left_out").value_or(0), 300);
  EXPECT_LT(page.size(), 40000u);
}

// Those who ask while a page is made get that page.
TEST_F(MetricsTest, RequestsAtTheSameTimeShareOnePage) {
  MetricsPage page(Sources());
  // Both reader threads are busy until all have asked.
  std::promise<void> asked;
  const auto all_asked = asked.get_future().share();
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(store().node().PostReader([all_asked] { all_asked.wait(); }));
  }
  std::vector<Outcome<Result<MetricsPage::Body>>> outcomes(5);
  for (auto& outcome : outcomes) page.Render(outcome.Callback());
  asked.set_value();
  std::set<MetricsPage::Body> bodies;
  for (auto& outcome : outcomes) bodies.insert(outcome.Get().value());
  EXPECT_EQ(bodies.size(), 1u);
}

TEST_F(MetricsTest, ProducersAreCountedByKind) {
  for (std::uint64_t i = 1; i <= 3; ++i) {
    const auto connection = std::make_shared<RecordingConnection>(i, "10.0.0.9:1");
    ASSERT_TRUE(producers_
                    .Heartbeat(connection, {ClientId("c"), i < 3 ? "JAVA" : "C\"PP\xFF", 479},
                               "p" + std::to_string(i % 2), clock_.MonoNow())
                    .ok());
  }
  const std::string page = Page();
  const std::string tail = R"(,version="V5_3_3",protocol_type="remoting")";
  EXPECT_EQ(Value(page, "rocketmq_producer_connections", "language=\"JAVA\"" + tail), 2);
  EXPECT_EQ(Value(page, "rocketmq_producer_connections", R"(language="C\"PP?")" + tail), 1)
      << "a client may call itself anything";
}

}  // namespace
}  // namespace triad::broker
