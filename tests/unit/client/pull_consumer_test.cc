// The pull consumer and admin calls against a small in-memory cluster over loopback sockets.

#include "triad/pull_consumer.h"

#include <gtest/gtest.h>

#include "client/message_codec.h"
#include "remoting/codes.h"
#include "tests/unit/client/fake_cluster.h"
#include "triad/admin.h"

namespace triad::client {
namespace {

using remoting::Command;

class PullConsumerTest : public testing::Test {
 protected:
  void SetUp() override {
    cluster_.CreateTopic("T", 2);
    PullConsumerOptions options;
    options.client = cluster_.client_options();
    options.group = "g";
    consumer_ = std::make_unique<PullConsumer>(options);
    ASSERT_TRUE(consumer_->Start().ok());
  }

  const MessageQueue queue_{"T", FakeCluster::kBroker, 1};
  FakeCluster cluster_;
  std::unique_ptr<PullConsumer> consumer_;
};

TEST_F(PullConsumerTest, ReadsAQueueFromAnOffset) {
  for (int i = 0; i < 5; ++i) cluster_.Put("T", 1, std::to_string(i));
  const auto queues = consumer_->Queues("T");
  ASSERT_TRUE(queues.ok()) << queues.status();
  EXPECT_EQ(queues->size(), 2u);
  const auto pulled = consumer_->Pull(queue_, "*", 2, 2);
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  EXPECT_EQ(pulled->status, PullStatus::kFound);
  ASSERT_EQ(pulled->messages.size(), 2u);
  EXPECT_EQ(pulled->messages[0].body, "2");
  EXPECT_EQ(pulled->next_begin_offset, 4);
  EXPECT_EQ(pulled->max_offset, 5);
  EXPECT_EQ(consumer_->Pull(queue_, "*", 5, 10)->status, PullStatus::kNoNewMessage);
  EXPECT_EQ(consumer_->Pull(queue_, "*", 9, 10)->status, PullStatus::kOffsetIllegal);
}

TEST_F(PullConsumerTest, WaitsForAFirstMessageWhenAskedTo) {
  std::thread later([&] {
    EXPECT_TRUE(cluster_.Wait([&] { return cluster_.Count(remoting::kPullMessage) == 1; }));
    cluster_.Put("T", 1, "x");
  });
  const auto pulled = consumer_->Pull(queue_, "*", 0, 10, std::chrono::seconds(10));
  later.join();
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  ASSERT_EQ(pulled->messages.size(), 1u);
  EXPECT_EQ(pulled->messages[0].body, "x");
}

TEST_F(PullConsumerTest, FiltersByTag) {
  cluster_.Put("T", 1, "a",
               "TAGS\x01"
               "A\x02");
  cluster_.Put("T", 1, "b",
               "TAGS\x01"
               "B\x02");
  const auto pulled = consumer_->Pull(queue_, "B", 0, 10);
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  ASSERT_EQ(pulled->messages.size(), 1u);
  EXPECT_EQ(pulled->messages[0].body, "b");
  EXPECT_EQ(pulled->next_begin_offset, 2);
}

TEST_F(PullConsumerTest, ReadsFromOnePeerWhenAskedTo) {
  cluster_.Put("T", 1, "a");
  int asked = -1;
  const auto hook = cluster_.SetHook([&](int peer, const Command& request, FakeCluster::Script*) {
    if (request.code == remoting::kPullMessage) asked = peer;
    return std::optional<Command>();
  });
  const auto pulled = consumer_->PullFrom(cluster_.peer_address(2), queue_, "*", 0, 10);
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(pulled->messages.size(), 1u);
}

TEST_F(PullConsumerTest, KnowsTheEndsOfAQueueAndKeepsOffsets) {
  cluster_.Put("T", 1, "a");
  EXPECT_EQ(consumer_->MinOffset(queue_).value(), 0);
  EXPECT_EQ(consumer_->MaxOffset(queue_).value(), 1);
  EXPECT_EQ(consumer_->OffsetByTime(queue_, 0).value(), 1);
  EXPECT_EQ(consumer_->FetchOffset(queue_).status().code(), StatusCode::kNotFound);
  ASSERT_TRUE(consumer_->CommitOffset(queue_, 7).ok());
  EXPECT_EQ(consumer_->FetchOffset(queue_).value(), 7);
}

TEST_F(PullConsumerTest, AsksAnotherPeerWhenTheLeaderIsGone) {
  cluster_.Put("T", 1, "a");
  ASSERT_TRUE(consumer_->MaxOffset(queue_).ok());
  cluster_.StopPeer(0);
  EXPECT_EQ(consumer_->MaxOffset(queue_).value(), 1);
  EXPECT_TRUE(consumer_->Pull(queue_, "*", 0, 10).ok());
}

TEST_F(PullConsumerTest, ABadRecordIsAnErrorAndNotASkip) {
  const auto hook = cluster_.SetHook([&](int, const Command& request, FakeCluster::Script*) {
    std::optional<Command> answer;
    if (request.code != remoting::kPullMessage) return answer;
    answer = Command::ResponseTo(request, 0);
    for (const char* field :
         {"suggestWhichBrokerId", "nextBeginOffset", "minOffset", "maxOffset"}) {
      answer->ext.Set(field, std::int64_t{1});
    }
    answer->body = "garbage";
    return answer;
  });
  EXPECT_EQ(consumer_->Pull(queue_, "*", 0, 10).status().code(), StatusCode::kCorruption);
}

TEST_F(PullConsumerTest, ATopicWithoutARouteIsNotFound) {
  EXPECT_EQ(consumer_->Queues("Nowhere").status().code(), StatusCode::kNotFound);
}

TEST(AdminTest, ReadsTheClusterAndRoutes) {
  FakeCluster cluster;
  cluster.CreateTopic("T", 3);
  Admin admin(cluster.client_options());
  ASSERT_TRUE(admin.Start().ok());
  const auto groups = admin.ClusterList();
  ASSERT_TRUE(groups.ok()) << groups.status();
  ASSERT_EQ(groups->size(), 1u);
  EXPECT_EQ(groups->front().broker_name, FakeCluster::kBroker);
  EXPECT_EQ(groups->front().addresses.at(0), cluster.peer_address(0));
  const auto route = admin.Route("T");
  ASSERT_TRUE(route.ok()) << route.status();
  EXPECT_EQ(route->queues.front().write_queues, 3);
  EXPECT_EQ(admin.Route("Nowhere").status().code(), StatusCode::kNotFound);
}

TEST(AdminTest, ChangesGoToTheLeaderOfEveryGroupAndNameTheTopic) {
  FakeCluster cluster;
  Admin admin(cluster.client_options());
  ASSERT_TRUE(admin.Start().ok());
  std::vector<std::string> seen;
  const auto hook = cluster.SetHook([&](int peer, const Command& request, FakeCluster::Script*) {
    seen.push_back(std::to_string(peer) + ":" + std::to_string(request.code) + ":" +
                   request.ext.StringOr("topic", "") + ":" +
                   request.ext.StringOr("writeQueueNums", ""));
    return std::optional<Command>(Command::ResponseTo(request, 0));
  });
  TopicSettings topic;
  topic.name = "T";
  topic.write_queues = 5;
  EXPECT_TRUE(admin.UpdateTopic(topic).ok());
  EXPECT_TRUE(admin.UpdateTopic(topic, "", cluster.peer_address(1)).ok());
  EXPECT_EQ(admin.UpdateTopic(topic, "no such cluster").code(), StatusCode::kNotFound);
  EXPECT_TRUE(admin.DeleteTopic("T").ok());
  EXPECT_EQ(seen, (std::vector<std::string>{"0:17:T:5", "1:17:T:5", "0:215:T:"}));
  EXPECT_EQ(cluster.Count(remoting::kDeleteTopicInNamesrv), 1);
  topic.name = "bad name";
  EXPECT_EQ(admin.UpdateTopic(topic).code(), StatusCode::kInvalidArgument);
}

TEST(AdminTest, AMessageIdThatIsNoneIsRefused) {
  FakeCluster cluster;
  Admin admin(cluster.client_options());
  ASSERT_TRUE(admin.Start().ok());
  EXPECT_EQ(admin.ViewMessage("xyz").status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace triad::client
