// What one peer says of the broker's state, when others know it better.

#include <signal.h>

#include <future>
#include <tuple>

#include "tests/e2e/state_fixture.h"

namespace triad {
namespace {

using std::chrono::seconds;

// Clients greet every peer within half a minute; a planned restart must not cost them that.
TEST_F(State, APeerThatWasJustStartedTakesASubscriptionFromTheOthers) {
  StartCluster();
  CreateTopic("Subscribed", 1);
  const std::size_t leader = Leader();
  ASSERT_TRUE(Send(leader, "Subscribed", "x", 0).ok());
  remoting::HeartbeatData heartbeat;
  heartbeat.client_id = "c";
  heartbeat.consumers.emplace_back().group_name = "g_subscribed";
  heartbeat.consumers.back().subscriptions.emplace_back().topic = "Subscribed";
  heartbeat.consumers.back().subscriptions.back().sub_string = "*";
  remoting::Command greeting = remoting::Command::Request(remoting::kHeartBeat);
  greeting.body = heartbeat.Encode();
  const auto greeted = Ask((leader + 1) % 3, greeting);
  ASSERT_TRUE(greeted.ok() && greeted->code == 0);
  const auto pull = [&](const std::string& group) {
    remoting::PullMessageRequest header;
    header.consumer_group = group;
    header.topic = "Subscribed";
    header.max_msg_nums = 1;
    remoting::Command request = remoting::Command::Request(remoting::kPullMessage);
    header.Encode(&request.ext);
    const auto answer = Ask(leader, request);
    return answer.ok() ? answer->code : -1;
  };
  EXPECT_EQ(pull("g_subscribed"), remoting::kSuccess);
  EXPECT_EQ(pull("g_nobody"), remoting::kSubscriptionNotExist);
}

// It may lack the topic, the group or the permission that the leader has given.
TEST_F(State, APullIsNotRefusedByAFollowerWithoutItsLeader) {
  StartCluster({{"autoCreateSubscriptionGroup", "false"}});
  CreateTopic("Pulled", 1);
  const std::size_t leader = Leader();
  for (const char* name : {"open", "closed"}) {
    remoting::SubscriptionGroupConfigBody group;
    group.group_name = name;
    group.consume_enable = group.group_name == "open";
    remoting::Command request =
        remoting::Command::Request(remoting::kUpdateAndCreateSubscriptionGroup);
    request.body = group.Encode();
    const auto answer = Ask(leader, request);
    ASSERT_TRUE(answer.ok() && answer->code == remoting::kSuccess);
  }
  const std::tuple<const char*, std::int32_t, const char*, std::int32_t> wrong[] = {
      {"Nowhere", 0, "open", remoting::kTopicNotExist},
      {"Pulled", 7, "open", remoting::kInvalidParameter},
      {"Pulled", 0, "closed", remoting::kNoPermission},
      {"Pulled", 0, "nobody", remoting::kSubscriptionGroupNotExist}};
  const std::size_t follower = (leader + 1) % 3;
  const auto ask = [&](std::size_t i) {
    const auto& [topic, queue, group, code] = wrong[i];
    remoting::PullMessageRequest header;
    header.consumer_group = group;
    header.topic = topic;
    header.queue_id = queue;
    header.max_msg_nums = 1;
    remoting::Command request = remoting::Command::Request(remoting::kPullMessage);
    header.Encode(&request.ext);
    const auto answer = Ask(follower, request);
    return answer.ok() ? answer->code : -1;
  };
  for (std::size_t i = 0; i < std::size(wrong); ++i) EXPECT_EQ(ask(i), std::get<3>(wrong[i]));
  for (const std::size_t peer : {leader, (leader + 2) % 3}) {
    ASSERT_TRUE(cluster_->Signal(peer, SIGSTOP).ok());
    ASSERT_TRUE(Eventually([&] { return Stopped(peer); }, seconds(30)));
  }
  std::vector<std::future<int>> answers;
  for (std::size_t i = 0; i < std::size(wrong); ++i) {
    answers.push_back(std::async(std::launch::async, ask, i));
  }
  for (std::size_t i = 0; i < std::size(wrong); ++i)
    EXPECT_NE(answers[i].get(), std::get<3>(wrong[i]));
  for (const std::size_t peer : {leader, (leader + 2) % 3}) {
    ASSERT_TRUE(cluster_->Signal(peer, SIGCONT).ok());
  }
}

// Also what a change that changes nothing, or a removal of nothing, says.
TEST_F(State, TheConfigurationOfTopicsAndGroupsIsNotTakenFromALeaderThatHearsNoMajority) {
  StartCluster();
  CreateTopic("Settings", 3);
  remoting::SubscriptionGroupConfigBody group;
  group.group_name = "Settings";
  const std::size_t leader = Leader();
  const auto ask = [&](std::size_t peer, std::int32_t code, const std::string& topic) {
    remoting::Command request = remoting::Command::Request(code);
    if (code == remoting::kUpdateAndCreateTopic) {
      remoting::CreateTopicRequest header;
      header.topic = topic;
      header.read_queue_nums = header.write_queue_nums = 3;
      header.perm = 6;
      header.topic_filter_type = "SINGLE_TAG";
      header.Encode(&request.ext);
    } else if (code == remoting::kUpdateAndCreateSubscriptionGroup) {
      request.body = group.Encode();
    } else if (code == remoting::kGetSubscriptionGroupConfig) {
      request.ext.Set("group", topic);
    } else if (code == remoting::kDeleteSubscriptionGroup) {
      request.ext.Set("groupName", topic);
    } else {
      remoting::TopicRequest{topic}.Encode(&request.ext);
    }
    const Result<remoting::Command> answer = Ask(peer, request);
    return answer.ok() ? answer->code : -1;
  };
  const std::vector<std::size_t> followers = {(leader + 1) % 3, (leader + 2) % 3};
  for (std::size_t peer = 0; peer < 3; ++peer) {
    EXPECT_EQ(ask(peer, remoting::kGetTopicConfig, "Settings"), remoting::kSuccess);
    EXPECT_EQ(ask(peer, remoting::kGetTopicConfig, "Nothing"), remoting::kTopicNotExist);
    EXPECT_EQ(ask(peer, remoting::kUpdateAndCreateTopic, "Settings"), remoting::kSuccess);
    EXPECT_EQ(ask(peer, remoting::kDeleteTopicInBroker, "Nothing"), remoting::kSuccess);
    EXPECT_EQ(ask(peer, remoting::kUpdateAndCreateSubscriptionGroup, ""), remoting::kSuccess);
    EXPECT_EQ(ask(peer, remoting::kGetSubscriptionGroupConfig, "Settings"), remoting::kSuccess);
    EXPECT_EQ(ask(peer, remoting::kGetSubscriptionGroupConfig, "Nothing"),
              remoting::kSubscriptionGroupNotExist);
    EXPECT_EQ(ask(peer, remoting::kDeleteSubscriptionGroup, "Nothing"), remoting::kSuccess);
  }
  for (const std::size_t peer : followers) {
    ASSERT_TRUE(cluster_->Signal(peer, SIGSTOP).ok());
    ASSERT_TRUE(Eventually([&] { return Stopped(peer); }, seconds(30)));
  }
  const std::tuple<std::int32_t, const char*, std::int32_t> wrong[] = {
      {remoting::kGetTopicConfig, "Settings", remoting::kSuccess},
      {remoting::kGetTopicConfig, "Nothing", remoting::kTopicNotExist},
      {remoting::kUpdateAndCreateTopic, "Settings", remoting::kSuccess},
      {remoting::kDeleteTopicInBroker, "Nothing", remoting::kSuccess},
      {remoting::kGetSubscriptionGroupConfig, "Settings", remoting::kSuccess},
      {remoting::kGetSubscriptionGroupConfig, "Nothing", remoting::kSubscriptionGroupNotExist},
      {remoting::kUpdateAndCreateSubscriptionGroup, "", remoting::kSuccess},
      {remoting::kDeleteSubscriptionGroup, "Nothing", remoting::kSuccess}};
  std::vector<std::future<int>> answers;
  for (const auto& [code, topic, answer] : wrong) {
    answers.push_back(std::async(std::launch::async, ask, leader, code, topic));
  }
  for (std::size_t i = 0; i < answers.size(); ++i) {
    EXPECT_NE(answers[i].get(), std::get<2>(wrong[i])) << std::get<0>(wrong[i]);
  }
  for (const std::size_t peer : followers) ASSERT_TRUE(cluster_->Signal(peer, SIGCONT).ok());
}

}  // namespace
}  // namespace triad
