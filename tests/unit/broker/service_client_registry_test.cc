// Who is in which group, and who is told (wire.md §4.1, §7.1, cases.md OFS-5).

#include <glog/logging.h>
#include <gtest/gtest.h>

#include "broker/service/client_registry.h"
#include "tests/unit/broker/one_peer.h"
#include "tests/unit/log_lines.h"

namespace triad::broker {
namespace {

using std::chrono::seconds;

remoting::ConsumerData Consumer(const std::string& group, const std::string& topic,
                                const std::string& expression, std::int64_t version) {
  remoting::ConsumerData data;
  data.group_name = group;
  remoting::SubscriptionData subscription;
  subscription.topic = topic;
  subscription.sub_string = expression;
  subscription.sub_version = version;
  data.subscriptions.push_back(subscription);
  return data;
}

class ConsumerRegistryTest : public testing::Test {
 protected:
  std::shared_ptr<RecordingConnection> Connect(std::uint64_t id) {
    return std::make_shared<RecordingConnection>(id, "10.0.0.9:" + std::to_string(5000 + id));
  }
  ConsumerRegistry::Renewed Beat(const remoting::ConnectionPtr& connection,
                                 const remoting::ConsumerData& data, seconds at = seconds(0)) {
    const ClientInfo client{ClientId("client" + std::to_string(connection->id())), "JAVA", 400};
    auto renewed = registry_.Heartbeat(connection, client, data, false, TimePoint(at));
    CHECK(renewed.ok()) << renewed.status();
    return renewed.value();
  }

  std::vector<std::pair<std::string, std::size_t>> told_;  // group, members
  ConsumerRegistry registry_{3, [this](const GroupName& group, const std::vector<Member>& members) {
                               told_.emplace_back(group.value(), members.size());
                             }};
};

TEST_F(ConsumerRegistryTest, ANewMemberIsToldToAllAndARenewalToNobody) {
  const auto first = Connect(1);
  const auto second = Connect(2);
  EXPECT_TRUE(Beat(first, Consumer("g", "T", "*", 1)).is_new);
  EXPECT_TRUE(Beat(second, Consumer("g", "T", "*", 1)).is_new);
  EXPECT_FALSE(Beat(first, Consumer("g", "T", "*", 1)).is_new);
  using Told = std::vector<std::pair<std::string, std::size_t>>;
  EXPECT_EQ(told_, (Told{{"g", 1}, {"g", 2}}));
}

TEST_F(ConsumerRegistryTest, ABroadcastingGroupIsNotTold) {
  auto data = Consumer("g", "T", "*", 1);
  data.message_model = remoting::MessageModel::kBroadcasting;
  Beat(Connect(1), data);
  EXPECT_TRUE(told_.empty());
}

TEST_F(ConsumerRegistryTest, OnlyANewerSubscriptionReplacesTheOldOne) {
  const auto connection = Connect(1);
  Beat(connection, Consumer("g", "T", "a", 5));
  Beat(connection, Consumer("g", "T", "b", 5));
  EXPECT_EQ(registry_.FindSubscription(GroupName("g"), Topic("T"))->sub_string, "a");
  Beat(connection, Consumer("g", "T", "b", 6));
  EXPECT_EQ(registry_.FindSubscription(GroupName("g"), Topic("T"))->sub_string, "b");
}

TEST_F(ConsumerRegistryTest, ATopicThatIsNotSubscribedAnyMoreGoes) {
  const auto connection = Connect(1);
  Beat(connection, Consumer("g", "T", "*", 1));
  told_.clear();
  EXPECT_TRUE(Beat(connection, Consumer("g", "U", "*", 1)).topics_changed);
  EXPECT_EQ(registry_.FindSubscription(GroupName("g"), Topic("T")), nullptr);
  EXPECT_EQ(told_.size(), 1u);
}

TEST_F(ConsumerRegistryTest, AHeartbeatWithoutSubscriptionsKeepsTheStoredOnes) {
  const auto connection = Connect(1);
  Beat(connection, Consumer("g", "T", "a", 5));
  remoting::ConsumerData bare;
  bare.group_name = "g";
  ASSERT_TRUE(registry_.Heartbeat(connection, {}, bare, true, TimePoint()).ok());
  EXPECT_NE(registry_.FindSubscription(GroupName("g"), Topic("T")), nullptr);
}

TEST_F(ConsumerRegistryTest, TheEndOfAConnectionTakesItOutOfEveryGroup) {
  const auto first = Connect(1);
  const auto second = Connect(2);
  Beat(first, Consumer("g", "T", "*", 1));
  Beat(first, Consumer("h", "T", "*", 1));
  Beat(second, Consumer("g", "T", "*", 1));
  told_.clear();
  registry_.OnConnectionClosed(first);
  EXPECT_EQ(registry_.ClientIds(GroupName("g")), std::vector<ClientId>{ClientId("client2")});
  EXPECT_FALSE(registry_.Online(GroupName("h")));
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_EQ(told_[0].first, "g");
}

TEST_F(ConsumerRegistryTest, AConnectionThatEndedBeforeItsHeartbeatDoesNotStay) {
  const auto connection = Connect(1);
  connection->Close();
  Beat(connection, Consumer("g", "T", "*", 1));
  EXPECT_FALSE(registry_.Online(GroupName("g")));
}

TEST_F(ConsumerRegistryTest, ASilentMemberIsDroppedAndItsConnectionClosedAfterTwoMinutes) {
  const auto silent = Connect(1);
  const auto alive = Connect(2);
  Beat(silent, Consumer("g", "T", "*", 1), seconds(0));
  Beat(alive, Consumer("g", "T", "*", 1), seconds(60));
  registry_.Expire(TimePoint(seconds(119)));
  EXPECT_EQ(registry_.ClientIds(GroupName("g")).size(), 2u);
  registry_.Expire(TimePoint(seconds(120)));
  EXPECT_EQ(registry_.ClientIds(GroupName("g")), std::vector<ClientId>{ClientId("client2")});
  EXPECT_TRUE(silent->closed());
  EXPECT_FALSE(alive->closed());
}

TEST_F(ConsumerRegistryTest, NewcomersAreRefusedWhenFullAndMembersAreNot) {
  const auto first = Connect(1);
  Beat(first, Consumer("g", "T", "*", 1));
  Beat(Connect(2), Consumer("g", "T", "*", 1));
  Beat(Connect(3), Consumer("g", "T", "*", 1));
  const auto late =
      registry_.Heartbeat(Connect(4), {}, Consumer("g", "T", "*", 1), false, TimePoint());
  EXPECT_EQ(late.status().code(), StatusCode::kBusy);
  EXPECT_FALSE(Beat(first, Consumer("g", "T", "*", 1)).is_new);
  registry_.Unregister(first, GroupName("g"));
  EXPECT_TRUE(Beat(Connect(4), Consumer("g", "T", "*", 1)).is_new);
}

TEST_F(ConsumerRegistryTest, OFS_5_MembersThatSubscribeDifferentlyAreCountedAndNamedInAWarning) {
  Beat(Connect(1), Consumer("g", "T", "a", 1));
  EXPECT_EQ(registry_.subscription_conflicts(), 0u);
  const test::LogLines warnings(google::GLOG_WARNING);
  Beat(Connect(2), Consumer("g", "T", "b", 2));
  ASSERT_EQ(warnings.lines().size(), 1u);
  for (const char* word : {" g ", " T ", "\"a\"", "\"b\"", "client1", "client2"}) {
    EXPECT_NE(warnings.lines()[0].find(word), std::string::npos)
        << word << ": " << warnings.lines()[0];
  }
  EXPECT_EQ(registry_.subscription_conflicts(), 1u);
  EXPECT_EQ(registry_.FindSubscription(GroupName("g"), Topic("T"))->sub_string, "b");
}

TEST(ProducerRegistry, KnowsItsMembersUntilTheyLeave) {
  ProducerRegistry registry(2);
  const auto first = std::make_shared<RecordingConnection>(1, "a:1");
  const auto second = std::make_shared<RecordingConnection>(2, "a:2");
  ASSERT_TRUE(registry.Heartbeat(first, {}, "p", TimePoint(seconds(0))).ok());
  ASSERT_TRUE(registry.Heartbeat(second, {}, "p", TimePoint(seconds(60))).ok());
  const auto third = std::make_shared<RecordingConnection>(3, "a:3");
  EXPECT_EQ(registry.Heartbeat(third, {}, "p", TimePoint()).code(), StatusCode::kBusy);
  registry.Expire(TimePoint(seconds(120)));
  ASSERT_EQ(registry.Find("p").size(), 1u);
  EXPECT_EQ(registry.Find("p")[0].connection, second);
  registry.OnConnectionClosed(second);
  EXPECT_TRUE(registry.All().empty());
}

}  // namespace
}  // namespace triad::broker
