#include "client/route.h"

#include <gtest/gtest.h>

namespace triad::client {
namespace {

remoting::QueueData Queues(const std::string& broker, int read, int write, int perm) {
  remoting::QueueData data;
  data.broker_name = broker;
  data.read_queue_nums = read;
  data.write_queue_nums = write;
  data.perm = perm;
  return data;
}

TEST(Route, ListsQueuesByPermissionSorted) {
  remoting::TopicRouteData data;
  data.queue_datas = {Queues("b", 1, 1, 6), Queues("a", 2, 1, 6), Queues("c", 4, 4, 4)};
  const RoutePtr route = MakeRoute("T", data);
  EXPECT_EQ(route->publish, (std::vector<MessageQueue>{{"T", "a", 0}, {"T", "b", 0}}));
  EXPECT_EQ(route->subscribe.size(), 7u);
  EXPECT_EQ(route->subscribe.front(), (MessageQueue{"T", "a", 0}));
  EXPECT_EQ(route->subscribe.back(), (MessageQueue{"T", "c", 3}));
}

TEST(Route, KeepsTheQueuesOfAGroupWithoutALeader) {
  remoting::TopicRouteData data;
  remoting::BrokerData broker;
  broker.broker_name = "a";
  broker.broker_addrs = {{2, "n1"}};
  data.broker_datas = {broker};
  data.queue_datas = {Queues("a", 2, 2, 6)};
  EXPECT_EQ(MakeRoute("T", data)->publish.size(), 2u);
}

TEST(Route, FollowsAnOrderConfiguration) {
  remoting::TopicRouteData data;
  data.order_topic_conf = "b:2;a:1";
  data.queue_datas = {Queues("a", 8, 8, 6), Queues("b", 8, 8, 6)};
  EXPECT_EQ(MakeRoute("T", data)->publish,
            (std::vector<MessageQueue>{{"T", "a", 0}, {"T", "b", 0}, {"T", "b", 1}}));
}

TEST(Route, OfANewTopicHasAtMostFourQueuesPerGroup) {
  remoting::TopicRouteData data;
  data.queue_datas = {Queues("a", 8, 8, 7), Queues("b", 2, 2, 7)};
  const RoutePtr route = MakeTemplateRoute("T", data);
  EXPECT_TRUE(route->from_template);
  EXPECT_EQ(route->publish.size(), 6u);
  EXPECT_EQ(route->publish.front().topic, "T");
}

TEST(Route, IgnoresAbsurdCounts) {
  remoting::TopicRouteData data;
  data.queue_datas = {Queues("a", 2147483647, -5, 6)};
  const RoutePtr route = MakeRoute("T", data);
  EXPECT_LE(route->subscribe.size(), 65536u);
  EXPECT_TRUE(route->publish.empty());
}

}  // namespace
}  // namespace triad::client
