// What broker.conf says, and what stands in it after changes, on real processes (cases.md CFG-8,
// CFG-9, NS-4, OPS-3).

#include <gmock/gmock.h>
#include <signal.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>
#include <thread>

#include "common/file_system.h"
#include "remoting/codes.h"
#include "remoting/headers.h"
#include "tests/e2e/cluster_fixture.h"
#include "tests/e2e/run_admin.h"
#include "tests/e2e/side_process.h"

namespace triad {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

class ConfigCases : public ClusterTest {
 protected:
  // The addresses that the name server at `namesrv` lists, of all groups.
  std::set<std::string> Listed(const std::string& namesrv) {
    std::set<std::string> listed;
    client::ClientOptions options;
    options.namesrv_address = namesrv;
    client::Admin admin(options);
    if (!admin.Start().ok()) return listed;
    const auto groups = admin.ClusterList();
    if (groups.ok()) {
      for (const client::BrokerGroup& group : *groups) {
        for (const auto& [id, address] : group.addresses) listed.insert(address);
      }
    }
    return listed;
  }
  std::string TextOf(const std::string& file) {
    const Result<std::string> text = ReadFile(PosixFileSystem(), file);
    return text.ok() ? *text : "";
  }
};

// The TCP ports that the process listens on, as the kernel says.
std::set<int> PortsOf(pid_t pid) {
  std::set<std::string> inodes;
  const std::filesystem::path fds = "/proc/" + std::to_string(pid) + "/fd";
  for (const auto& fd : std::filesystem::directory_iterator(fds)) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(fd.path(), gone).string();
    if (target.starts_with("socket:[")) inodes.insert(target.substr(8, target.size() - 9));
  }
  std::set<int> ports;
  for (const char* table : {"/tcp", "/tcp6"}) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/net" + table);
    std::string line;
    std::getline(in, line);
    while (std::getline(in, line)) {  // sl local remote state tx:rx tr:when retr uid timeout inode
      std::istringstream words(line);
      std::string number, local, remote, state, skipped, inode;
      words >> number >> local >> remote >> state;
      for (int i = 0; i < 5; ++i) words >> skipped;
      words >> inode;
      if (state != "0A" || !inodes.contains(inode)) continue;
      ports.insert(std::stoi(local.substr(local.find(':') + 1), nullptr, 16));
    }
  }
  return ports;
}

TEST_F(ConfigCases, CFG_8_ThePortsOfTheFileAreListenedOnAndNoOthers) {
  StartCluster();
  for (const LocalBroker& broker : cluster_->brokers()) {
    EXPECT_EQ(PortsOf(broker.pid),
              (std::set<int>{broker.listen_port, broker.listen_port - 2, broker.peer_port}));
    EXPECT_THAT(Listed(cluster_->namesrv_address()),
                testing::Contains("127.0.0.1:" + std::to_string(broker.listen_port)));
  }
}

TEST_F(ConfigCases, CFG_9_AKillAmidUpdatesLeavesTheFileWhole) {
  StartCluster();
  const std::size_t peer = (Leader() + 1) % 3;
  const LocalBroker& broker = cluster_->brokers()[peer];
  const std::string key = "shutdownWaitTimeSeconds";
  const auto set = [&](remoting::Client* client, int value) {
    remoting::Command request = remoting::Command::Request(remoting::kUpdateBrokerConfig);
    request.body = key + "=" + std::to_string(value) + "\n";
    const auto answer = client->CallSync(broker.client_address, request, seconds(10));
    return answer.ok() && answer->code == remoting::kSuccess;
  };
  // Everything but the changed value, and that value.
  const auto parts = [&](const std::string& text) {
    const std::size_t at = text.find("\n" + key + "=");
    if (at == std::string::npos) return std::pair<std::string, std::string>(text, "");
    const std::size_t value = at + key.size() + 2;
    const std::size_t end = text.find('\n', value);
    return std::pair(text.substr(0, value) + text.substr(end), text.substr(value, end - value));
  };
  auto first = remoting::CreateClient({}, {});
  ASSERT_TRUE(set(first.get(), 5));
  first->Stop();
  const std::string before = parts(TextOf(broker.config_file)).first;
  ASSERT_THAT(before, HasSubstr("# Peer n"));
  for (int round = 1; round <= 5; ++round) {
    const auto client = remoting::CreateClient({}, {});
    std::mutex mutex;
    std::condition_variable changed;
    int acked = 0;
    bool ended = false;
    std::thread updates([&] {
      for (int i = 1; i <= 100; ++i) {
        if (!set(client.get(), i)) break;
        const std::lock_guard lock(mutex);
        acked = i;
        changed.notify_all();
      }
      const std::lock_guard lock(mutex);
      ended = true;
      changed.notify_all();
    });
    {
      std::unique_lock lock(mutex);
      EXPECT_TRUE(changed.wait_for(lock, seconds(60), [&] { return acked >= 7 * round || ended; }));
    }
    ASSERT_TRUE(cluster_->Signal(peer, SIGKILL).ok());
    updates.join();
    client->Stop();
    EXPECT_GE(acked, 7 * round);
    const auto [rest, value] = parts(TextOf(broker.config_file));
    EXPECT_EQ(rest, before) << "round " << round;
    // What was acknowledged stands there, or the one that was under way.
    EXPECT_THAT(value, testing::AnyOf(std::to_string(acked), std::to_string(acked + 1)));
    ASSERT_TRUE(cluster_->StartBroker(peer).ok());
    ASSERT_TRUE(cluster_->WaitForMembers(3, seconds(30)).ok());
  }
}

TEST_F(ConfigCases, NS_4_ADeadNameServerDelaysNobodyAndAnAddedOneIsUsedWithoutARestart) {
  StartCluster(
      {{"namesrvAddr", " dead.invalid:9876;; 127.0.0.1:" + std::to_string(FreePort()) + " ;"}});
  const std::string own = cluster_->namesrv_address();
  EXPECT_TRUE(Eventually([&] { return Listed(own).size() == 3; }, seconds(10)));
  NameServerProcess added;
  ASSERT_TRUE(added.Start(dir_));
  for (const LocalBroker& broker : cluster_->brokers()) {
    const AdminRun run =
        RunAdmin(own, {"updateBrokerConfig", "-b", broker.client_address, "-k", "namesrvAddr", "-v",
                       " dead.invalid:9876; " + own + ";" + added.address()});
    ASSERT_EQ(run.exit_code, 0) << run.out;
  }
  EXPECT_TRUE(Eventually([&] { return Listed(added.address()).size() == 3; }, seconds(30)));
}

TEST_F(ConfigCases, OPS_3_TheGivenAddressIsAdvertisedLetterByLetterAndTheLogSaysHowItWasChosen) {
  StartCluster();
  const std::string port = std::to_string(FreePort());
  const std::string file = dir_ + "/single.conf";
  std::ofstream(file) << "brokerName=Single\nbrokerIP1=192.0.2.21\nlistenPort=" << port
                      << "\nnamesrvAddr=" << cluster_->namesrv_address()
                      << "\nstorePathRootDir=" << dir_ << "/single\n";
  SideProcess single;
  ASSERT_TRUE(single.Start("triad-broker", {"-c", file}, dir_ + "/single.log"));
  EXPECT_TRUE(
      Eventually([&] { return Listed(cluster_->namesrv_address()).contains("192.0.2.21:" + port); },
                 seconds(30)))
      << LocalCluster::Tail(dir_ + "/single.log");
  const std::string log = TextOf(dir_ + "/single.log");
  EXPECT_THAT(log, HasSubstr("192.0.2.21:" + port));
  EXPECT_THAT(log, HasSubstr("brokerIP1"));
}

TEST_F(ConfigCases, AStrictTopicStaysInOneOfTwoGroups) {
  StartCluster();
  const std::string own = cluster_->namesrv_address();
  const std::string second = "127.0.0.1:" + std::to_string(FreePort());
  const std::string file = dir_ + "/second.conf";
  std::ofstream(file) << "brokerName=Second\nbrokerIP1=127.0.0.1\nlistenPort="
                      << second.substr(second.find(':') + 1) << "\nnamesrvAddr=" << own
                      << "\nstorePathRootDir=" << dir_ << "/second\n";
  SideProcess process;
  ASSERT_TRUE(process.Start("triad-broker", {"-c", file}, dir_ + "/second.log"));
  ASSERT_TRUE(Eventually([&] { return Listed(own).contains(second); }, seconds(30)))
      << LocalCluster::Tail(dir_ + "/second.log");
  const std::string first = cluster_->brokers()[Leader()].client_address;
  const auto set = [&](const std::string& address, const std::string& attributes) {
    return RunAdmin(own, {"updateTopic", "-b", address, "-t", "Orders", "-r", "4", "-w", "4", "-a",
                          attributes});
  };
  const AdminRun made = set(first, "+order=strict");
  ASSERT_EQ(made.exit_code, 0) << made.out;
  for (const char* attributes : {"+order=strict", "+message.type=FIFO"}) {
    const AdminRun refused = set(second, attributes);
    EXPECT_NE(refused.exit_code, 0);
    EXPECT_THAT(refused.out, HasSubstr("-b, not -c"));
  }
  // A send whose client has no route of it makes it there neither; other topics it makes.
  const auto wire = remoting::CreateClient({}, {});
  const auto send = [&](const std::string& topic) {
    remoting::SendMessageRequest header;
    header.producer_group = "p";
    header.topic = topic;
    header.default_topic = "TBW102";
    header.default_topic_queue_nums = 4;
    remoting::Command request = remoting::Command::Request(remoting::kSendMessageV2);
    header.EncodeV2(&request.ext);
    request.body = "body";
    return wire->CallSync(second, request, seconds(10));
  };
  const Result<remoting::Command> refused = send("Orders");
  ASSERT_TRUE(refused.ok()) << refused.status();
  EXPECT_EQ(refused->code, remoting::kInvalidParameter);
  EXPECT_THAT(refused->remark, HasSubstr("-b, not -c"));
  const Result<remoting::Command> sent = send("Others");
  ASSERT_TRUE(sent.ok()) << sent.status();
  EXPECT_EQ(sent->code, remoting::kSuccess) << sent->remark;
  // As the refusal says: once the first group takes no more messages, the topic may move.
  const AdminRun closed =
      RunAdmin(own, {"updateTopicPerm", "-b", first, "-t", "Orders", "-p", "4"});
  ASSERT_EQ(closed.exit_code, 0) << closed.out;
  const AdminRun moved = set(second, "+order=strict");
  EXPECT_EQ(moved.exit_code, 0) << moved.out;
  const AdminRun back = RunAdmin(own, {"updateTopicPerm", "-b", first, "-t", "Orders", "-p", "6"});
  EXPECT_NE(back.exit_code, 0) << back.out;
  const Result<remoting::Command> stored = send("Orders");
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ(stored->code, remoting::kSuccess) << stored->remark;
  wire->Stop();
}

}  // namespace
}  // namespace triad
