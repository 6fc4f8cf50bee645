#include "client/route.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace triad::client {

namespace {

constexpr std::int32_t kPermRead = 4;
constexpr std::int32_t kPermWrite = 2;
constexpr std::int32_t kQueuesMax = 65536;  // of one topic and broker; a route is input

void AddQueues(const std::string& topic, const std::string& broker_name, std::int32_t count,
               std::vector<MessageQueue>* out) {
  for (std::int32_t id = 0; id < std::min(count, kQueuesMax); ++id) {
    out->push_back(MessageQueue{topic, broker_name, id});
  }
}

// "a:4;b:4"
std::vector<MessageQueue> QueuesOfOrderConf(const std::string& topic, const std::string& conf) {
  std::vector<MessageQueue> queues;
  for (std::size_t begin = 0; begin < conf.size();) {
    const std::size_t end = std::min(conf.find(';', begin), conf.size());
    const std::size_t colon = conf.find(':', begin);
    if (colon < end) {
      std::int32_t count = 0;
      std::from_chars(conf.data() + colon + 1, conf.data() + end, count);
      AddQueues(topic, conf.substr(begin, colon - begin), count, &queues);
    }
    begin = end + 1;
  }
  return queues;
}

}  // namespace

RoutePtr MakeRoute(const std::string& topic, remoting::TopicRouteData data) {
  auto route = std::make_shared<Route>();
  for (const remoting::QueueData& queue : data.queue_datas) {
    if ((queue.perm & kPermRead) != 0) {
      AddQueues(topic, queue.broker_name, queue.read_queue_nums, &route->subscribe);
    }
    if ((queue.perm & kPermWrite) != 0) {
      AddQueues(topic, queue.broker_name, queue.write_queue_nums, &route->publish);
    }
  }
  if (!data.order_topic_conf.empty()) {
    route->publish = QueuesOfOrderConf(topic, data.order_topic_conf);
  }
  std::sort(route->publish.begin(), route->publish.end());
  std::sort(route->subscribe.begin(), route->subscribe.end());
  route->data = std::move(data);
  return route;
}

RoutePtr MakeTemplateRoute(const std::string& topic, remoting::TopicRouteData template_data) {
  for (remoting::QueueData& queue : template_data.queue_datas) {
    const std::int32_t queues = std::min(kTemplateQueues, queue.read_queue_nums);
    queue.read_queue_nums = queues;
    queue.write_queue_nums = queues;
  }
  template_data.order_topic_conf.clear();
  auto route = std::make_shared<Route>(*MakeRoute(topic, std::move(template_data)));
  route->from_template = true;
  return route;
}

}  // namespace triad::client
