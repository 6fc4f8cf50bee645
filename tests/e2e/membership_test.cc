// Changing who belongs to the group, under load: a dead machine is replaced, 3 peers become 5 and 3
// again, the leader itself is removed. Nothing is lost, order is kept.

#include <gmock/gmock.h>
#include <signal.h>

#include "remoting/json.h"
#include "tests/e2e/cluster_fixture.h"
#include "tests/e2e/run_admin.h"

namespace triad {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

class GroupMembers : public ClusterTest {
 protected:
  AdminRun Run(const std::vector<std::string>& words) {
    return RunAdmin(cluster_->namesrv_address(), words);
  }
  void Expect(const std::vector<std::string>& words) {
    const AdminRun run = Run(words);
    EXPECT_EQ(run.exit_code, 0) << run.out;
  }
  const std::string& Id(std::size_t i) { return cluster_->brokers()[i].peer_id; }
  // Starts a new peer with an empty disk and makes it a voter. Its index.
  std::size_t Join(OrderedLoad* load) {
    const Result<std::size_t> added = cluster_->AddBroker();
    EXPECT_TRUE(added.ok()) << added.status();
    const std::size_t i = *added;
    EXPECT_TRUE(cluster_->StartBroker(i).ok());
    Expect({"addPeer", "--id", Id(i), "--address",
            "127.0.0.1:" + std::to_string(cluster_->brokers()[i].peer_port)});
    load->Send(50);
    AdminRun run;
    EXPECT_TRUE(Eventually(
        [&] {
          run = Run({"promotePeer", "--id", Id(i)});
          return run.exit_code == 0;
        },
        seconds(30)))
        << run.out << LocalCluster::Tail(cluster_->brokers()[i].log_file);
    return i;
  }
  // raftStatus names exactly these peers and all are ready.
  void ExpectMembers(const std::set<std::string>& ids) {
    AdminRun run;
    EXPECT_TRUE(Eventually(
        [&] {
          run = Run({"raftStatus", "-o", "json"});
          const Result<remoting::Json> rows = remoting::Json::Parse(run.out);
          if (!rows.ok()) return false;
          std::set<std::string> ready;
          for (const remoting::Json& row : rows->items()) {
            const bool votes =
                row["Role"].AsString() == "leader" || row["Role"].AsString() == "follower";
            if (votes && row["Ready"].AsString() == "yes") ready.insert(row["Peer"].AsString());
          }
          return ready == ids && rows->items().size() == ids.size();
        },
        seconds(30)))
        << run.out;
  }
};

TEST_F(GroupMembers, ADeadPeerIsReplacedByANewOneUnderLoad) {
  StartCluster();
  CreateTopic("Replace", 4);
  OrderedLoad load(ClientOf("producer"), "Replace", 10);
  ASSERT_TRUE(load.Start().ok());
  load.Send(200);
  const std::size_t dead = (Leader() + 1) % 3;
  ASSERT_TRUE(cluster_->Signal(dead, SIGKILL).ok());
  load.Send(100);
  Expect({"removePeer", "--id", Id(dead)});
  load.Send(50);
  const std::size_t fresh = Join(&load);
  load.Send(100);
  std::set<std::string> members = {Id(0), Id(1), Id(2), Id(fresh)};
  members.erase(Id(dead));
  ExpectMembers(members);
  // The new peer counts: with one of the old ones gone the group goes on.
  for (std::size_t i = 0; i < 3; ++i) {
    if (i == dead || i == Leader()) continue;
    ASSERT_TRUE(cluster_->Signal(i, SIGKILL).ok());
    break;
  }
  load.Send(100);
  load.Drain();
  for (const std::string& error : load.errors()) ADD_FAILURE() << error;
  CheckStored(&load, "Replace", cluster_->brokers()[fresh].client_address);
}

TEST_F(GroupMembers, ThreePeersBecomeFiveAndThreeAgainAndTheLeaderIsRemoved) {
  StartCluster({{"shutdownWaitTimeSeconds", "2"}});
  CreateTopic("Grow", 4);
  OrderedLoad load(ClientOf("producer"), "Grow", 10);
  ASSERT_TRUE(load.Start().ok());
  load.Send(200);
  const std::size_t n3 = Join(&load);
  const std::size_t n4 = Join(&load);
  ExpectMembers({Id(0), Id(1), Id(2), Id(n3), Id(n4)});
  load.Send(100);
  // Out: whoever leads now, and then whoever leads after that.
  std::set<std::string> members = {Id(0), Id(1), Id(2), Id(n3), Id(n4)};
  for (int round = 0; round < 2; ++round) {
    const std::size_t leader = Leader();
    Expect({"removePeer", "--id", Id(leader)});
    members.erase(Id(leader));
    ASSERT_TRUE(cluster_->Signal(leader, SIGTERM, seconds(60)).ok());
    load.Send(100);
  }
  ExpectMembers(members);
  load.Drain();
  for (const std::string& error : load.errors()) ADD_FAILURE() << error;
  for (const LocalBroker& broker : cluster_->brokers()) {
    if (members.contains(broker.peer_id)) CheckStored(&load, "Grow", broker.client_address);
  }
}

TEST_F(GroupMembers, AGroupOfFiveGoesOnWithoutItsLeaderAndOneMore) {
  peers_ = 5;
  StartCluster();
  CreateTopic("Five", 4);
  OrderedLoad load(ClientOf("producer"), "Five", 10);
  ASSERT_TRUE(load.Start().ok());
  load.Send(200);
  const std::size_t first = Leader();
  const std::size_t second = (first + 1) % 5;
  ASSERT_TRUE(cluster_->Signal(first, SIGKILL).ok());
  load.Send(100);
  ASSERT_TRUE(cluster_->Signal(second, SIGKILL).ok());
  load.Send(100);
  ASSERT_TRUE(cluster_->StartBroker(first).ok());
  ASSERT_TRUE(cluster_->StartBroker(second).ok());
  ExpectMembers({Id(0), Id(1), Id(2), Id(3), Id(4)});
  load.Drain();
  EXPECT_EQ(load.acked_count(), 400u);
  for (const std::string& error : load.errors()) ADD_FAILURE() << error;
  for (const LocalBroker& broker : cluster_->brokers()) {
    CheckStored(&load, "Five", broker.client_address);
  }
  CheckLogsIdentical();
}

TEST_F(GroupMembers, AGroupOfSevenGoesOnWithoutItsLeaderAndTwoMore) {
  peers_ = 7;
  StartCluster();
  CreateTopic("Seven", 4);
  OrderedLoad load(ClientOf("producer"), "Seven", 10);
  ASSERT_TRUE(load.Start().ok());
  load.Send(100);
  const std::size_t first = Leader();
  const std::vector<std::size_t> down = {first, (first + 1) % 7, (first + 2) % 7};
  for (const std::size_t i : down) ASSERT_TRUE(cluster_->Signal(i, SIGKILL).ok());
  load.Send(100, 0);
  EXPECT_EQ(load.acked_count(), 200u) << "with 4 of 7";
  for (const std::size_t i : down) ASSERT_TRUE(cluster_->StartBroker(i).ok());
  ExpectMembers({Id(0), Id(1), Id(2), Id(3), Id(4), Id(5), Id(6)});
  load.Drain();
  EXPECT_EQ(load.acked_count(), 200u);
  for (const std::string& error : load.errors()) ADD_FAILURE() << error;
  for (const LocalBroker& broker : cluster_->brokers()) {
    CheckStored(&load, "Seven", broker.client_address);
  }
  Expect({"verifyLog"});  // identical
  CheckLogsIdentical();
}

TEST_F(GroupMembers, SenselessChangesAreRefusedWithTheReason) {
  StartCluster();
  const std::size_t leader = Leader();
  AdminRun run = Run({"addPeer", "--id", Id(leader), "--address", "127.0.0.1:9"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.out, HasSubstr("it is that already"));
  run = Run({"promotePeer", "--id", "n7"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.out, HasSubstr("no such member of the group"));
  run = Run({"addPeer", "--id", "n7", "--address", "nowhere"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.out, HasSubstr("nowhere"));
  // A learner that is not there never catches up.
  Expect({"addPeer", "--id", "n7", "--address", "127.0.0.1:9"});
  run = Run({"promotePeer", "--id", "n7"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.out, HasSubstr("the learner has not caught up"));
  Expect({"removePeer", "--id", "n7"});
}

}  // namespace
}  // namespace triad
