// The registration rules of wire.md §3.2, one by one, and what the table answers.

#include "nameserver/route_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace triad::nameserver {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

constexpr TimePoint kTableStart = TimePoint(std::chrono::hours(1));

remoting::TopicConfigBody TopicConfig(std::int32_t queues, std::int32_t perm = 6,
                                      std::int32_t flags = 0) {
  remoting::TopicConfigBody config;
  config.read_queue_nums = queues;
  config.write_queue_nums = queues;
  config.perm = perm;
  config.topic_sys_flag = flags;
  return config;
}

// A peer of group broker-a in cluster C with topics T1 and T2; tests change what they are about.
BrokerRegistration Peer(std::int64_t id, const std::string& address, std::int64_t term = 1) {
  BrokerRegistration r;
  r.cluster = "C";
  r.broker_name = "broker-a";
  r.address = address;
  r.ha_address = address + "/ha";
  r.broker_id = id;
  r.enable_acting_master = false;
  r.version = {.counter = 1, .state_version = term, .timestamp_ms = 1000};
  r.topics = {{"T1", TopicConfig(4)}, {"T2", TopicConfig(8)}};
  r.connection = 1;
  return r;
}

class RouteTableTest : public testing::Test {
 protected:
  RegistrationAnswer Register(const BrokerRegistration& r, TimePoint now = kTableStart) {
    const auto answer = table_.Register(r, now);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? *answer : RegistrationAnswer{};
  }
  std::map<std::int64_t, std::string> Addresses(const std::string& name = "broker-a") const {
    const remoting::BrokerData* broker = table_.Broker(name);
    return broker == nullptr ? std::map<std::int64_t, std::string>{} : broker->broker_addrs;
  }
  remoting::QueueData Queues(const std::string& topic) const {
    const auto route = table_.Route(topic);
    return route ? route->queue_datas.at(0) : remoting::QueueData{};
  }

  RouteTable table_;
};

TEST_F(RouteTableTest, ARegisteredLeaderIsInTheRouteOfItsTopics) {
  Register(Peer(0, "h1:1"));
  const auto route = table_.Route("T1");
  ASSERT_TRUE(route.has_value());
  ASSERT_THAT(route->queue_datas, SizeIs(1));
  EXPECT_EQ(route->queue_datas[0].broker_name, "broker-a");
  EXPECT_EQ(route->queue_datas[0].read_queue_nums, 4);
  EXPECT_EQ(route->queue_datas[0].write_queue_nums, 4);
  EXPECT_EQ(route->queue_datas[0].perm, 6);
  ASSERT_THAT(route->broker_datas, SizeIs(1));
  EXPECT_EQ(route->broker_datas[0].cluster, "C");
  EXPECT_THAT(route->broker_datas[0].broker_addrs, ElementsAre(Pair(0, "h1:1")));
  EXPECT_FALSE(table_.Route("T3").has_value());
}

TEST_F(RouteTableTest, Rule1AGroupJoinsItsClusterAndMovesWithItsClusterName) {
  Register(Peer(0, "h1:1"));
  EXPECT_THAT(table_.Clusters().cluster_addr_table,
              ElementsAre(Pair("C", ElementsAre("broker-a"))));
  BrokerRegistration renamed = Peer(0, "h1:1");
  renamed.cluster = "D";
  Register(renamed);
  EXPECT_THAT(table_.Clusters().cluster_addr_table,
              ElementsAre(Pair("D", ElementsAre("broker-a"))));
  EXPECT_EQ(table_.Broker("broker-a")->cluster, "D");
}

TEST_F(RouteTableTest, Rule2AnAddressHasOneId) {
  Register(Peer(0, "h1:1"));
  Register(Peer(1, "h2:1"));
  Register(Peer(0, "h2:1", 2));
  EXPECT_THAT(Addresses(), ElementsAre(Pair(0, "h2:1")));
}

TEST_F(RouteTableTest, Rule2AnAddressServesOneGroup) {
  Register(Peer(0, "h1:1"));
  BrokerRegistration other = Peer(0, "h1:1");
  other.broker_name = "broker-b";
  Register(other);
  EXPECT_THAT(Addresses("broker-a"), IsEmpty());
  EXPECT_THAT(Addresses("broker-b"), ElementsAre(Pair(0, "h1:1")));
  EXPECT_THAT(table_.Route("T1")->queue_datas, SizeIs(1));
}

TEST_F(RouteTableTest, Rule3ADeposedLeadersLateRegistrationIsIgnored) {
  Register(Peer(0, "h1:1", 5));
  Register(Peer(0, "h2:1", 6));  // the new leader
  BrokerRegistration late = Peer(0, "h1:1", 5);
  late.topics["T3"] = TopicConfig(1);
  const RegistrationAnswer answer = Register(late);
  EXPECT_EQ(answer.leader_address, "");
  EXPECT_THAT(Addresses(), ElementsAre(Pair(0, "h2:1")));
  EXPECT_FALSE(table_.Route("T3").has_value());
  EXPECT_EQ(table_.VersionOf("h1:1"), nullptr);
}

TEST_F(RouteTableTest, Rule3AppliesRule2AllTheSame) {
  Register(Peer(1, "h1:1", 5));
  Register(Peer(0, "h2:1", 6));
  Register(Peer(0, "h1:1", 5));
  EXPECT_THAT(Addresses(), ElementsAre(Pair(0, "h2:1")));
}

TEST_F(RouteTableTest, Rule3AnEqualOrLaterTermTakesTheId) {
  Register(Peer(0, "h1:1", 5));
  Register(Peer(0, "h2:1", 5));
  EXPECT_THAT(Addresses(), ElementsAre(Pair(0, "h2:1")));
  Register(Peer(0, "h1:1", 6));
  EXPECT_THAT(Addresses(), ElementsAre(Pair(0, "h1:1")));
}

TEST_F(RouteTableTest, Rule3TheSameAddressMayComeBackWithAnEarlierTerm) {
  Register(Peer(0, "h1:1", 5));
  BrokerRegistration wiped = Peer(0, "h1:1", 1);
  wiped.topics["T1"] = TopicConfig(2);
  Register(wiped);
  EXPECT_EQ(Queues("T1").read_queue_nums, 2);
}

// Both dial from their own machine and say leaderIP.
TEST_F(RouteTableTest, Rule3HoldsBetweenLeadersThatShareOneAddress) {
  BrokerRegistration old_leader = Peer(0, "vip:1", 5);
  Register(old_leader);
  BrokerRegistration new_leader = Peer(0, "vip:1", 6);
  new_leader.connection = 2;
  Register(new_leader);
  old_leader.topics["T3"] = TopicConfig(1);
  old_leader.topics["T1"] = TopicConfig(2);
  Register(old_leader);  // delayed
  EXPECT_THAT(Addresses(), ElementsAre(Pair(0, "vip:1")));
  EXPECT_EQ(table_.VersionOf("vip:1")->state_version, 6);
  EXPECT_EQ(Queues("T1").read_queue_nums, 4);
  EXPECT_FALSE(table_.Route("T3").has_value());
  EXPECT_THAT(table_.ConnectionClosed(1), IsEmpty());
  EXPECT_THAT(table_.ConnectionClosed(2), SizeIs(1));
}

TEST_F(RouteTableTest, AHeartbeatOfAnEarlierTermDoesNothingForTheAddressOfALaterLeader) {
  BrokerRegistration new_leader = Peer(0, "vip:1", 6);
  new_leader.connection = 2;
  Register(new_leader);
  EXPECT_FALSE(table_.Heartbeat("vip:1", 1, kTableStart + milliseconds(100000), 5));
  EXPECT_THAT(table_.ConnectionClosed(1), IsEmpty());
  EXPECT_TRUE(table_.Heartbeat("vip:1", 2, kTableStart + milliseconds(1000), 6));
  EXPECT_THAT(table_.Expire(kTableStart + milliseconds(121000)), SizeIs(1));
}

TEST_F(RouteTableTest, AHeartbeatOfALaterTermThanRegisteredCounts) {
  Register(Peer(0, "h1:1", 6));
  EXPECT_TRUE(table_.Heartbeat("h1:1", 1, kTableStart, 7));
}

TEST_F(RouteTableTest, Rule3AHolderThatIsNoLongerAliveDoesNotCount) {
  BrokerRegistration holder = Peer(0, "h1:1", 9);
  holder.connection = 7;
  Register(holder);
  Register(Peer(1, "h2:1", 5));
  table_.ConnectionClosed(7);
  Register(Peer(0, "h2:1", 5));
  EXPECT_THAT(Addresses(), ElementsAre(Pair(0, "h2:1")));
}

TEST_F(RouteTableTest, Rule4TheFirstRegistrationOfAnIdWithOneTopicIsRefusedAndChangesNothing) {
  BrokerRegistration one = Peer(0, "h1:1");
  one.topics.erase("T2");
  const auto refused = table_.Register(one, kTableStart);
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("register broker failed"));
  EXPECT_EQ(table_.Broker("broker-a"), nullptr);
  EXPECT_THAT(table_.Clusters().cluster_addr_table, IsEmpty());

  Register(Peer(1, "h1:1"));
  EXPECT_FALSE(table_.Register(one, kTableStart).ok());
  EXPECT_THAT(Addresses(), ElementsAre(Pair(1, "h1:1")));  // still there under its old id
}

TEST_F(RouteTableTest, Rule4AKnownIdMayRegisterOneTopicAndAFirstOneNone) {
  Register(Peer(0, "h1:1"));
  BrokerRegistration one = Peer(0, "h1:1");
  one.topics = {{"T3", TopicConfig(2)}};
  Register(one);
  EXPECT_EQ(Queues("T3").read_queue_nums, 2);
  BrokerRegistration none = Peer(1, "h2:1");
  none.topics.clear();
  Register(none);
  EXPECT_THAT(Addresses(), SizeIs(2));
}

TEST_F(RouteTableTest, Rule5TheNewLeaderReplacesTheOldOneAtOnce) {
  Register(Peer(0, "h1:1", 1));
  Register(Peer(2, "h2:1", 1));
  Register(Peer(0, "h2:1", 2));
  EXPECT_THAT(Addresses(), ElementsAre(Pair(0, "h2:1")));
  Register(Peer(1, "h1:1", 2));  // the old one follows
  EXPECT_THAT(Addresses(), ElementsAre(Pair(0, "h2:1"), Pair(1, "h1:1")));
}

TEST_F(RouteTableTest, Rule6AnUnchangedVersionChangesNoQueues) {
  Register(Peer(0, "h1:1"));
  BrokerRegistration same = Peer(0, "h1:1");
  same.topics["T1"] = TopicConfig(16);
  Register(same);
  EXPECT_EQ(Queues("T1").read_queue_nums, 4);
}

TEST_F(RouteTableTest, Rule6ADifferentVersionChangesQueues) {
  for (const remoting::DataVersion& version :
       {remoting::DataVersion{2, 1, 1000}, remoting::DataVersion{1, 2, 1000},
        remoting::DataVersion{1, 1, 999}}) {
    RouteTable table;
    ASSERT_TRUE(table.Register(Peer(0, "h1:1"), kTableStart).ok());
    BrokerRegistration changed = Peer(0, "h1:1");
    changed.topics["T1"] = TopicConfig(16);
    changed.version = version;
    ASSERT_TRUE(table.Register(changed, kTableStart).ok());
    EXPECT_EQ(table.Route("T1")->queue_datas[0].read_queue_nums, 16);
  }
}

TEST_F(RouteTableTest, Rule6TheFirstRegistrationOfAnIdChangesQueuesWhateverItsVersion) {
  Register(Peer(0, "h1:1"));
  BrokerRegistration peer = Peer(1, "h2:1");
  peer.topics["T1"] = TopicConfig(16);
  Register(peer);
  table_.Unregister("broker-a", "h1:1");
  peer.broker_id = 0;  // it leads now, with the version it followed with
  Register(peer);
  EXPECT_EQ(Queues("T1").read_queue_nums, 16);
}

TEST_F(RouteTableTest, Rule6AnUnknownTopicIsAddedEvenWithAnUnchangedVersion) {
  Register(Peer(0, "h1:1"));
  table_.DeleteTopic("T1", "");
  Register(Peer(0, "h1:1"));
  EXPECT_EQ(Queues("T1").read_queue_nums, 4);
}

TEST_F(RouteTableTest, Rule6AFollowersTopicsDoNotCountWhileThereIsALeader) {
  Register(Peer(0, "h1:1"));
  BrokerRegistration follower = Peer(1, "h2:1");
  follower.topics = {{"T1", TopicConfig(99)}, {"T9", TopicConfig(1)}};
  Register(follower);
  EXPECT_EQ(Queues("T1").read_queue_nums, 4);
  EXPECT_FALSE(table_.Route("T9").has_value());
}

TEST_F(RouteTableTest, Rule6WithoutALeaderTheSmallestIdsTopicsCount) {
  Register(Peer(2, "h2:1"));
  EXPECT_EQ(Queues("T1").read_queue_nums, 4);
  EXPECT_EQ(Queues("T1").perm, 6);
  BrokerRegistration higher = Peer(3, "h3:1");
  higher.topics["T9"] = TopicConfig(1);
  Register(higher);
  EXPECT_FALSE(table_.Route("T9").has_value());
}

TEST_F(RouteTableTest, Rule6AnOldBrokersFollowerNeverStandsIn) {
  BrokerRegistration old = Peer(1, "h1:1");
  old.enable_acting_master = std::nullopt;
  Register(old);
  EXPECT_FALSE(table_.Route("T1").has_value());
}

TEST_F(RouteTableTest, Rule6AnActingLeaderCannotBeWrittenTo) {
  BrokerRegistration acting = Peer(1, "h1:1");
  acting.enable_acting_master = true;
  acting.topics = {{"T1", TopicConfig(4)}, {"T2", TopicConfig(4)}};
  Register(acting);
  EXPECT_EQ(Queues("T1").perm, 4);
}

TEST_F(RouteTableTest, Rule6MissingTopicsStayUnlessToldOtherwise) {
  Register(Peer(0, "h1:1"));
  BrokerRegistration fewer = Peer(0, "h1:1");
  fewer.version.counter = 2;
  fewer.topics.erase("T2");
  Register(fewer);
  EXPECT_TRUE(table_.Route("T2").has_value());
  fewer.version.counter = 3;
  fewer.delete_missing_topics = true;
  Register(fewer);
  EXPECT_FALSE(table_.Route("T2").has_value());
  EXPECT_TRUE(table_.Route("T1").has_value());
}

TEST_F(RouteTableTest, Rule7RemembersTheVersionAndTheTimeout) {
  BrokerRegistration r = Peer(0, "h1:1");
  r.timeout = milliseconds(10000);
  Register(r);
  ASSERT_NE(table_.VersionOf("h1:1"), nullptr);
  EXPECT_EQ(*table_.VersionOf("h1:1"), r.version);
  EXPECT_THAT(table_.Expire(kTableStart + milliseconds(9999)), IsEmpty());
  EXPECT_THAT(table_.Expire(kTableStart + milliseconds(10000)), SizeIs(1));
  EXPECT_FALSE(table_.Route("T1").has_value());
}

TEST_F(RouteTableTest, Rule7WithoutATimeoutItIsTwoMinutes) {
  Register(Peer(0, "h1:1"));
  EXPECT_THAT(table_.Expire(kTableStart + milliseconds(119999)), IsEmpty());
  EXPECT_THAT(table_.Expire(kTableStart + milliseconds(120000)), SizeIs(1));
}

TEST_F(RouteTableTest, Rule8AFollowerLearnsTheLiveLeader) {
  EXPECT_EQ(Register(Peer(0, "h1:1")).leader_address, "");
  const RegistrationAnswer answer = Register(Peer(1, "h2:1"));
  EXPECT_EQ(answer.leader_address, "h1:1");
  EXPECT_EQ(answer.leader_ha_address, "h1:1/ha");
}

TEST_F(RouteTableTest, Rule8WithoutALeaderThereIsNoAddress) {
  EXPECT_EQ(Register(Peer(1, "h2:1")).leader_address, "");
}

TEST_F(RouteTableTest, RefusesANegativeIdAndEmptyNames) {
  EXPECT_FALSE(table_.Register(Peer(-1, "h1:1"), kTableStart).ok());
  for (auto member : {&BrokerRegistration::cluster, &BrokerRegistration::broker_name,
                      &BrokerRegistration::address}) {
    BrokerRegistration r = Peer(0, "h1:1");
    (r.*member).clear();
    EXPECT_EQ(table_.Register(r, kTableStart).status().code(), StatusCode::kInvalidArgument);
  }
  EXPECT_THAT(table_.Clusters().broker_addr_table, IsEmpty());
}

TEST_F(RouteTableTest, RefusesWhatWouldExceedALimit) {
  RouteTable table({.brokers = 1, .addresses = 2, .topics = 2});
  ASSERT_TRUE(table.Register(Peer(0, "h1:1"), kTableStart).ok());
  BrokerRegistration other_name = Peer(0, "h2:1");
  other_name.broker_name = "broker-b";
  EXPECT_EQ(table.Register(other_name, kTableStart).status().code(), StatusCode::kBusy);
  BrokerRegistration more_topics = Peer(0, "h1:1");
  more_topics.topics["T3"] = TopicConfig(1);
  EXPECT_EQ(table.Register(more_topics, kTableStart).status().code(), StatusCode::kBusy);
  ASSERT_TRUE(table.Register(Peer(1, "h2:1"), kTableStart).ok());
  EXPECT_EQ(table.Register(Peer(2, "h3:1"), kTableStart).status().code(), StatusCode::kBusy);
  EXPECT_EQ(table.SetQueues("T3", {Queues("T1")}).ok(), false);
}

TEST_F(RouteTableTest, AHeartbeatKeepsAnAddressAliveAndBindsItToItsConnection) {
  Register(Peer(0, "h1:1"));
  EXPECT_TRUE(table_.Heartbeat("h1:1", 2, kTableStart + milliseconds(100000)));
  EXPECT_THAT(table_.Expire(kTableStart + milliseconds(219999)), IsEmpty());
  EXPECT_THAT(table_.ConnectionClosed(1), IsEmpty());
  EXPECT_THAT(table_.ConnectionClosed(2), SizeIs(1));
  EXPECT_FALSE(table_.Heartbeat("h1:1", 2, kTableStart));
}

TEST_F(RouteTableTest, ABrokenConnectionRemovesItsAddressesAtOnceAndNoOthers) {
  Register(Peer(0, "h1:1"));
  BrokerRegistration follower = Peer(1, "h2:1");
  follower.connection = 2;
  Register(follower);
  const auto removed = table_.ConnectionClosed(1);
  ASSERT_THAT(removed, SizeIs(1));
  EXPECT_EQ(removed[0].broker_name, "broker-a");
  EXPECT_EQ(removed[0].address, "h1:1");
  EXPECT_EQ(removed[0].connection, 1u);
  EXPECT_THAT(Addresses(), ElementsAre(Pair(1, "h2:1")));
  EXPECT_EQ(Queues("T1").perm, 6);  // queues stay while an address is left
}

TEST_F(RouteTableTest, TheOldConnectionOfARegisteredAnewAddressDoesNotRemoveIt) {
  Register(Peer(0, "h1:1"));
  BrokerRegistration again = Peer(0, "h1:1");
  again.connection = 2;
  Register(again);
  EXPECT_THAT(table_.ConnectionClosed(1), IsEmpty());
  EXPECT_TRUE(table_.Route("T1").has_value());
}

TEST_F(RouteTableTest, TheLastAddressTakesItsQueuesTopicsAndClusterAlong) {
  Register(Peer(0, "h1:1"));
  BrokerRegistration other = Peer(0, "h9:1");
  other.broker_name = "broker-b";
  other.topics.erase("T2");
  other.topics["T3"] = TopicConfig(1);
  Register(other);
  table_.Unregister("broker-a", "h1:1");
  EXPECT_THAT(table_.Topics(), ElementsAre("T1", "T3"));
  EXPECT_THAT(table_.Route("T1")->queue_datas, SizeIs(1));
  table_.Unregister("broker-b", "h9:1");
  EXPECT_THAT(table_.Topics(), IsEmpty());
  EXPECT_THAT(table_.Clusters().cluster_addr_table, IsEmpty());
  EXPECT_THAT(table_.Clusters().broker_addr_table, IsEmpty());
}

TEST_F(RouteTableTest, UnregisteringAnUnknownAddressChangesNothing) {
  Register(Peer(0, "h1:1"));
  table_.Unregister("broker-a", "h7:1");
  table_.Unregister("broker-x", "h7:1");
  EXPECT_THAT(Addresses(), SizeIs(1));
}

TEST_F(RouteTableTest, AGroupWithActingLeadersLosesTheWriteBitWithItsLeader) {
  BrokerRegistration leader = Peer(0, "h1:1");
  leader.enable_acting_master = true;
  Register(leader);
  BrokerRegistration follower = Peer(1, "h2:1");
  follower.enable_acting_master = true;
  Register(follower);
  table_.Unregister("broker-a", "h1:1");
  EXPECT_EQ(Queues("T1").perm, 4);
}

TEST_F(RouteTableTest, WipingAndAddingTheWritePermCountsEveryTopicOfTheBroker) {
  Register(Peer(0, "h1:1"));
  EXPECT_EQ(table_.WipeWritePerm("broker-a"), 2);
  EXPECT_EQ(Queues("T1").perm, 4);
  EXPECT_EQ(table_.WipeWritePerm("broker-a"), 2);
  Register(Peer(0, "h1:1"));  // the same version keeps it wiped
  EXPECT_EQ(Queues("T1").perm, 4);
  EXPECT_EQ(table_.AddWritePerm("broker-a"), 2);
  EXPECT_EQ(Queues("T1").perm, 6);
  EXPECT_EQ(table_.WipeWritePerm("nobody"), 0);
  EXPECT_EQ(table_.AddWritePerm("nobody"), 0);
}

TEST_F(RouteTableTest, DeletesATopicEverywhereOrInOneCluster) {
  Register(Peer(0, "h1:1"));
  BrokerRegistration other = Peer(0, "h9:1");
  other.broker_name = "broker-b";
  other.cluster = "D";
  Register(other);
  table_.DeleteTopic("T1", "nowhere");
  EXPECT_THAT(table_.Route("T1")->queue_datas, SizeIs(2));
  table_.DeleteTopic("T1", "D");
  EXPECT_THAT(table_.Route("T1")->queue_datas, SizeIs(1));
  table_.DeleteTopic("T1", "C");
  EXPECT_FALSE(table_.Route("T1").has_value());
  table_.DeleteTopic("T2", "");
  EXPECT_THAT(table_.Topics(), IsEmpty());
}

TEST_F(RouteTableTest, SetsQueuesOfRegisteredBrokersOnly) {
  Register(Peer(0, "h1:1"));
  remoting::QueueData queues = Queues("T1");
  ASSERT_TRUE(table_.SetQueues("T5", {queues}).ok());
  EXPECT_EQ(Queues("T5").read_queue_nums, 4);
  queues.broker_name = "ghost";
  EXPECT_THAT(std::string(table_.SetQueues("T6", {queues}).message()), HasSubstr("ghost"));
  EXPECT_FALSE(table_.Route("T6").has_value());
}

TEST_F(RouteTableTest, ListsTopicsByClusterAndFlags) {
  BrokerRegistration r = Peer(0, "h1:1");
  r.topics = {{"plain", TopicConfig(1)},
              {"unit", TopicConfig(1, 6, 1)},
              {"sub", TopicConfig(1, 6, 2)},
              {"both", TopicConfig(1, 6, 3)}};
  Register(r);
  EXPECT_THAT(table_.Topics(), ElementsAre("both", "plain", "sub", "unit"));
  EXPECT_THAT(table_.TopicsOfCluster("C"), SizeIs(4));
  EXPECT_THAT(table_.TopicsOfCluster("D"), IsEmpty());
  EXPECT_THAT(table_.TopicsByFlags(kTopicFlagUnit, 0), ElementsAre("both", "unit"));
  EXPECT_THAT(table_.TopicsByFlags(kTopicFlagUnitSub, 0), ElementsAre("both", "sub"));
  EXPECT_THAT(table_.TopicsByFlags(kTopicFlagUnitSub, kTopicFlagUnit), ElementsAre("sub"));
}

TEST_F(RouteTableTest, SystemTopicsAreClusterAndBrokerNamesWithAnyAddress) {
  EXPECT_THAT(table_.SystemTopics().topic_list, IsEmpty());
  EXPECT_EQ(table_.SystemTopics().broker_addr, "");
  Register(Peer(3, "h1:1"));
  EXPECT_THAT(table_.SystemTopics().topic_list, ElementsAre("C", "broker-a"));
  EXPECT_EQ(table_.SystemTopics().broker_addr, "h1:1");
}

}  // namespace
}  // namespace triad::nameserver
