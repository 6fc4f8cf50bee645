// Settings of the whole group, changed with mqadmin: at a follower, with a peer down, across a
// failover; and a peer whose file says something else.

#include <signal.h>

#include <sstream>

#include "common/file_system.h"
#include "common/properties.h"
#include "tests/e2e/cluster_fixture.h"
#include "tests/e2e/run_admin.h"
#include "triad/producer.h"

namespace triad {
namespace {

using std::chrono::seconds;

class GroupSettings : public ClusterTest {
 protected:
  AdminRun Update(const std::vector<std::string>& where, const std::string& key,
                  const std::string& value) {
    std::vector<std::string> words = {"updateBrokerConfig", "-k", key, "-v", value};
    words.insert(words.end(), where.begin(), where.end());
    return RunAdmin(cluster_->namesrv_address(), words);
  }
  const std::string& Address(std::size_t peer) { return cluster_->brokers()[peer].client_address; }
  // What the peer says is in force; empty when it does not answer.
  std::string InForce(std::size_t peer, const std::string& key) {
    const AdminRun run =
        RunAdmin(cluster_->namesrv_address(), {"getBrokerConfig", "-b", Address(peer)});
    std::istringstream lines(run.out);  // "key   : value"
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with(key + " ")) continue;
      const std::size_t colon = line.find(": ");
      return run.exit_code != 0 || colon == std::string::npos ? "" : line.substr(colon + 2);
    }
    return {};
  }
  std::string InFile(std::size_t peer, const std::string& key) {
    const auto text = ReadFile(PosixFileSystem(), cluster_->brokers()[peer].config_file);
    EXPECT_TRUE(text.ok()) << text.status();
    const auto properties = Properties::Parse(text.ok() ? *text : "");
    const auto* entry = properties.ok() ? properties->Find(key) : nullptr;
    return entry == nullptr ? "" : entry->value;
  }
  bool ComesTo(std::size_t peer, const std::string& key, const std::string& value) {
    return Eventually([&] { return InForce(peer, key) == value && InFile(peer, key) == value; },
                      seconds(30));
  }
};

TEST_F(GroupSettings, AreOnEveryPeerWhoeverWasAskedAndWhoeverLeads) {
  StartCluster({{"shutdownWaitTimeSeconds", "1"}});
  const std::size_t first = Leader();
  const std::size_t asked = (first + 1) % 3;
  const std::size_t down = (first + 2) % 3;

  // At a follower: in force there and everywhere.
  AdminRun run = Update({"-b", Address(asked)}, "maxMessageSize", "1000");
  ASSERT_EQ(run.exit_code, 0) << run.out;
  EXPECT_NE(run.out.find("in force in the group: maxMessageSize"), std::string::npos) << run.out;
  EXPECT_EQ(InForce(asked, "maxMessageSize"), "1000") << "as soon as it is answered";
  for (std::size_t peer = 0; peer < 3; ++peer) {
    EXPECT_TRUE(ComesTo(peer, "maxMessageSize", "1000")) << peer;
  }

  // Who leads is the master for tools, as after each election of the original; no file says so.
  for (std::size_t peer = 0; peer < 3; ++peer) {
    EXPECT_EQ(InForce(peer, "brokerRole"), peer == first ? "SYNC_MASTER" : "SLAVE") << peer;
    EXPECT_EQ(InForce(peer, "brokerId"), peer == first ? "0" : std::to_string(peer + 1));
    EXPECT_NE(InFile(peer, "brokerRole"), "SLAVE");
  }

  // A bad value: refused, and nothing is changed anywhere.
  run = Update({"-b", Address(asked)}, "brokerPermission", "99");
  EXPECT_NE(run.exit_code, 0) << run.out;
  EXPECT_NE(run.out.find("0 to 15"), std::string::npos) << run.out;
  for (std::size_t peer = 0; peer < 3; ++peer) {
    EXPECT_EQ(InForce(peer, "brokerPermission"), "6") << peer;
  }

  // A key of one machine stays there.
  run = Update({"-b", Address(asked)}, "shutdownWaitTimeSeconds", "2");
  ASSERT_EQ(run.exit_code, 0) << run.out;
  EXPECT_NE(run.out.find("in force here at the next start"), std::string::npos) << run.out;
  EXPECT_EQ(InFile(asked, "shutdownWaitTimeSeconds"), "2");
  EXPECT_EQ(InFile(first, "shutdownWaitTimeSeconds"), "1");

  // A peer that is down meanwhile has it after its start.
  ASSERT_TRUE(cluster_->Signal(down, SIGKILL).ok());
  run = Update({"-c", "RaftCluster"}, "autoCreateTopicEnable", "false");
  ASSERT_EQ(run.exit_code, 0) << run.out;
  ASSERT_TRUE(cluster_->StartBroker(down).ok());
  EXPECT_TRUE(ComesTo(down, "autoCreateTopicEnable", "false"));
  ASSERT_TRUE(cluster_->WaitForMembers(3, seconds(30)).ok());

  // The next leader abides by it.
  ASSERT_TRUE(cluster_->Signal(first, SIGKILL).ok());
  const std::size_t second = Leader();
  ASSERT_NE(second, first);
  EXPECT_EQ(InForce(second, "autoCreateTopicEnable"), "false");
  EXPECT_EQ(InForce(second, "brokerRole"), "SYNC_MASTER");
  client::ProducerOptions options;
  options.client = ClientOf("sender");
  client::Producer producer(options);
  ASSERT_TRUE(producer.Start().ok());
  client::Message message;
  message.topic = "NeverMade";
  message.body = "x";
  EXPECT_FALSE(producer.Send(message).ok()) << "topics are not created any more";
  producer.Shutdown();

  // What a file says against it loses.
  const LocalBroker& edited = cluster_->brokers()[first];
  auto text = ReadFile(PosixFileSystem(), edited.config_file);
  ASSERT_TRUE(text.ok());
  auto other = SetInPropertiesText(*text, {{"autoCreateTopicEnable", "true"}});
  ASSERT_TRUE(other.ok());
  ASSERT_TRUE(WriteFileAtomically(PosixFileSystem(), edited.config_file, *other).ok());
  ASSERT_TRUE(cluster_->StartBroker(first).ok());
  ASSERT_TRUE(cluster_->WaitForMembers(3, seconds(30)).ok());
  EXPECT_EQ(InForce(first, "autoCreateTopicEnable"), "false");
}

}  // namespace
}  // namespace triad
