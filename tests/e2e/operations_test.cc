// Planned operations: a leader that is asked to go hands over; a rolling restart is not noticed; a
// NameServer restart heals.

#include <signal.h>

#include <algorithm>

#include "remoting/codes.h"
#include "tests/e2e/cluster_fixture.h"
#include "tests/e2e/side_process.h"

namespace triad {
namespace {

using std::chrono::seconds;

class Operations : public ClusterTest {
 protected:
  static Result<remoting::Command> Ask(const std::string& address, std::int32_t code,
                                       const std::string& topic) {
    const auto client = remoting::CreateClient({}, {});
    remoting::Command request = remoting::Command::Request(code);
    if (!topic.empty()) request.ext.Set("topic", topic);
    Result<remoting::Command> answer = client->CallSync(address, request, seconds(2));
    client->Stop();
    return answer;
  }
};

// Two answers that differ in the order of their members only have the same letters.
std::string Sorted(std::string text) {
  std::sort(text.begin(), text.end());
  return text;
}

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

TEST_F(Operations, NS_2_AnEmptyNameServerKnowsTheGroupAgainWithinSecondsAndSendsGoOn) {
  StartCluster();
  CreateTopic("Route", 4);
  OrderedLoad load(ClientOf("producer"), "Route", 10);
  ASSERT_TRUE(load.Start().ok());
  load.Send(100);
  cluster_->KillNameServer();
  load.Send(100);
  ASSERT_TRUE(cluster_->StartNameServer().ok());
  EXPECT_TRUE(Eventually(
      [&] {
        Result<client::TopicRoute> route = admin_->Route("Route");
        return route.ok() && route->brokers.size() == 1 && route->brokers[0].addresses.contains(0);
      },
      seconds(5)));
  load.Send(100);
  load.Drain();
  for (const std::string& error : load.errors()) ADD_FAILURE() << error;
}

TEST_F(Operations, NS_5_TwoNameServersAgreeAgainAfterOneWasAway) {
  NameServerProcess second;
  StartCluster({{"namesrvAddr", second.address()}});
  if (HasFatalFailure()) return;
  const auto route_at = [&](const std::string& address) -> std::string {
    const Result<remoting::Command> answer = Ask(address, remoting::kGetRouteInfoByTopic, "Away");
    return answer.ok() && answer->code == 0 ? answer->body : "";
  };
  const auto members_at = [&](const std::string& address) -> std::string {
    const Result<remoting::Command> answer = Ask(address, remoting::kGetBrokerClusterInfo, "");
    return answer.ok() && answer->code == 0 ? answer->body : "";
  };
  ASSERT_TRUE(second.Start(dir_));
  ASSERT_TRUE(Eventually([&] { return !members_at(second.address()).empty(); }, seconds(20)));
  second.Kill();
  CreateTopic("Away", 4);
  ASSERT_TRUE(second.Start(dir_));
  const std::string first = cluster_->namesrv_address();
  EXPECT_TRUE(Eventually(
      [&] {
        const std::string route = route_at(first);
        return !route.empty() && Sorted(route) == Sorted(route_at(second.address())) &&
               Sorted(members_at(first)) == Sorted(members_at(second.address()));
      },
      seconds(5)))
      << route_at(first) << "\n"
      << route_at(second.address());
}

TEST_F(Operations, NS_1_NS_3_AKilledPeerLeavesTheRouteAtOnceAndAnAddressNeverStandsTwice) {
  StartCluster();
  CreateTopic("Leave", 2);
  const std::size_t leader = Leader();
  const std::string gone = cluster_->brokers()[leader].client_address;
  ASSERT_TRUE(cluster_->Signal(leader, SIGKILL).ok());
  bool twice = false;
  std::set<std::string> seen;
  const auto look = [&] {  // true: somebody leads
    Result<std::vector<client::BrokerGroup>> groups = admin_->ClusterList();
    if (!groups.ok() || groups->size() != 1) return false;
    seen.clear();
    for (const auto& [id, address] : (*groups)[0].addresses)
      twice = !seen.insert(address).second || twice;
    return (*groups)[0].addresses.contains(0);
  };
  EXPECT_TRUE(Eventually([&] { return look() && !seen.contains(gone); }, seconds(5)));
  // It comes back as a follower: the others' places are as they were.
  ASSERT_TRUE(cluster_->StartBroker(leader).ok());
  EXPECT_TRUE(Eventually([&] { return look() && seen.size() == 3; }, seconds(30)));
  EXPECT_NE(Leader(), leader);
  EXPECT_FALSE(twice);
}

}  // namespace
}  // namespace triad
