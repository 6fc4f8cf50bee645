// Troubles with ports, addresses, lists of members and overload, on real processes (cases.md OPS-2,
// GRP-5, GRP-6, WIRE-5, WIRE-6).

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <mutex>
#include <sstream>

#include "remoting/codes.h"
#include "remoting/json.h"
#include "remoting/send_header.h"
#include "tests/e2e/cluster_fixture.h"
#include "tests/e2e/run_admin.h"

namespace triad {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

std::string TextOf(const std::string& file) {
  std::ifstream in(file);
  return (std::ostringstream() << in.rdbuf()).str();
}

// A port that somebody else has.
class OccupiedPort {
 public:
  OccupiedPort() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = ::htonl(INADDR_ANY);
    socklen_t length = sizeof any;
    auto* const address = reinterpret_cast<sockaddr*>(&any);
    ok_ = ::bind(fd_, address, length) == 0 && ::listen(fd_, 1) == 0 &&
          ::getsockname(fd_, address, &length) == 0;
    port_ = ::ntohs(any.sin_port);
  }
  ~OccupiedPort() { ::close(fd_); }
  OccupiedPort(const OccupiedPort&) = delete;
  OccupiedPort& operator=(const OccupiedPort&) = delete;
  bool ok() const { return ok_; }
  int port() const { return port_; }

 private:
  const int fd_;
  bool ok_ = false;
  int port_ = 0;
};

class NetworkCases : public ClusterTest {
 protected:
  // The rows of raftStatus by peer id.
  std::map<std::string, remoting::Json> RaftStatus() {
    const AdminRun run = RunAdmin(cluster_->namesrv_address(), {"raftStatus", "-o", "json"});
    std::map<std::string, remoting::Json> by_peer;
    const Result<remoting::Json> rows = remoting::Json::Parse(run.out);
    if (!rows.ok()) return by_peer;
    for (const remoting::Json& row : rows->items()) by_peer[row["Peer"].AsString()] = row;
    return by_peer;
  }
  bool IsComplete(std::size_t peers) {
    auto rows = RaftStatus();
    for (auto& [id, row] : rows) {
      if (row["Lag Entries"].AsInt64(-1) != 0 || row["Ready"].AsString() != "yes") return false;
    }
    return rows.size() == peers;
  }
  void ExpectSends(const std::string& topic, int count) {
    OrderedLoad load(ClientOf("producer"), topic, 4);
    ASSERT_TRUE(load.Start().ok());
    load.Send(count);
    load.Drain();
    EXPECT_EQ(load.acked_count(), static_cast<std::size_t>(count))
        << testing::PrintToString(load.errors());
  }
};

TEST_F(NetworkCases, OPS_2_APortThatIsTakenIsNamedAndTheBrokerEndsWithoutARegistration) {
  StartCluster();
  OccupiedPort taken;
  ASSERT_TRUE(taken.ok());
  const std::string port = std::to_string(taken.port());
  const std::string vip_of = std::to_string(taken.port() + 2);
  struct Case {
    std::string lines;
    std::string option;
  };
  for (const Case& one : std::vector<Case>{
           {"listenPort=" + port, "listenPort"},
           {"listenPort=" + vip_of, "listenPort"},
           {"enableDLegerCommitLog=true\ndLegerSelfId=n0\ndLegerPeers=n0-127.0.0.1:" + port +
                ";n1-127.0.0.1:1;n2-127.0.0.1:2\n",
            "dLegerPeers"}}) {
    SCOPED_TRACE(one.lines);
    const std::string file = dir_ + "/taken.conf";
    std::ofstream(file) << "brokerName=Half\nbrokerIP1=127.0.0.1\nnamesrvAddr="
                        << cluster_->namesrv_address() << "\nstorePathRootDir=" << dir_ << "/half\n"
                        << one.lines << "\n";
    const AdminRun run =
        RunLine("timeout 60 " + std::string(TRIAD_PROGRAMS) + "/triad-broker -c " + file);
    EXPECT_NE(run.exit_code, 0);
    EXPECT_NE(run.exit_code, 124) << "it went on";
    EXPECT_THAT(run.out, HasSubstr(port));
    EXPECT_THAT(run.out, HasSubstr(one.option));
    const auto groups = admin_->ClusterList();
    ASSERT_TRUE(groups.ok()) << groups.status();
    for (const client::BrokerGroup& group : *groups) EXPECT_NE(group.broker_name, "Half");
  }
}

TEST_F(NetworkCases, GRP_5_AMemberWithALongerListIsToldAndDisturbsNobody) {
  peers_ = 2;
  StartCluster();
  CreateTopic("Pair", 2);
  ExpectSends("Pair", 50);
  const std::size_t leader = Leader();
  const std::string address = cluster_->brokers()[leader].client_address;
  auto before = RaftStatus();
  const std::string term = before["n0"]["Term"].AsString();

  const auto third = cluster_->AddBroker();
  ASSERT_TRUE(third.ok()) << third.status();
  ASSERT_TRUE(cluster_->StartBroker(*third).ok());
  const auto said = [&](std::size_t peer) {
    const std::string log = TextOf(cluster_->brokers()[peer].log_file);
    return log.find("n2-127.0.0.1:") != std::string::npos &&
           (log.find("dLegerPeers differ") != std::string::npos ||
            log.find("is not in dLegerPeers") != std::string::npos ||
            log.find("dLegerPeers names") != std::string::npos);
  };
  EXPECT_TRUE(Eventually([&] { return said(*third); }, seconds(20)))
      << "n2 does not name the difference";
  // Several election timeouts long.
  bool moved = false;
  bool listed = false;
  Eventually(
      [&] {
        const auto groups = admin_->ClusterList();
        if (!groups.ok() || groups->empty()) return false;
        const auto& addresses = (*groups)[0].addresses;
        const auto zero = addresses.find(0);
        moved |= zero == addresses.end() || zero->second != address;
        for (const auto& [id, where] : addresses) {
          listed |= where == cluster_->brokers()[*third].client_address;
        }
        return false;
      },
      seconds(5));
  EXPECT_FALSE(moved);
  EXPECT_FALSE(listed) << "a peer that is no member stands in the route";
  auto after = RaftStatus();
  EXPECT_EQ(after["n0"]["Term"].AsString(), term);
  ExpectSends("Pair", 50);
}

// Names and addresses of this process and its children alone. False: this machine cannot; said so.
bool UseHostsFile(const std::string& file) {
  const bool ok = ::unshare(CLONE_NEWNS) == 0 &&
                  ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                  ::mount(file.c_str(), "/etc/hosts", nullptr, MS_BIND, nullptr) == 0;
  if (!ok) std::fprintf(stderr, "MISSING ON THIS MACHINE: no mounts: %s\n", std::strerror(errno));
  return ok;
}

TEST_F(NetworkCases, GRP_6_APeerThatComesBackWithAnotherAddressIsFoundByItsName) {
  char name[] = "/tmp/triad-hosts-XXXXXX";
  const int fd = ::mkstemp(name);
  ASSERT_GE(fd, 0);
  ::close(fd);
  const std::string first = "127.0.0.1 localhost\n127.0.0.2 triad-peer-0\n127.0.0.3 triad-peer-1\n";
  const auto write = [&](const std::string& text) { std::ofstream(name) << text; };
  write(first + "127.0.0.4 triad-peer-2\n");
  const bool can = UseHostsFile(name);
  if (can) {
    for (int i = 0; i < 3; ++i) {
      LocalHost host;
      host.address = "127.0.0." + std::to_string(2 + i);
      host.peer_name = "triad-peer-" + std::to_string(i);
      hosts_.push_back(host);
    }
    StartCluster();
    ASSERT_NE(cluster_, nullptr);
    CreateTopic("Moved", 2);
    // A follower goes away, and for a while nobody knows its name.
    const std::size_t gone = Leader() == 2 ? 1 : 2;
    const std::string gone_name = "triad-peer-" + std::to_string(gone);
    ASSERT_TRUE(cluster_->Signal(gone, SIGKILL).ok());
    const std::string others =
        gone == 2 ? first : "127.0.0.1 localhost\n127.0.0.2 triad-peer-0\n127.0.0.4 triad-peer-2\n";
    write(others);
    ExpectSends("Moved", 50);
    // One of the others starts meanwhile: a name that is not known is tried again, not fatal.
    const std::size_t other = Leader() == 0 ? 3 - gone : 0;
    ASSERT_TRUE(cluster_->Signal(other, SIGKILL).ok());
    ASSERT_TRUE(cluster_->StartBroker(other).ok());
    ASSERT_TRUE(cluster_->WaitForLeader(seconds(30)).ok());
    ExpectSends("Moved", 50);
    // It comes back, and listens at its new address alone.
    std::ofstream(cluster_->brokers()[gone].config_file, std::ios::app)
        << "\nbrokerIP1=127.0.0.9\nbindAddress=127.0.0.9\n";
    write(others + "127.0.0.9 " + gone_name + "\n");
    ASSERT_TRUE(cluster_->StartBroker(gone).ok());
    EXPECT_TRUE(Eventually([&] { return IsComplete(3); }, seconds(10)));
  }
  ::unlink(name);
}

remoting::Command SendTo(const std::string& topic, std::string body) {
  remoting::SendMessageRequest header;
  header.producer_group = "p";
  header.topic = topic;
  header.default_topic = "TBW102";
  header.default_topic_queue_nums = 4;
  remoting::Command send = remoting::Command::Request(remoting::kSendMessageV2);
  header.EncodeV2(&send.ext);
  send.body = std::move(body);
  return send;
}

// What became of `count` sends over as many connections as `clients`, all at once: remarks by code.
std::map<std::int32_t, std::vector<std::string>> Flood(
    const std::string& address, const std::string& topic,
    const std::vector<std::unique_ptr<remoting::Client>>& clients, int count) {
  std::mutex mutex;
  std::condition_variable changed;
  int answered = 0;
  std::map<std::int32_t, std::vector<std::string>> by_code;
  for (int i = 0; i < count; ++i) {
    remoting::Client& client = *clients[static_cast<std::size_t>(i) % clients.size()];
    client.Call(
        address, SendTo(topic, "m" + std::to_string(i)), seconds(20),
        [&](Result<remoting::Command> answer) {
          const std::lock_guard hold(mutex);
          const std::int32_t code = answer.ok() ? answer->code : -1;
          by_code[code].push_back(answer.ok() ? answer->remark : answer.status().ToString());
          if (++answered == count) changed.notify_all();
        });
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return answered == count; });  // every call ends by its own time
  return by_code;
}

TEST_F(NetworkCases, WIRE_5_OnlyAnOverloadIsBusyAndItsRemarkNamesTheQueue) {
  StartCluster({{"sendThreadPoolQueueCapacity", "64"}});
  CreateTopic("Flood", 1);
  const std::string address = cluster_->brokers()[Leader()].client_address;
  std::vector<std::unique_ptr<remoting::Client>> clients;
  for (int i = 0; i < 32; ++i) clients.push_back(remoting::CreateClient({}, {}));
  for (int round = 0; round < 20; ++round) {
    auto light = Flood(address, "Flood", clients, 32);
    ASSERT_EQ(light[remoting::kSuccess].size(), 32u) << testing::PrintToString(light);
  }
  auto heavy = Flood(address, "Flood", clients, 4000);
  EXPECT_GT(heavy[remoting::kSystemBusy].size(), 0u);
  EXPECT_EQ(heavy[remoting::kSuccess].size() + heavy[remoting::kSystemBusy].size(), 4000u)
      << "a send was left without an answer, or with another one";
  for (const std::string& remark : heavy[remoting::kSystemBusy]) {
    ASSERT_THAT(remark, HasSubstr("append queue: 64 are waiting"));
  }
  auto after = Flood(address, "Flood", clients, 32);
  EXPECT_EQ(after[remoting::kSuccess].size(), 32u) << testing::PrintToString(after);
  for (const auto& client : clients) client->Stop();
  // What was acknowledged is there, what was refused is not.
  EXPECT_EQ(ReadQueue({"Flood", cluster_->broker_name(), 0}).size(),
            20 * 32 + heavy[remoting::kSuccess].size() + 32);
}

TEST_F(NetworkCases, WIRE_6_TheVipPortServesAlike) {
  StartCluster();
  CreateTopic("Vip", 1);
  const LocalBroker& leader = cluster_->brokers()[Leader()];
  const std::string address = "127.0.0.1:" + std::to_string(leader.listen_port - 2);
  const auto client = remoting::CreateClient({}, {});
  const auto sent = client->CallSync(address, SendTo("Vip", "by the old port"), seconds(5));
  ASSERT_TRUE(sent.ok()) << sent.status();
  EXPECT_EQ(sent->code, remoting::kSuccess) << sent->remark;
  client->Stop();
  const auto read = ReadQueue({"Vip", cluster_->broker_name(), 0});
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].body, "by the old port");
}

}  // namespace
}  // namespace triad
