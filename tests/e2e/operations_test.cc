// Planned operations: a leader that is asked to go hands over; a rolling restart is not noticed; a
// NameServer restart heals.

#include <signal.h>

#include "tests/e2e/cluster_fixture.h"

namespace triad {
namespace {

using std::chrono::seconds;

class Operations : public ClusterTest {};

TEST_F(Operations, RollingRestartUnderLoadFailsNoSend) {
  StartCluster({{"shutdownWaitTimeSeconds", "2"}});
  CreateTopic("Rolling", 4);
  OrderedLoad load(ClientOf("producer"), "Rolling", 20);
  ASSERT_TRUE(load.Start().ok());
  for (std::size_t i = 0; i < 3; ++i) {
    load.Send(200);
    Result<int> ended = cluster_->Signal(i, SIGTERM, seconds(40));
    ASSERT_TRUE(ended.ok()) << ended.status();
    EXPECT_EQ(*ended, 0) << LocalCluster::Tail(cluster_->brokers()[i].log_file);
    load.Send(100);
    ASSERT_TRUE(cluster_->StartBroker(i).ok());
    ASSERT_TRUE(cluster_->WaitForMembers(3, seconds(30)).ok());
  }
  load.Drain();
  EXPECT_EQ(load.acked_count(), 900u);
  for (const std::string& error : load.errors()) ADD_FAILURE() << error;
  CheckStored(&load, "Rolling", {});
}

TEST_F(Operations, AFirstSendIsAnsweredWhenTheRouteOfItsTopicIsThere) {
  StartCluster();
  client::ProducerOptions options;
  options.client = ClientOf("first");
  options.group = "first";
  client::Producer producer(options);
  ASSERT_TRUE(producer.Start().ok());
  for (int i = 0; i < 20; ++i) {
    client::Message message;
    message.topic = "First" + std::to_string(i);
    message.body = "m";
    const auto sent = producer.Send(message);
    ASSERT_TRUE(sent.ok()) << sent.status();
    const auto route = admin_->Route(message.topic);
    EXPECT_TRUE(route.ok()) << route.status();
  }
}

TEST_F(Operations, AnEmptyNameServerKnowsTheGroupAgainWithinSeconds) {
  StartCluster();
  CreateTopic("Route", 4);
  cluster_->KillNameServer();
  ASSERT_TRUE(cluster_->StartNameServer().ok());
  EXPECT_TRUE(Eventually(
      [&] {
        Result<client::TopicRoute> route = admin_->Route("Route");
        return route.ok() && route->brokers.size() == 1 && route->brokers[0].addresses.contains(0);
      },
      seconds(8)));
}

TEST_F(Operations, AKilledPeerLeavesTheRouteAtOnceAndAnAddressNeverStandsTwice) {
  StartCluster();
  CreateTopic("Leave", 2);
  const std::size_t leader = Leader();
  const std::string gone = cluster_->brokers()[leader].client_address;
  ASSERT_TRUE(cluster_->Signal(leader, SIGKILL).ok());
  bool twice = false;
  EXPECT_TRUE(Eventually(
      [&] {
        Result<std::vector<client::BrokerGroup>> groups = admin_->ClusterList();
        if (!groups.ok() || groups->size() != 1) return false;
        std::set<std::string> seen;
        for (const auto& [id, address] : (*groups)[0].addresses)
          twice = !seen.insert(address).second || twice;
        return !seen.contains(gone) && (*groups)[0].addresses.contains(0);
      },
      seconds(5)));
  EXPECT_FALSE(twice);
}

}  // namespace
}  // namespace triad
