// One address that follows the leadership (leaderIP), on hosts that are network namespaces: it is
// with whoever leads and with nobody else, whatever becomes of the broker or of the process that
// moves it; and message ids, which name it, lead to their messages.

#include <signal.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "tests/chaos/layout.h"
#include "tests/e2e/cluster_fixture.h"
#include "tests/e2e/run_admin.h"

namespace triad {
namespace {

using std::chrono::seconds;

AdminRun RunOn(const chaos::Layout& layout, const std::string& host, const std::string& command) {
  std::string line;
  for (const std::string& word : layout.WrapperOf(host)) line += word + " ";
  return RunLine(line + command);
}

std::size_t Count(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
    ++count;
  }
  return count;
}

class LeaderAddress : public ClusterTest {
 protected:
  // False: this machine cannot; said so.
  bool BuildHosts() {
    auto layout = chaos::Layout::Build(static_cast<int>(1 + (::getpid() + 127) % 254));
    if (!layout.ok()) {
      std::fprintf(stderr, "MISSING ON THIS MACHINE: no network namespaces: %s\n",
                   layout.status().ToString().c_str());
      return false;
    }
    layout_ = std::move(*layout);
    return true;
  }

  bool StartOnHosts(std::map<std::string, std::string> overrides = {}) {
    if (!BuildHosts()) return false;
    const Status entered = layout_->Enter("c");
    EXPECT_TRUE(entered.ok()) << entered;
    namesrv_host_ = {layout_->AddressOf("ns"), layout_->WrapperOf("ns"), "", ""};
    for (const char* host : {"n0", "n1", "n2"}) {
      hosts_.push_back({layout_->AddressOf(host), layout_->WrapperOf(host), "", ""});
    }
    overrides["leaderIP"] = layout_->FreeAddress();
    StartCluster(std::move(overrides));
    return cluster_ != nullptr;
  }

  void TearDown() override {
    ClusterTest::TearDown();
    cluster_ = nullptr;
    layout_ = nullptr;
  }

  bool Has(std::size_t peer) {
    const std::string host = "n" + std::to_string(peer);
    return RunOn(*layout_, host, "ip -4 -o addr show").out.find(layout_->FreeAddress() + "/32") !=
           std::string::npos;
  }
  // There now, or within a moment, and nowhere else.
  void ExpectOnlyAt(std::size_t leader) {
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(Eventually([&] { return Has(i) == (i == leader); }, seconds(30))) << "n" << i;
    }
  }
  // The first other one that answers; `old` when there is none.
  std::size_t LeaderAfter(std::size_t old) {
    std::size_t now = old;
    Eventually([&] { return (now = Leader()) != old; }, seconds(30));
    return now;
  }
  std::string LogOf(std::size_t peer) {
    std::ifstream in(cluster_->brokers()[peer].log_file);
    return (std::ostringstream() << in.rdbuf()).str();
  }
  // Of what moves the address there.
  pid_t ProcessOf(std::size_t peer) {
    const std::string log = LogOf(peer);
    const std::string before = " is moved by process ";
    const std::size_t at = log.find(before);
    return at == std::string::npos ? 0 : std::stoi(log.substr(at + before.size()));
  }

  std::unique_ptr<chaos::Layout> layout_;
};

TEST_F(LeaderAddress, AMessageIdLeadsToItsMessageWhoeverLeadsAndAKilledLeaderKeepsNothing) {
  if (!StartOnHosts()) return;
  CreateTopic("Found", 1);
  client::ProducerOptions options;
  options.client = ClientOf("producer");
  options.group = "found";
  client::Producer producer(options);
  ASSERT_TRUE(producer.Start().ok());
  client::Message message;
  message.topic = "Found";
  message.body = "where am I";
  const auto sent = producer.Send(std::move(message));
  ASSERT_TRUE(sent.ok()) << sent.status();
  const std::size_t old = Leader();
  ExpectOnlyAt(old);

  // Asked under both its addresses, the leader is one peer.
  const AdminRun peers = RunAdmin(cluster_->namesrv_address(), {"raftStatus", "-o", "json"});
  EXPECT_EQ(Count(peers.out, "\"Peer\""), 3u) << peers.out;

  ASSERT_TRUE(cluster_->Signal(old, SIGKILL).ok());  // and it stays dead
  Result<client::ReceivedMessage> found = Status::NotFound("not asked");
  EXPECT_TRUE(Eventually(
      [&] {
        found = admin_->ViewMessage(sent->offset_message_id);
        return found.ok();
      },
      seconds(30)))
      << found.status();
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->body, "where am I");
  EXPECT_EQ(found->store_host,
            layout_->FreeAddress() + ":" + std::to_string(cluster_->brokers()[old].listen_port));
  const std::size_t now = LeaderAfter(old);
  EXPECT_NE(now, old);
  ExpectOnlyAt(now);
  const AdminRun shown = RunAdmin(cluster_->namesrv_address(),
                                  {"queryMsgById", "-i", sent->offset_message_id, "-t", "Found"});
  EXPECT_EQ(shown.exit_code, 0) << shown.out;
  producer.Shutdown();
}

TEST_F(LeaderAddress, ALeaderThatWasPausedDoesNotTakeItBackWhenItWakes) {
  if (!StartOnHosts()) return;
  const std::size_t old = Leader();
  ExpectOnlyAt(old);
  ASSERT_TRUE(cluster_->Signal(old, SIGSTOP).ok());
  const std::size_t now = LeaderAfter(old);
  ASSERT_NE(now, old);
  ExpectOnlyAt(now);
  ASSERT_TRUE(cluster_->Signal(old, SIGCONT).ok());
  const std::string learnt = cluster_->brokers()[now].peer_id + " leads in term";
  EXPECT_TRUE(Eventually([&] { return Count(LogOf(old), learnt) > 0; }, seconds(30)));
  ASSERT_TRUE(cluster_->WaitForMembers(3, seconds(30)).ok());
  EXPECT_EQ(Count(LogOf(old), ": taken\n"), 1u) << LogOf(old);
  ExpectOnlyAt(now);
}

// A claim is renewed on a majority's word only. Here it takes a leader 8 s to notice that it has
// none.
TEST_F(LeaderAddress, ALeaderThatIsCutOffGivesItUpBeforeItNotices) {
  if (!StartOnHosts({{"dLegerElectionTimeoutMs", "8000"}})) return;
  const std::size_t old = Leader();
  ExpectOnlyAt(old);
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string from = "n" + std::to_string(i), to = "n" + std::to_string(old);
    if (i == old) continue;
    ASSERT_TRUE(layout_->Cut(from, to).ok());
    ASSERT_TRUE(layout_->Cut(to, from).ok());
  }
  EXPECT_TRUE(Eventually([&] { return Count(LogOf(old), ": released\n") == 1; }, seconds(60)));
  const std::string log = LogOf(old);
  EXPECT_LT(log.find(": released\n"), log.find("nobody leads in term", log.find(": taken\n")))
      << log;
  for (std::size_t i = 0; i < 3; ++i) ASSERT_TRUE(cluster_->Signal(i, SIGKILL).ok());
}

TEST_F(LeaderAddress, ABrokerWhoseProcessIsKilledStillGivesItUpWithTheLeadership) {
  if (!StartOnHosts()) return;
  const std::size_t old = Leader();
  ExpectOnlyAt(old);
  const pid_t process = ProcessOf(old);
  ASSERT_GT(process, 1);
  ASSERT_EQ(::kill(process, SIGKILL), 0);
  // Asked under its own address: the answer is not lost with the other one.
  const AdminRun moved = RunAdmin(cluster_->namesrv_address(), {"transferLeader"});
  const std::size_t now = LeaderAfter(old);
  EXPECT_NE(now, old) << moved.out;
  EXPECT_EQ(moved.exit_code, 0) << moved.out;
  ExpectOnlyAt(now);
  EXPECT_EQ(Count(LogOf(old), "this broker moves the address itself"), 1u);
}

TEST_F(LeaderAddress, WithoutTheCapabilitiesABrokerSaysWhichAndDoesNotStart) {
  if (!BuildHosts()) return;
  char name[] = "/tmp/triad-e2e-XXXXXX";
  ASSERT_NE(::mkdtemp(name), nullptr);
  dir_ = name;
  std::ofstream(dir_ + "/broker.conf")
      << "enableDLegerCommitLog=true\ndLegerSelfId=n0\nlistenPort=10911\nstorePathRootDir=" << dir_
      << "/store\nbrokerIP1=" << layout_->AddressOf("n0") << "\ndLegerPeers=n0-"
      << layout_->AddressOf("n0") << ":40911;n1-" << layout_->AddressOf("n1") << ":40911;n2-"
      << layout_->AddressOf("n2") << ":40911\nleaderIP=" << layout_->FreeAddress() << "\n";
  for (const std::string capability : {"net_admin", "net_raw"}) {
    const AdminRun ran =
        RunOn(*layout_, "n0",
              "timeout 60 setpriv --bounding-set=-" + capability + " --inh-caps=-" + capability +
                  " '" + TRIAD_PROGRAMS + "/triad-broker' -c " + dir_ + "/broker.conf");
    EXPECT_EQ(ran.exit_code, 1) << ran.out;
    for (const std::string& word :
         {std::string("mqbroker: not started: leaderIP=") + layout_->FreeAddress(),
          std::string(" on eth0: Operation not permitted; expected the capabilities CAP_NET_ADMIN "
                      "and CAP_NET_RAW")}) {
      EXPECT_EQ(Count(ran.out, word), 1u) << capability << ": " << ran.out;
    }
  }
}

}  // namespace
}  // namespace triad
