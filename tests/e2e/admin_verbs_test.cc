// mqadmin as its users type it: every verb's own example, JSON for programs, exit codes that tell
// the truth.

#include <gmock/gmock.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "remoting/json.h"
#include "tests/e2e/cluster_fixture.h"
#include "tests/e2e/run_admin.h"

namespace triad {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

// Shown by tests of their own: what they do cannot be undone, or needs a failure first.
const std::set<std::string> kShownElsewhere = {"addPeer", "promotePeer", "removePeer",
                                               "transferLeader", "dlq"};
// Last, since the others need what they take away.
const std::vector<std::string> kLast = {"wipeWritePerm", "addWritePerm", "deleteSubGroup",
                                        "deleteTopic"};

class AdminVerbs : public ClusterTest {
 protected:
  AdminRun Run(const std::vector<std::string>& words) {
    return RunAdmin(cluster_->namesrv_address(), words);
  }
  // The names below "Subcommands:" of a help text.
  static std::vector<std::string> Names(const std::string& help) {
    std::vector<std::string> names;
    std::istringstream lines(help.substr(help.find("Subcommands:")));
    for (std::string line; std::getline(lines, line);) {
      if (line.size() < 3 || line[0] != ' ' || line[1] != ' ' || line[2] == ' ') continue;
      names.push_back(line.substr(2, line.find(' ', 2) - 2));
    }
    return names;
  }
  // The words behind "mqadmin" of the example that a help text ends with, without -n.
  static std::vector<std::string> Example(const std::string& help) {
    const std::string mark = "  mqadmin ";
    std::istringstream text(help.substr(help.find(mark, help.find("Example:")) + mark.size()));
    std::vector<std::string> words;
    for (std::string word; text >> word;) words.push_back(word);
    const auto n = std::find(words.begin(), words.end(), "-n");
    EXPECT_NE(n, words.end()) << help;
    if (n != words.end()) words.erase(n, n + 2);
    return words;
  }
  // The names in an example stand for those of this cluster.
  std::vector<std::string> Real(std::vector<std::string> words) {
    const std::map<std::string, std::string> real = {
        {"DefaultCluster", "RaftCluster"},
        {"127.0.0.1:10911", cluster_->brokers()[Leader()].client_address},
        {"7F00000100002A9F0000000000000000", sent_.offset_message_id},
        {"0A0000091F4C18B4AAC2092E0E480000", sent_.message_id},
        {"topics.json", dir_ + "/topics.json"},
        {"groups.json", dir_ + "/groups.json"},
        {"out", dir_ + "/out"}};
    for (std::string& word : words) {
      if (const auto found = real.find(word); found != real.end()) word = found->second;
    }
    return words;
  }
  // Messages with key order-1 in every queue of Orders, one of them traced; files for the list
  // verbs; a member of my_group and one of my_producers stay online.
  void Prepare() {
    CreateTopic("Orders", 8);
    client::ProducerOptions producer_options;
    producer_options.client = ClientOf("producer");
    producer_options.group = "my_producers";
    producer_ = std::make_unique<client::Producer>(producer_options);
    ASSERT_TRUE(producer_->Start().ok());
    for (int i = 0; i < 16; ++i) {
      client::Message message;
      message.topic = "Orders";
      message.keys = {"order-1"};
      message.body = "body";
      const auto sent =
          producer_->Send(message, client::MessageQueue{"Orders", "RaftNode00", i % 8});
      ASSERT_TRUE(sent.ok()) << sent.status();
      sent_ = *sent;
    }
    client::Message trace;
    trace.topic = "RMQ_SYS_TRACE_TOPIC";
    trace.keys = {sent_.message_id};
    trace.body =
        "Pub\x01"
        "1\x01"
        "r\x01"
        "my_producers\x01"
        "Orders\x01" +
        sent_.message_id +
        "\x01t\x01k\x01h\x01"
        "4\x01"
        "7\x01"
        "0\x01id\x01true\x02";
    ASSERT_TRUE(producer_->Send(trace).ok());
    client::PushConsumerOptions options;
    options.client = ClientOf("consumer");
    options.group = "my_group";
    options.consume_from = client::ConsumeFrom::kFirstOffset;
    consumer_ = std::make_unique<client::PushConsumer>(options);
    ASSERT_TRUE(consumer_->Subscribe("Orders").ok());
    consumer_->SetListener(
        [](const auto&, client::ConcurrentContext*) { return client::ConcurrentResult::kSuccess; });
    ASSERT_TRUE(consumer_->Start().ok());
    std::ofstream(dir_ + "/topics.json") << R"([{"topicName":"FromFile","readQueueNums":2}])";
    std::ofstream(dir_ + "/groups.json") << R"([{"groupName":"group_from_file"}])";
  }
  // Runs the verb's own example; what it needs may take a moment (commits, heartbeats).
  void RunExample(const std::string& verb) {
    SCOPED_TRACE(verb);
    const AdminRun help = Run({"help", verb});
    ASSERT_EQ(help.exit_code, 0) << help.out;
    ASSERT_THAT(help.out, HasSubstr("Example:"));
    std::vector<std::string> words = Real(Example(help.out));
    ASSERT_FALSE(words.empty());
    EXPECT_EQ(words[0], verb);
    words.insert(words.end(), {"--output", "json"});
    AdminRun run;
    EXPECT_TRUE(Eventually(
        [&] {
          run = Run(words);
          return run.exit_code == 0;
        },
        seconds(30)))
        << run.out;
    const auto json = remoting::Json::Parse(run.out);
    EXPECT_TRUE(json.ok()) << run.out;
  }
  void TearDown() override {
    consumer_.reset();
    producer_.reset();
    ClusterTest::TearDown();
  }

  std::unique_ptr<client::Producer> producer_;
  std::unique_ptr<client::PushConsumer> consumer_;
  client::SendResult sent_;
};

TEST_F(AdminVerbs, EveryVerbsExampleWorksAndAnswersInJson) {
  StartCluster({{"traceTopicEnable", "true"}});
  Prepare();
  const AdminRun help = Run({"help"});
  std::vector<std::string> names = Names(help.out);
  EXPECT_GT(names.size(), 55u) << help.out;
  const auto is_late = [](const std::string& name) {
    return std::find(kLast.begin(), kLast.end(), name) != kLast.end();
  };
  for (const std::string& name : names) {
    if (!kShownElsewhere.contains(name) && !is_late(name)) RunExample(name);
  }
  // And for people.
  const AdminRun people = Run({"consumerStatus", "-g", "my_group"});
  EXPECT_EQ(people.exit_code, 0);
  EXPECT_THAT(people.out, HasSubstr("#Consumer Offset"));
  for (const std::string& name : kLast) {
    EXPECT_THAT(names, testing::Contains(name));
    RunExample(name);
  }
}

TEST_F(AdminVerbs, ExitCodesTellTheTruth) {
  StartCluster();
  CreateTopic("Orders", 1);
  struct Case {
    int code;
    std::vector<std::string> words;
    const char* says;
  };
  const std::string nobody = "127.0.0.1:1";
  for (const Case& c : std::vector<Case>{
           {0, {"topicStatus", "-t", "Orders"}, "#Min Offset"},
           // The cluster refuses, or has no such thing.
           {1, {"topicStatus", "-t", "Nowhere"}, "Nowhere"},
           {1, {"topicRoute", "-t", "Nowhere"}, "Nowhere"},
           {1, {"consumerProgress", "-g", "no_group"}, "no_group"},
           {1, {"consumerConnection", "-g", "no_group"}, "no_group"},
           {1, {"consumerStatus", "-g", "no_group"}, "no_group"},
           {1, {"getConsumerConfig", "-g", "no_group"}, "no_group"},
           {1, {"producerConnection", "-g", "nobody", "-t", "Orders"}, "nobody"},
           {1, {"resetOffsetByTime", "-g", "no_group", "-t", "Orders", "-s", "now"}, "no_group"},
           {1, {"cloneGroupOffset", "-s", "no_group", "-d", "g", "-t", "Orders"}, "no_group"},
           {1, {"wipeWritePerm", "-b", "NoBroker"}, "NoBroker"},
           {1, {"addWritePerm", "-b", "NoBroker"}, "NoBroker"},
           {1, {"updateNamesrvConfig", "-k", "noKey", "-v", "1"}, "noKey"},
           {1, {"queryMsgByKey", "-t", "Orders", "-k", "none"}, "none"},
           {1, {"queryMsgByOffset", "-t", "Orders", "-b", "x", "-i", "0", "-o", "0"}, "queue"},
           {1, {"queryMsgById", "-i", "7F00000100002A9F0000000000000001"}, "7F0000"},
           {1, {"updateTopic", "-c", "DefaultCluster", "-t", "bad.name"}, "bad.name"},
           {1, {"updateTopic", "-c", "NoCluster", "-t", "T"}, "NoCluster"},
           // Not 8 queues, which is what is left of it in 32 bits.
           {1, {"updateTopic", "-c", "DefaultCluster", "-t", "T", "-r", "4294967304"}, "65536"},
           {1, {"updateSubGroup", "-c", "NoCluster", "-g", "g"}, "NoCluster"},
           {1, {"updateTopicPerm", "-t", "Nowhere", "-p", "6"}, "Nowhere"},
           {1, {"updateBrokerConfig", "-c", "DefaultCluster", "-k", "noKey", "-v", "1"}, "noKey"},
           {1, {"updateOrderConf", "-m", "get", "-t", "Nowhere"}, "Nowhere"},
           // Wrong use.
           {2, {"noVerb"}, "noVerb"},
           {2, {"help", "noVerb"}, "noVerb"},
           {2, {"topicStatus"}, "--topic"},
           {2, {"topicStatus", "-t", "Orders", "-x", "1"}, "-x"},
           {2, {"topicStatus", "-t", "Orders", "-o", "xml"}, "xml"},
           {2, {"updateTopic", "-t", "T", "-r", "many"}, "many"},
           {2,
            {"updateTopic", "-t", "T", "-r", "1.5"},
            "--readQueueNums: '1.5' is no whole number"},
           {2, {"updateTopic", "-t", "T", "-r", "-1"}, "'-1' is no whole number"},
           {2, {"updateTopic", "-t", "T", "-p", "5"}, "5"},
           {2, {"resetOffsetByTime", "-g", "g", "-t", "Orders", "-s", "noon"}, "noon"},
           {2, {"sendMessage", "-t", "Orders", "-p", "x", "-i", "0"}, "-b and -i"},
           {2, {"updateOrderConf", "-m", "put", "-t", "Orders"}, "-v"},
           {2, {"updateTopicList", "-f", "/no/such/file"}, "/no/such/file"},
           // Nobody there.
           {2, {"brokerStatus", "-b", nobody}, nobody.c_str()},
           {2, {"getBrokerConfig", "-b", nobody}, nobody.c_str()},
       }) {
    SCOPED_TRACE(testing::PrintToString(c.words));
    const AdminRun run = Run(Real(c.words));
    EXPECT_EQ(run.exit_code, c.code) << run.out;
    EXPECT_THAT(run.out, HasSubstr(c.says));
  }
  EXPECT_EQ(RunAdmin(nobody, {"topicList"}).exit_code, 2);
  // What was refused changed nothing: the group that should have got another's offsets is not made.
  EXPECT_EQ(Run({"getConsumerConfig", "-g", "g"}).exit_code, 1);
}

TEST_F(AdminVerbs, AFamilysHelpShowsAnExampleOfEach) {
  const AdminRun help = RunAdmin("127.0.0.1:1", {"help", "dlq"});
  EXPECT_EQ(help.exit_code, 0);
  for (const char* verb : {"list", "view", "replay", "drop"}) {
    EXPECT_THAT(help.out,
                HasSubstr("  mqadmin dlq " + std::string(verb) + " -n 127.0.0.1:9876 -g"));
  }
}

TEST_F(AdminVerbs, TheListOfAllGroupsSaysWhichCouldNotBeAskedAbout) {
  peers_ = 1;
  StartCluster();
  CreateTopic("%RETRY%g1", 1);
  AdminRun all = Run({"consumerProgress"});
  EXPECT_EQ(all.exit_code, 0) << all.out;
  for (const char* column : {"#Count", "#Version", "#Type", "#Model", "#TPS", "#Diff Total"}) {
    EXPECT_THAT(all.out, HasSubstr(column));
  }
  EXPECT_THAT(all.out, testing::ContainsRegex("g1 +0 +OFFLINE +0 +0"));
  ASSERT_TRUE(cluster_->Signal(0, SIGSTOP).ok());
  all = Run({"consumerProgress"});
  ASSERT_TRUE(cluster_->Signal(0, SIGCONT).ok());
  EXPECT_EQ(all.exit_code, 2) << all.out;
  EXPECT_THAT(all.out, testing::ContainsRegex("g1 +N/A"));
  EXPECT_THAT(all.out, HasSubstr("g1: "));
}

}  // namespace
}  // namespace triad
