// Acknowledged messages under kill -9: nothing lost, no gap, order per key, the same bytes on every
// peer.

#include <signal.h>

#include <filesystem>
#include <fstream>

#include "tests/e2e/cluster_fixture.h"

namespace triad {
namespace {

using std::chrono::seconds;

class Durability : public ClusterTest {};

TEST_F(Durability, REP_1_REP_5_LeaderKilledUnderLoadLosesNothingAndTheNextAnswersWithinSeconds) {
  StartCluster();
  CreateTopic("Kill", 4);
  OrderedLoad load(ClientOf("producer"), "Kill", 20);
  ASSERT_TRUE(load.Start().ok());
  for (int round = 0; round < 3; ++round) {
    load.Send(300);
    const std::size_t leader = Leader();
    load.Drain();
    ASSERT_TRUE(cluster_->Signal(leader, SIGKILL).ok());
    const auto killed = std::chrono::steady_clock::now();
    load.Send(1, 0);  // returns when it is answered
    EXPECT_LT(std::chrono::steady_clock::now() - killed, seconds(5));
    load.Send(299);
    load.Drain();
    ASSERT_TRUE(cluster_->StartBroker(leader).ok());
    ASSERT_TRUE(cluster_->WaitForMembers(3, seconds(30)).ok());
  }
  EXPECT_EQ(load.acked_count(), 1800u);
  for (const std::string& error : load.errors()) ADD_FAILURE() << error;
  for (const LocalBroker& broker : cluster_->brokers())
    CheckStored(&load, "Kill", broker.client_address);
  CheckLogsIdentical();
}

TEST_F(Durability, FollowerKilledAndRestartedCatchesUpWithoutAnErrorToProducers) {
  StartCluster();
  CreateTopic("Follower", 4);
  OrderedLoad load(ClientOf("producer"), "Follower", 20);
  ASSERT_TRUE(load.Start().ok());
  load.Send(200);
  const std::size_t follower = (Leader() + 1) % 3;
  ASSERT_TRUE(cluster_->Signal(follower, SIGKILL).ok());
  load.Send(400);
  ASSERT_TRUE(cluster_->StartBroker(follower).ok());
  load.Send(200);
  load.Drain();
  EXPECT_EQ(load.acked_count(), 800u);
  EXPECT_TRUE(load.errors().empty());
  ASSERT_TRUE(cluster_->WaitForMembers(3, seconds(30)).ok());
  CheckStored(&load, "Follower", cluster_->brokers()[follower].client_address);
  CheckLogsIdentical();
}

TEST_F(Durability, REP_2_AFollowerThatStoodStillCatchesUpWithoutARestart) {
  StartCluster();
  CreateTopic("Still", 4);
  OrderedLoad load(ClientOf("producer"), "Still", 20);
  ASSERT_TRUE(load.Start().ok());
  load.Send(200);
  const std::size_t follower = (Leader() + 1) % 3;
  ASSERT_TRUE(cluster_->Signal(follower, SIGSTOP).ok());
  load.Send(6000, 256);
  ASSERT_TRUE(cluster_->Signal(follower, SIGCONT).ok());
  load.Send(200);
  load.Drain();
  EXPECT_EQ(load.acked_count(), 6400u);
  EXPECT_TRUE(load.errors().empty());
  const std::string address = cluster_->brokers()[follower].client_address;
  const Result<std::vector<client::MessageQueue>> queues = reader_->Queues("Still");
  ASSERT_TRUE(queues.ok()) << queues.status();
  for (const client::MessageQueue& queue : *queues) {
    const Result<std::int64_t> wanted = reader_->MaxOffset(queue);
    ASSERT_TRUE(wanted.ok()) << wanted.status();
    EXPECT_TRUE(Eventually(
        [&] {
          const auto pull = reader_->PullFrom(address, queue, "*", 0, 1);
          return pull.ok() && pull->max_offset >= *wanted;
        },
        seconds(60)));
  }
  CheckStored(&load, "Still", address);
  CheckLogsIdentical();
}

TEST_F(Durability, AllThreeKilledAtOnceKeepEverythingAcknowledged) {
  StartCluster();
  CreateTopic("All", 4);
  OrderedLoad load(ClientOf("producer"), "All", 20);
  ASSERT_TRUE(load.Start().ok());
  load.Send(500);
  for (std::size_t i = 0; i < 3; ++i) ASSERT_TRUE(cluster_->Signal(i, SIGKILL).ok());
  for (std::size_t i = 0; i < 3; ++i) ASSERT_TRUE(cluster_->StartBroker(i).ok());
  Leader();
  load.Send(200);
  load.Drain();
  EXPECT_EQ(load.acked_count(), 700u);
  for (const LocalBroker& broker : cluster_->brokers())
    CheckStored(&load, "All", broker.client_address);
}

TEST_F(Durability, WithoutAMajorityNothingIsAcknowledgedAndServiceComesBackWithIt) {
  StartCluster();
  CreateTopic("Majority", 2);
  OrderedLoad load(ClientOf("producer"), "Majority", 4);
  ASSERT_TRUE(load.Start().ok());
  load.Send(50);
  load.Drain();
  const std::size_t leader = Leader();
  for (std::size_t i = 0; i < 3; ++i) {
    if (i != leader) {
      ASSERT_TRUE(cluster_->Signal(i, SIGKILL).ok());
    }
  }
  client::ProducerOptions options;
  options.client = ClientOf("alone");
  options.send_timeout = seconds(4);
  client::Producer alone(options);
  ASSERT_TRUE(alone.Start().ok());
  client::Message message;
  message.topic = "Majority";
  message.body = "nobody else has this";
  EXPECT_FALSE(alone.Send(message).ok());
  alone.Shutdown();
  for (std::size_t i = 0; i < 3; ++i) {
    if (i != leader) {
      ASSERT_TRUE(cluster_->StartBroker(i).ok());
    }
  }
  Leader();
  load.Send(50);
  load.Drain();
  EXPECT_EQ(load.acked_count(), 100u);
}

// A follower is killed, and the log rots where its next start replays the state and the queues, in
// front of what the log's own start looks at: it recovers that from the leader.
TEST_F(Durability, AFollowerWhoseLogRotsWhereItsStartReplaysGetsItFromTheLeader) {
  StartCluster({{"mappedFileSizeCommitLog", "67108864"}});
  CreateTopic("Rot", 4);
  OrderedLoad load(ClientOf("producer"), "Rot", 20);
  ASSERT_TRUE(load.Start().ok());
  load.Send(300);
  load.Drain();
  const std::size_t follower = (Leader() + 1) % 3;
  const LocalBroker& peer = cluster_->brokers()[follower];
  const std::string log = peer.store_dir + "/dledger-" + peer.peer_id;
  // With the log's checkpoint its own start does not look in front of it any more.
  ASSERT_TRUE(
      Eventually([&] { return std::filesystem::exists(log + "/checkpoint"); }, seconds(30)));
  ASSERT_TRUE(cluster_->Signal(follower, SIGKILL).ok());
  {
    std::fstream segment(log + "/00000000000000000000",
                         std::ios::in | std::ios::out | std::ios::binary);
    std::string bytes(4 << 20, '\0');
    segment.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    const std::size_t at = bytes.find("k7:5");
    ASSERT_NE(at, std::string::npos);
    segment.clear();
    segment.seekp(static_cast<std::streamoff>(at));
    segment.put('K');
  }
  ASSERT_TRUE(cluster_->StartBroker(follower).ok());
  load.Send(100);
  ASSERT_TRUE(cluster_->WaitForMembers(3, seconds(60)).ok());
  load.Drain();
  EXPECT_EQ(load.acked_count(), 400u);
  CheckStored(&load, "Rot", peer.client_address);
  CheckLogsIdentical();
}

}  // namespace
}  // namespace triad
