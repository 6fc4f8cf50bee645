// The replication group as its operators see it and move it: raftStatus, transferLeader.

#include <gmock/gmock.h>
#include <signal.h>

#include <set>

#include "remoting/json.h"
#include "tests/e2e/cluster_fixture.h"
#include "tests/e2e/planned_moves.h"
#include "tests/e2e/run_admin.h"

namespace triad {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

class Replication : public ClusterTest {
 protected:
  AdminRun Run(const std::vector<std::string>& words) {
    return RunAdmin(cluster_->namesrv_address(), words);
  }
  std::function<client::ClientOptions(const std::string&)> OptionsOf() {
    return [this](const std::string& instance) { return ClientOf(instance); };
  }
  // The rows of raftStatus by peer id.
  std::map<std::string, remoting::Json> RaftStatus() {
    const AdminRun run = Run({"raftStatus", "-o", "json"});
    EXPECT_EQ(run.exit_code, 0) << run.out;
    const Result<remoting::Json> rows = remoting::Json::Parse(run.out);
    EXPECT_TRUE(rows.ok()) << rows.status() << "\n" << run.out;
    std::map<std::string, remoting::Json> by_peer;
    if (!rows.ok()) return by_peer;
    for (const remoting::Json& row : rows->items()) by_peer[row["Peer"].AsString()] = row;
    return by_peer;
  }
};

TEST_F(Replication, RaftStatusShowsEveryPeerAlsoOneThatIsDown) {
  StartCluster();
  CreateTopic("Status", 4);
  OrderedLoad load(ClientOf("producer"), "Status", 8);
  ASSERT_TRUE(load.Start().ok());
  load.Send(200);
  load.Drain();
  std::map<std::string, remoting::Json> rows;
  ASSERT_TRUE(Eventually(
      [&] {
        rows = RaftStatus();
        std::set<std::string> applied;
        for (auto& [id, row] : rows) {
          const bool is_level = row["Lag Entries"].AsInt64(-1) == 0;
          if (!is_level || row["Ready"].AsString() != "yes") return false;
          applied.insert(row["Applied"].AsString());
        }
        return rows.size() == 3 && applied.size() == 1;
      },
      seconds(20)));
  const std::size_t leader = Leader();
  for (std::size_t i = 0; i < 3; ++i) {
    const remoting::Json& row = rows[cluster_->brokers()[i].peer_id];
    EXPECT_EQ(row["Role"].AsString(), i == leader ? "leader" : "follower");
    EXPECT_EQ(row["Lag Entries"].AsInt64(-1), 0);
    EXPECT_EQ(row["Address"].AsString(), cluster_->brokers()[i].client_address);
    EXPECT_GT(row["Sync p99 ms"].AsDouble(), 0);
    EXPECT_GT(row["Committed"].AsInt64(), 0);
  }

  const std::size_t victim = (leader + 1) % 3;
  ASSERT_TRUE(cluster_->Signal(victim, SIGKILL).ok());
  load.Send(100);
  load.Drain();
  const remoting::Json down = RaftStatus()[cluster_->brokers()[victim].peer_id];
  EXPECT_EQ(down["Role"].AsString(), "down");
  EXPECT_EQ(down["Ready"].AsString(), "no");
  EXPECT_GT(down["Lag Entries"].AsInt64(), 0);
  EXPECT_GT(down["Lag Bytes"].AsInt64(), 0);
  EXPECT_THAT(down["Why"].AsString(), HasSubstr(cluster_->brokers()[victim].client_address));
}

TEST_F(Replication, TransferLeaderMovesItAndRefusesWithTheReason) {
  StartCluster();
  const std::size_t leader = Leader();
  const std::string heir = cluster_->brokers()[(leader + 1) % 3].peer_id;
  AdminRun run = Run({"transferLeader", "--to", heir});
  EXPECT_EQ(run.exit_code, 0) << run.out;
  EXPECT_THAT(run.out, HasSubstr("to " + heir));
  EXPECT_TRUE(Eventually([&] { return Leader() == (leader + 1) % 3; }, seconds(10)));

  run = Run({"transferLeader", "--to", "n9"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.out, HasSubstr("the target is no other voter of the group"));

  const std::size_t dead = (leader + 2) % 3;
  ASSERT_TRUE(cluster_->Signal(dead, SIGKILL).ok());
  const std::string dead_id = cluster_->brokers()[dead].peer_id;
  EXPECT_TRUE(Eventually(
      [&] {
        run = Run({"transferLeader", "--to", dead_id});
        return run.exit_code == 1 &&
               run.out.find("the target does not answer") != std::string::npos;
      },
      seconds(10)))
      << run.out;
}

TEST_F(Replication, RepeatedTransfersUnderLoadAreNoticedByNobody) {
  StartCluster();
  CreateTopic("Moves", 8);
  PlannedMoves clients(OptionsOf(), "Moves");
  ASSERT_TRUE(clients.Start().ok());
  for (int round = 0; round < 12; ++round) {
    clients.Send(100);
    const AdminRun run = Run({"transferLeader"});
    ASSERT_EQ(run.exit_code, 0) << run.out;
  }
  clients.Send(100);
  clients.ExpectUnnoticed();
  CheckStored(&clients.load(), "Moves", {});
}

TEST_F(Replication, ARollingRestartUnderLoadIsNoticedByNobody) {
  StartCluster({{"shutdownWaitTimeSeconds", "2"}});
  CreateTopic("Rolling", 8);
  PlannedMoves clients(OptionsOf(), "Rolling");
  ASSERT_TRUE(clients.Start().ok());
  for (std::size_t i = 0; i < 3; ++i) {
    clients.Send(200);
    const Result<int> ended = cluster_->Signal(i, SIGTERM, seconds(40));
    ASSERT_TRUE(ended.ok()) << ended.status();
    EXPECT_EQ(*ended, 0) << LocalCluster::Tail(cluster_->brokers()[i].log_file);
    clients.Send(100);
    ASSERT_TRUE(cluster_->StartBroker(i).ok());
    ASSERT_TRUE(cluster_->WaitForMembers(3, seconds(30)).ok());
  }
  // Peers leave sooner here than a client asks for its route: an idle pull may be cut off.
  clients.ExpectUnnoticed("ended before the answer");
  CheckStored(&clients.load(), "Rolling", {});
}

}  // namespace
}  // namespace triad
