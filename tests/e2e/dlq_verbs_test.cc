// mqadmin dlq: what its options choose, and what list, view, drop and replay do with it.

#include "remoting/client.h"
#include "remoting/codes.h"
#include "remoting/headers.h"
#include "remoting/json.h"
#include "tests/e2e/cluster_fixture.h"
#include "tests/e2e/run_admin.h"

namespace triad {
namespace {

using std::chrono::seconds;

// With a zero, as bodies may have them.
std::string BodyOf(const std::string& key) {
  return std::string("body\0of ", 8) + key;
}

class DlqVerbs : public ClusterTest {
 protected:
  void TearDown() override {
    if (wire_) wire_->Stop();
    ClusterTest::TearDown();
  }
  // A message of `topic` that has failed too often: dead when its consumer sends it back.
  void Die(const std::string& topic, const std::string& key) {
    if (!wire_) wire_ = remoting::CreateClient({}, {});
    remoting::SendMessageRequest header;
    header.producer_group = "raw";
    header.topic = "%RETRY%g_verbs";
    header.default_topic = "TBW102";
    header.default_topic_queue_nums = 1;
    header.reconsume_times = 17;
    header.max_reconsume_times = 16;
    header.properties =
        "UNIQ_KEY\x01u-" + key + "\x02KEYS\x01" + key + "\x02RETRY_TOPIC\x01" + topic + "\x02";
    remoting::Command request = remoting::Command::Request(remoting::kSendMessageV2);
    header.EncodeV2(&request.ext);
    request.body = BodyOf(key);
    const Result<remoting::Command> answer =
        wire_->CallSync(cluster_->brokers()[Leader()].client_address, request, seconds(5));
    ASSERT_TRUE(answer.ok()) << answer.status();
    ASSERT_EQ(answer->code, 0) << answer->remark;
  }
  std::string Dlq(const std::string& verb, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"dlq", verb, "-g", "g_verbs"};
    words.insert(words.end(), more.begin(), more.end());
    const AdminRun run = RunAdmin(cluster_->namesrv_address(), words);
    EXPECT_EQ(run.exit_code, 0) << run.out;
    return run.out;
  }
  // The keys of the dead letters that `dlq view` shows, oldest first; checks their bodies.
  std::vector<std::string> Open(std::vector<std::string> more = {}) {
    more.insert(more.end(), {"-o", "json"});
    const std::string text = Dlq("view", more);
    const Result<remoting::Json> json = remoting::Json::Parse(text);
    EXPECT_TRUE(json.ok()) << text;
    std::vector<std::string> keys;
    if (!json.ok()) return keys;
    for (const remoting::Json& letter : json->items()) {
      keys.push_back(letter["properties"]["KEYS"].AsString());
      EXPECT_EQ(letter["body"].AsString(), BodyOf(keys.back()));
      failed_at_ms_[keys.back()] = letter["properties"]["FIRST_FAILURE_TIME"].AsString();
    }
    return keys;
  }
  std::size_t Stored(const std::string& topic) {
    std::size_t count = 0;
    for (const auto& [queue, messages] : ReadTopic(topic)) count += messages.size();
    return count;
  }

  using Keys = std::vector<std::string>;
  std::unique_ptr<remoting::Client> wire_;
  std::map<std::string, std::string> failed_at_ms_;  // by key
};

TEST_F(DlqVerbs, ChooseByTopicKeyTimeAndNumberAndReplayToAnotherTopic) {
  StartCluster();
  for (const char* topic : {"Orders", "Bills", "Again"}) CreateTopic(topic, 1);
  Die("Orders", "o1");
  Die("Bills", "b1");
  // Times are in milliseconds.
  const auto before = std::chrono::steady_clock::now();
  ASSERT_TRUE(Eventually(
      [&] { return std::chrono::steady_clock::now() > before + std::chrono::milliseconds(50); },
      seconds(5)));
  Die("Orders", "o2");

  EXPECT_EQ(Open(), (Keys{"o1", "b1", "o2"}));
  EXPECT_EQ(Open({"--topic", "Bills"}), (Keys{"b1"}));
  EXPECT_EQ(Open({"--key", "o2"}), (Keys{"o2"}));
  EXPECT_EQ(Open({"--key", "u-o1"}), (Keys{"o1"})) << "the message id";
  EXPECT_EQ(Open({"--limit", "2"}), (Keys{"o1", "b1"}));
  EXPECT_EQ(Open({"--topic", "Orders", "--limit", "1"}), (Keys{"o1"}));
  EXPECT_EQ(Open({"--since", failed_at_ms_.at("o2")}), (Keys{"o2"}));
  EXPECT_EQ(Open({"--key", "nobody"}), Keys());
  const std::string table = Dlq("list", {"-o", "table", "--topic", "Bills"});
  EXPECT_NE(table.find("1 dead letters are open"), std::string::npos) << table;
  EXPECT_NE(table.find("u-b1"), std::string::npos) << table;
  const std::string whole = Dlq("view", {"--key", "b1"});
  EXPECT_NE(whole.find(BodyOf("b1")), std::string::npos) << whole;
  EXPECT_NE(whole.find("RETRY_TOPIC"), std::string::npos) << whole;

  EXPECT_NE(Dlq("drop", {"--key", "b1", "--dry-run"}).find("would be dropped"), std::string::npos);
  EXPECT_EQ(Open({"--key", "b1"}), (Keys{"b1"}));
  EXPECT_NE(Dlq("drop", {"--key", "b1"}).find("1 dropped"), std::string::npos);
  EXPECT_EQ(Open(), (Keys{"o1", "o2"}));

  const std::vector<std::string> replay = {"--topic", "Orders", "--to", "Again"};
  EXPECT_NE(
      Dlq("replay", {"--topic", "Orders", "--to", "Again", "--dry-run"}).find("would be replayed"),
      std::string::npos);
  EXPECT_EQ(Stored("Again"), 0u);
  EXPECT_NE(Dlq("replay", replay).find("2 replayed"), std::string::npos);
  EXPECT_EQ(Stored("Again"), 2u);
  Dlq("replay", replay);
  EXPECT_EQ(Stored("Again"), 2u) << "run again it sent them again";
  EXPECT_EQ(Open(), Keys());
}

TEST_F(DlqVerbs, AGroupWithoutDeadLettersHasAnEmptyListAndAnUnknownOneIsNamed) {
  StartCluster();
  const std::string& name_server = cluster_->namesrv_address();
  const AdminRun unknown = RunAdmin(name_server, {"dlq", "list", "-g", "g_quiet"});
  EXPECT_EQ(unknown.exit_code, 1) << unknown.out;
  EXPECT_NE(unknown.out.find("'g_quiet'"), std::string::npos) << unknown.out;
  CreateTopic("%RETRY%g_quiet", 1);
  const AdminRun known = RunAdmin(name_server, {"dlq", "list", "-g", "g_quiet", "-o", "json"});
  EXPECT_EQ(known.exit_code, 0) << known.out;
  const Result<remoting::Json> json = remoting::Json::Parse(known.out);
  ASSERT_TRUE(json.ok()) << known.out;
  EXPECT_TRUE(json->items().empty()) << known.out;
}

TEST_F(DlqVerbs, AReplayKeepsToItsRate) {
  StartCluster();
  for (const char* topic : {"Orders", "Slow"}) CreateTopic(topic, 1);
  for (const char* key : {"r1", "r2", "r3", "r4"}) Die("Orders", key);
  const auto before = std::chrono::steady_clock::now();
  EXPECT_NE(Dlq("replay", {"--to", "Slow", "--rate", "2"}).find("4 replayed"), std::string::npos);
  // The first at once, then one every half second.
  EXPECT_GE(std::chrono::steady_clock::now() - before, std::chrono::milliseconds(1500));
  EXPECT_EQ(Stored("Slow"), 4u);
}

}  // namespace
}  // namespace triad
