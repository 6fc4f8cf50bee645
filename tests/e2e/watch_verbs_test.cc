// mqadmin's verbs that go on until they are stopped, and what else it learned from the original:
// exportMetrics, sending again, light queues, tracks, character sets.

#include <gmock/gmock.h>
#include <signal.h>

#include <fstream>
#include <future>
#include <iterator>

#include "remoting/json.h"
#include "tests/e2e/cluster_fixture.h"
#include "tests/e2e/run_admin.h"

namespace triad {
namespace {

using remoting::Json;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;

class WatchVerbs : public ClusterTest {
 protected:
  void SetUp() override {
    peers_ = 1;
    StartCluster();
  }
  AdminRun Run(const std::vector<std::string>& words) {
    return RunAdmin(cluster_->namesrv_address(), words);
  }
  Json RunJson(std::vector<std::string> words) {
    words.insert(words.end(), {"--output", "json"});
    const AdminRun run = Run(words);
    EXPECT_EQ(run.exit_code, 0) << run.out;
    const auto json = Json::Parse(run.out);
    EXPECT_TRUE(json.ok()) << run.out;
    return json.ok() ? *json : Json();
  }
  // `count` messages in queue 0 of a topic of one queue; the last one.
  client::SendResult Send(const std::string& topic, int count) {
    CreateTopic(topic, 1);
    client::ProducerOptions options;
    options.client = ClientOf("producer");
    client::Producer producer(options);
    EXPECT_TRUE(producer.Start().ok());
    client::SendResult last;
    for (int i = 0; i < count; ++i) {
      client::Message message;
      message.topic = topic;
      message.tag = "tag";
      message.keys = {"key"};
      message.body = "body " + std::to_string(i);
      const auto sent = producer.Send(message);
      EXPECT_TRUE(sent.ok()) << sent.status();
      if (sent.ok()) last = *sent;
    }
    return last;
  }
  // A member of `group` that stays online.
  std::unique_ptr<client::PushConsumer> Join(
      const std::string& group, const std::string& topic, const std::string& tags = "*",
      client::MessageModel model = client::MessageModel::kClustering,
      std::shared_future<void> until = {}) {
    client::PushConsumerOptions options;
    options.client = ClientOf(group);
    options.group = group;
    options.model = model;
    options.consume_from = client::ConsumeFrom::kFirstOffset;
    options.offset_commit_interval = std::chrono::milliseconds(100);
    auto consumer = std::make_unique<client::PushConsumer>(options);
    EXPECT_TRUE(consumer->Subscribe(topic, tags).ok());
    consumer->SetListener([until](const auto&, client::ConcurrentContext*) {
      if (until.valid()) until.wait();
      return client::ConcurrentResult::kSuccess;
    });
    EXPECT_TRUE(consumer->Start().ok());
    return consumer;
  }
  // What became of the first message that `words` show, by group.
  std::map<std::string, std::string> Tracks(const std::vector<std::string>& words) {
    std::map<std::string, std::string> tracks;
    const Json messages = RunJson(words);
    if (messages.items().empty()) return tracks;
    for (const Json& track : messages.items()[0]["MessageTracks"].items()) {
      tracks[track["consumerGroup"].AsString()] = track["trackType"].AsString();
    }
    return tracks;
  }
  // A member of `group` consumes everything that the topic holds, and leaves.
  void Consume(const std::string& group, const std::string& topic) {
    const auto consumer = Join(group, topic);
    const client::MessageQueue queue{topic, "RaftNode00", 0};
    ASSERT_TRUE(Eventually(
        [&] {
          const auto progress = admin_->ConsumerProgress(group);
          if (!progress.ok() || !progress->contains(queue)) return false;
          return progress->at(queue).consumer_offset == progress->at(queue).broker_offset;
        },
        seconds(60)));
  }
};

TEST_F(WatchVerbs, ClusterRtTellsOfEveryRoundUntilItIsInterrupted) {
  AdminProcess process(cluster_->namesrv_address(),
                       {"clusterRT", "-a", "3", "-i", "0", "--output", "json"});
  for (int round = 0; round < 3; ++round) {
    const std::string line = process.ReadLine();
    const auto json = Json::Parse(line);
    ASSERT_TRUE(json.ok()) << line;
    ASSERT_EQ((*json)["brokers"].items().size(), 1u) << line;
    const Json& broker = (*json)["brokers"].items()[0];
    EXPECT_EQ(broker["Cluster Name"].AsString(), "RaftCluster");
    EXPECT_EQ(broker["Broker Name"].AsString(), "RaftNode00");
    EXPECT_GT(broker["RT"].AsDouble(), 0);
    EXPECT_EQ(broker["successCount"].AsInt64(), 3);
    EXPECT_EQ(broker["failCount"].AsInt64(), 0);
  }
  process.Signal(SIGINT);
  EXPECT_EQ(process.Wait(), 0);
}

TEST_F(WatchVerbs, ClusterRtEndsWhenNobodyReadsIt) {
  AdminProcess process(cluster_->namesrv_address(), {"clusterRT", "-a", "1", "-i", "0"});
  EXPECT_THAT(process.ReadLine(), HasSubstr("#successCount"));
  process.CloseOutput();
  EXPECT_GE(process.Wait(), 0);
}

TEST_F(WatchVerbs, ClusterRtWritesLogLinesAndRefusesAnUnknownCluster) {
  const AdminRun log = Run({"clusterRT", "-a", "2", "--rounds", "1", "-p", "true", "-m", "room1"});
  EXPECT_EQ(log.exit_code, 0);
  EXPECT_THAT(log.out,
              MatchesRegex("[-0-9]+ [:0-9]+\\|room1\\|RaftCluster\\|RaftNode00\\|[0-9]+\n"));
  const AdminRun unknown = Run({"clusterRT", "-c", "NoCluster", "--rounds", "1"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.out, HasSubstr("NoCluster"));
}

TEST_F(WatchVerbs, AFailedSendCountsAndIsTheExitCode) {
  const AdminRun run =
      Run({"clusterRT", "-a", "1", "-s", "5000000", "--rounds", "1", "--output", "json"});
  EXPECT_EQ(run.exit_code, 1) << "more than a message may hold";
  EXPECT_THAT(run.out, HasSubstr("\"failCount\":1"));
}

TEST_F(WatchVerbs, MonitoringTellsWhatAGroupHasNotConsumed) {
  Send("Orders", 2);
  Consume("slow", "Orders");
  Send("Orders", 3);
  AdminProcess process(cluster_->namesrv_address(),
                       {"startMonitoring", "-i", "0", "--output", "json"});
  for (int round = 0; round < 2; ++round) {
    const std::string line = process.ReadLine();
    const auto json = Json::Parse(line);
    ASSERT_TRUE(json.ok()) << line;
    std::map<std::string, Json> topics;  // also the group's retry topic is there
    for (const Json& one : (*json)["undoneMsgs"].items()) topics[one["topic"].AsString()] = one;
    ASSERT_TRUE(topics.contains("Orders")) << line;
    const Json& undone = topics["Orders"];
    EXPECT_EQ(undone["consumerGroup"].AsString(), "slow");
    EXPECT_EQ(undone["undoneMsgsTotal"].AsInt64(), 3);
    EXPECT_EQ(undone["undoneMsgsSingleMQ"].AsInt64(), 3);
    EXPECT_GE(undone["undoneMsgsDelayTimeMills"].AsInt64(-1), 0);
    EXPECT_THAT((*json)["deleteMsgsEvents"].items(), IsEmpty());
    EXPECT_THAT((*json)["notices"].items(), IsEmpty());
  }
  process.Signal(SIGTERM);
  EXPECT_EQ(process.Wait(), 0);
  const AdminRun people = Run({"startMonitoring", "--rounds", "1"});
  EXPECT_THAT(people.out,
              HasSubstr("UndoneMsgs [consumerGroup=slow, topic=Orders, undoneMsgsTotal=3, "
                        "undoneMsgsSingleMQ=3, undoneMsgsDelayTimeMills="));
}

TEST_F(WatchVerbs, ExportMetricsWritesTheOriginalsLayout) {
  Send("Orders", 5);
  ASSERT_EQ(Run({"exportMetrics", "-c", "RaftCluster", "-f", dir_ + "/out"}).exit_code, 0);
  std::ifstream file(dir_ + "/out/metrics.json");
  const auto json = Json::Parse(std::string(std::istreambuf_iterator<char>(file), {}));
  ASSERT_TRUE(json.ok());
  const Json& quota = (*json)["evaluateReport"]["RaftNode00"]["runtimeQuota"];
  EXPECT_EQ(quota["topicSize"].AsInt64(), 1) << "of users only";
  EXPECT_EQ(quota["groupSize"].AsInt64(-1), 0);
  EXPECT_TRUE(quota["diskRatio"].Has("commitLogDiskRatio"));
  EXPECT_TRUE(quota.Has("messageAverageSize"));
  for (const char* name : {"normalInTps", "normalOutTps", "transInTps", "scheduleInTps"}) {
    EXPECT_TRUE(quota["tps"].Has(name)) << name;
  }
  for (const char* name :
       {"normalOneDayInNum", "normalOneDayOutNum", "transOneDayInNum", "scheduleOneDayInNum"}) {
    EXPECT_TRUE(quota["oneDayNum"].Has(name)) << name;
    EXPECT_TRUE((*json)["totalData"]["totalOneDayNum"].Has(name)) << name;
  }
  for (const char* name :
       {"totalNormalInTps", "totalNormalOutTps", "totalTransInTps", "totalScheduleInTps"}) {
    EXPECT_TRUE((*json)["totalData"]["totalTps"].Has(name)) << name;
  }
  const Json& version = (*json)["evaluateReport"]["RaftNode00"]["runtimeVersion"];
  EXPECT_EQ(version["rocketmqVersion"].AsString(), "V5_3_3");
  EXPECT_TRUE(version["clientInfo"].is_array());
  EXPECT_EQ(Run({"exportMetrics", "-c", "NoCluster", "-f", dir_ + "/out"}).exit_code, 1);
}

TEST_F(WatchVerbs, AMessageSentAgainIsTheSameMessageOnceMore) {
  const client::SendResult sent = Send("Orders", 1);
  const Json again = RunJson({"queryMsgById", "-i", sent.offset_message_id, "-s", "true"});
  ASSERT_EQ(again.items().size(), 1u);
  EXPECT_EQ(again.items()[0]["MsgId"].AsString(), sent.message_id);
  EXPECT_EQ(again.items()[0]["Queue Offset"].AsInt64(), 1);
  const auto stored = ReadTopic("Orders").begin()->second;
  ASSERT_EQ(stored.size(), 2u);
  EXPECT_EQ(stored[1].body, stored[0].body);
  EXPECT_EQ(stored[1].properties, stored[0].properties);
  // Several at once.
  const std::string both = sent.offset_message_id + "," + stored[1].offset_message_id;
  EXPECT_EQ(RunJson({"queryMsgById", "-i", both}).items().size(), 2u);
  EXPECT_EQ(Run({"queryMsgById", "-i", both, "-s", "false"}).exit_code, 0);
  EXPECT_EQ(ReadTopic("Orders").begin()->second.size(), 2u) << "nothing was sent";
}

TEST_F(WatchVerbs, AMessageIsShownWithWhatBecameOfItInEachGroup) {
  const client::SendResult sent = Send("Orders", 1);
  const std::vector<std::string> by_id = {"queryMsgById", "-i", sent.offset_message_id};
  EXPECT_THAT(Run(by_id).out, HasSubstr("\nWARN: No Consumer\n"));
  EXPECT_THAT(Tracks(by_id), IsEmpty());
  Consume("gone", "Orders");
  std::promise<void> release;
  const auto done = Join("done", "Orders");
  const auto filtered = Join("filtered", "Orders", "other");
  const auto everywhere = Join("all", "Orders", "*", client::MessageModel::kBroadcasting);
  const auto waiting = Join("waiting", "Orders", "*", client::MessageModel::kClustering,
                            release.get_future().share());
  const std::map<std::string, std::string> wanted = {{"all", "CONSUME_BROADCASTING"},
                                                     {"done", "CONSUMED"},
                                                     {"filtered", "CONSUMED_BUT_FILTERED"},
                                                     {"gone", "NOT_ONLINE"},
                                                     {"waiting", "NOT_CONSUME_YET"}};
  EXPECT_TRUE(Eventually([&] { return Tracks(by_id) == wanted; }, seconds(60)))
      << testing::PrintToString(Tracks(by_id));
  EXPECT_EQ(Tracks({"queryMsgByUniqueKey", "-t", "Orders", "-i", sent.message_id}), wanted);
  EXPECT_EQ(Tracks({"queryMsgByOffset", "-t", "Orders", "-b", "RaftNode00", "-i", "0", "-o", "0"}),
            wanted);
  const std::string out = Run(by_id).out;
  EXPECT_THAT(out, HasSubstr("MessageTrack [consumerGroup=done, trackType=CONSUMED, "
                             "exceptionDesc=null]\n"));
  EXPECT_THAT(out, HasSubstr("MessageTrack [consumerGroup=gone, trackType=NOT_ONLINE, "
                             "exceptionDesc=CODE:206 DESC:"));
  release.set_value();
}

TEST_F(WatchVerbs, BodiesAreReadInTheCharacterSetThatIsNamed) {
  const std::string id = Send("Orders", 1).offset_message_id;
  const std::string as_utf16 = "扯摹‰";  // what the bytes of "body 0" are then
  for (const std::vector<std::string>& verb : std::vector<std::vector<std::string>>{
           {"queryMsgById", "-i", id, "-f"},
           {"queryMsgByOffset", "-t", "Orders", "-b", "RaftNode00", "-i", "0", "-o", "0", "-f"},
           {"printMsg", "-t", "Orders", "-c"},
           {"printMsgByQueue", "-t", "Orders", "-a", "RaftNode00", "-i", "0", "-d", "true",
            "-c"}}) {
    SCOPED_TRACE(verb[0]);
    std::vector<std::string> words = verb;
    words.emplace_back("UTF-16BE");
    EXPECT_THAT(Run(words).out, HasSubstr(as_utf16));
    words.back() = "NoSet";
    const AdminRun refused = Run(words);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.out, HasSubstr("NoSet"));
    words.resize(words.size() - 2);
    EXPECT_THAT(Run(words).out, HasSubstr("body 0"));
  }
}

TEST_F(WatchVerbs, AQueryLooksOnlyInTheClusterThatIsNamed) {
  const client::SendResult sent = Send("Orders", 1);
  for (const std::vector<std::string>& verb : std::vector<std::vector<std::string>>{
           {"queryMsgByKey", "-t", "Orders", "-k", "key", "-c"},
           {"queryMsgByUniqueKey", "-t", "Orders", "-i", sent.message_id, "-c"},
           {"queryMsgById", "-t", "Orders", "-i", sent.message_id, "-c"}}) {
    SCOPED_TRACE(verb[0]);
    std::vector<std::string> words = verb;
    words.emplace_back("RaftCluster");
    EXPECT_EQ(Run(words).exit_code, 0);
    words.back() = "NoCluster";
    EXPECT_EQ(Run(words).exit_code, 1);
  }
  // Of a light queue it is the topic whose route leads there.
  const std::vector<std::string> light = {"queryMsgByKey", "-t", "%LMQ%light", "-k", "key"};
  EXPECT_THAT(Run(light).out, Not(HasSubstr("has no message")));
  std::vector<std::string> by_parent = light;
  by_parent.insert(by_parent.end(), {"-c", "Orders"});
  EXPECT_THAT(Run(by_parent).out, HasSubstr("has no message"));
}

TEST_F(WatchVerbs, ALightQueueIsLookedForWhereItsParentIs) {
  Send("Orders", 2);
  CreateTopic("Parent", 1);
  EXPECT_EQ(RunJson({"printMsg", "-t", "Orders", "-l", "Parent"}).items().size(), 2u);
  // One without a route of its own is asked for all the same.
  EXPECT_EQ(Run({"printMsg", "-t", "%LMQ%light"}).exit_code, 1);
  EXPECT_EQ(Run({"printMsg", "-t", "%LMQ%light", "-l", "Parent"}).exit_code, 0);
}

TEST_F(WatchVerbs, ResetOffsetByTimeTakesBothFormsOfC) {
  Send("Orders", 2);
  Consume("g", "Orders");
  const std::vector<std::string> verb = {
      "resetOffsetByTime", "-g", "g", "-t", "Orders", "-s", "-1"};
  for (const std::vector<std::string>& form : std::vector<std::vector<std::string>>{
           {"-c"}, {"--cplus"}, {"-c", "RaftCluster"}, {"--cluster", "RaftCluster"}}) {
    std::vector<std::string> words = verb;
    words.insert(words.end(), form.begin(), form.end());
    const AdminRun run = Run(words);
    EXPECT_EQ(run.exit_code, 0) << testing::PrintToString(form) << run.out;
  }
}

}  // namespace
}  // namespace triad
