// Who may begin a group, and who may join one.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/dledger/node_harness.h"

namespace triad::dledger {
namespace {

bool AwaitReason(Cluster& cluster, std::size_t i, const std::string& part) {
  return cluster.board().Await(
      [&] { return cluster.node(i).status().not_ready_reason.find(part) != std::string::npos; });
}

bool AwaitConnected(Cluster& cluster, std::size_t i, std::size_t to) {
  return cluster.board().Await([&] {
    for (const NodeStatus::Peer& peer : cluster.node(i).status().peers) {
      if (peer.id == cluster.options(to).self) return peer.connected;
    }
    return false;
  });
}

TEST(NodeStart, EmptyStoresWaitForEverybody) {
  Cluster cluster(3);
  ASSERT_TRUE(cluster.Start(0).ok());
  ASSERT_TRUE(cluster.Start(1).ok());
  ASSERT_TRUE(AwaitConnected(cluster, 0, 1));
  ASSERT_TRUE(AwaitConnected(cluster, 1, 0));
  // Two of three know each other; what they wait for is the third and nobody else.
  EXPECT_TRUE(AwaitReason(cluster, 0, "waiting for n2"));
  EXPECT_TRUE(AwaitReason(cluster, 1, "waiting for n2"));
  EXPECT_EQ(cluster.node(0).leader_info().term, Term(0));
  ASSERT_TRUE(cluster.Start(2).ok());
  cluster.AwaitLeader();
}

TEST(NodeStart, FoundersThatLostTheirFirstVoteBeginAgainInALaterTerm) {
  Cluster cluster(3);
  cluster.SaveVote(2, HardState{.term = Term(7), .voted_for = PeerId("n2")});
  cluster.StartAll();
  cluster.Commit("founded");
  EXPECT_GT(cluster.node(0).leader_info().term, Term(7));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_FALSE(cluster.node(i).leader_info().recovering);
}

TEST(NodeStart, TheOperatorMayGoOnWithoutOne) {
  Cluster cluster(3);
  cluster.options(0).bootstrap_without = {PeerId("n2")};
  cluster.options(1).bootstrap_without = {PeerId("n2")};
  ASSERT_TRUE(cluster.Start(0).ok());
  ASSERT_TRUE(cluster.Start(1).ok());
  cluster.Commit("two of three");
}

TEST(NodeStart, AfterTheFirstStartAMajorityIsEnough) {
  Cluster cluster(3);
  cluster.StartAll();
  cluster.Commit("all three");
  for (std::size_t i = 0; i < 3; ++i) cluster.Stop(i);
  ASSERT_TRUE(cluster.Start(1).ok());
  ASSERT_TRUE(cluster.Start(2).ok());
  cluster.Commit("two of three");
}

TEST(NodeStart, APeerOfAnotherGroupIsRefused) {
  Cluster cluster(3);
  cluster.options(2).group = "another";
  ASSERT_TRUE(cluster.Start(0).ok());
  ASSERT_TRUE(cluster.Start(1).ok());
  ASSERT_TRUE(cluster.Start(2).ok());
  ASSERT_TRUE(AwaitConnected(cluster, 0, 1));
  ASSERT_TRUE(AwaitConnected(cluster, 1, 0));
  EXPECT_TRUE(AwaitReason(cluster, 0, "waiting for n2"));
  EXPECT_TRUE(AwaitReason(cluster, 2, "waiting for n0, n1"));
  for (const NodeStatus::Peer& peer : cluster.node(2).status().peers) {
    EXPECT_FALSE(peer.connected);
  }
}

TEST(NodeStart, APeerWithAnotherGroupsLogIsRefused) {
  Cluster first(3);
  first.StartAll();
  first.Commit("one");
  for (std::size_t i = 0; i < 3; ++i) first.Stop(i);
  // The same names and ports, another group id: n2 of the one meets n0 and n1 of the other.
  Cluster second(3);
  for (std::size_t i = 0; i < 3; ++i) second.options(i).peers = first.options(i).peers;
  second.StartAll();
  second.Commit("other");
  second.Stop(2);
  ASSERT_TRUE(first.Start(2).ok());
  second.Commit("without the stranger");
  EXPECT_TRUE(first.board().Await([&] {
    return first.node(2).leader_info().role != Role::kFollower;  // it campaigns, alone
  }));
  for (const NodeStatus::Peer& peer : first.node(2).status().peers) EXPECT_FALSE(peer.connected);
  EXPECT_FALSE(first.recorder(2).has_applied("without the stranger"));
}

TEST(NodeStart, AMachineRestartedUnderAsyncFlushRecoversFromTheOthers) {
  Cluster cluster(3);
  for (std::size_t i = 0; i < 3; ++i) cluster.options(i).sync_flush = false;
  cluster.StartAll();
  cluster.Commit("before");
  cluster.Reboot({1});
  cluster.StartAll();
  cluster.Commit("after");
  const std::vector<LeaderInfo> changes = cluster.recorder(1).changes();
  ASSERT_FALSE(changes.empty());
  EXPECT_TRUE(changes.front().recovering);
  EXPECT_TRUE(cluster.board().Await([&] { return !cluster.node(1).leader_info().recovering; }));
}

TEST(NodeStart, WhenAllMachinesRestartedUnderAsyncFlushTheGroupGoesOn) {
  Cluster cluster(3);
  for (std::size_t i = 0; i < 3; ++i) cluster.options(i).sync_flush = false;
  cluster.StartAll();
  cluster.Commit("before");
  cluster.Reboot({0, 1, 2});
  cluster.StartAll();
  EXPECT_TRUE(cluster.AwaitAppliedByAll("before"));
  cluster.Commit("after");
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(cluster.board().Await([&] { return !cluster.node(i).leader_info().recovering; }));
  }
}

TEST(NodeStart, ALoneMachineRestartedUnderAsyncFlushGoesOn) {
  Cluster cluster(1);
  cluster.options(0).sync_flush = false;
  cluster.StartAll();
  cluster.Commit("before");
  cluster.Reboot({0});
  cluster.StartAll();
  cluster.Commit("after");
  EXPECT_TRUE(cluster.recorder(0).has_applied("before"));
}

TEST(NodeStart, AMachineRestartedUnderSyncFlushMissesNothing) {
  Cluster cluster(3);
  cluster.StartAll();
  cluster.Commit("before");
  cluster.Reboot({0, 1, 2});
  cluster.StartAll();
  cluster.Commit("after");
  for (std::size_t i = 0; i < 3; ++i) {
    for (const LeaderInfo& info : cluster.recorder(i).changes()) EXPECT_FALSE(info.recovering);
  }
}

TEST(NodeStart, ADifferentPeerListIsOnlyAWarning) {
  Cluster cluster(3);
  // n2 knows n0 by a name.
  cluster.options(2).peers[0].host = "localhost";
  cluster.StartAll();
  cluster.Commit("all three");
}

TEST(NodeStart, APeerPortInUseIsAnError) {
  Cluster cluster(3);
  ASSERT_TRUE(cluster.Start(0).ok());
  cluster.options(1).peers[1].port = cluster.options(0).peers[0].port;
  const Status status = cluster.Start(1);
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("dLegerPeers"), std::string_view::npos);
}

TEST(NodeStart, SelfMustBeAmongThePeers) {
  Cluster cluster(3);
  cluster.options(0).self = PeerId("n7");
  EXPECT_EQ(cluster.Start(0).code(), StatusCode::kInvalidArgument);
}

TEST(NodeStart, BadBytesCostTheSenderItsConnectionAndNobodyElseAnything) {
  Cluster cluster(3);
  cluster.StartAll();
  cluster.Commit("before");
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_GE(fd, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(cluster.options(0).peers[0].port);
  ASSERT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  const std::string garbage = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  ASSERT_EQ(::send(fd, garbage.data(), garbage.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(garbage.size()));
  char byte = 0;
  EXPECT_LE(::recv(fd, &byte, 1, 0), 0);  // closed, without an answer
  ::close(fd);
  cluster.Commit("behind");
}

}  // namespace
}  // namespace triad::dledger
