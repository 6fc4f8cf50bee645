// topicList, topicRoute, topicStatus, updateTopic, deleteTopic.

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bin/admin/time_text.h"
#include "bin/admin/verbs.h"
#include "bin/table.h"

namespace triad::admin {
namespace {

using client::MessageQueue;

int TopicList(Session* session) {
  Result<std::vector<std::string>> topics = session->admin().TopicList();
  if (!topics.ok()) return Fail(topics.status());
  for (const std::string& topic : *topics) std::printf("%s\n", topic.c_str());
  return kDone;
}

int TopicRoute(const std::string& topic, Session* session) {
  Result<client::TopicRoute> route = session->admin().Route(topic);
  if (!route.ok()) return Fail(route.status());
  Table table(
      {"#Cluster Name", "#Broker Name", "#BID", "#Addr", "#Read Queues", "#Write Queues", "#Perm"});
  for (const client::BrokerGroup& broker : route->brokers) {
    for (const client::QueueCounts& queue : route->queues) {
      if (queue.broker_name != broker.broker_name) continue;
      for (const auto& [id, address] : broker.addresses) {
        table.Add({broker.cluster, broker.broker_name, std::to_string(id), address,
                   std::to_string(queue.read_queues), std::to_string(queue.write_queues),
                   std::to_string(queue.perm)});
      }
    }
  }
  table.Print();
  if (!route->order_conf.empty())
    std::printf("order configuration: %s\n", route->order_conf.c_str());
  return kDone;
}

int TopicStatus(const std::string& topic, Session* session) {
  Result<std::map<MessageQueue, client::QueueStats>> stats = session->admin().TopicStatus(topic);
  if (!stats.ok()) return Fail(stats.status());
  Table table({"#Broker Name", "#QID", "#Min Offset", "#Max Offset", "#Last Updated"});
  for (const auto& [queue, offsets] : *stats) {
    table.Add({queue.broker_name, std::to_string(queue.queue_id),
               std::to_string(offsets.min_offset), std::to_string(offsets.max_offset),
               FormatTime(offsets.last_update_ms)});
  }
  table.Print();
  return kDone;
}

struct TopicOptions {
  std::string cluster, broker, topic, attributes, order = "false";
  int read_queues = 8, write_queues = 8, perm = 6;
};

// "+dedup=uniqKey,-order": names with their sign.
std::map<std::string, std::string> ParseAttributes(const std::string& text) {
  std::map<std::string, std::string> attributes;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string item = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t equals = std::min(item.find('='), item.size());
    if (equals == 0) continue;
    attributes[item.substr(0, equals)] = equals < item.size() ? item.substr(equals + 1) : "";
  }
  return attributes;
}

int UpdateTopic(const TopicOptions& o, Session* session) {
  client::TopicSettings topic;
  topic.name = o.topic;
  topic.read_queues = o.read_queues;
  topic.write_queues = o.write_queues;
  topic.perm = o.perm;
  topic.order = o.order == "true";
  topic.attributes = ParseAttributes(o.attributes);
  const Status done = session->admin().UpdateTopic(topic, o.cluster, o.broker);
  if (!done.ok()) return Fail(done);
  std::printf("create topic %s success: readQueueNums=%d writeQueueNums=%d perm=%d order=%s\n",
              o.topic.c_str(), topic.read_queues, topic.write_queues, topic.perm, o.order.c_str());
  return kDone;
}

int DeleteTopic(const TopicOptions& o, Session* session) {
  const Status done = session->admin().DeleteTopic(o.topic, o.cluster);
  if (!done.ok()) return Fail(done);
  std::printf("delete topic %s success\n", o.topic.c_str());
  return kDone;
}

}  // namespace

void AddTopicVerbs(Registry* verbs) {
  verbs->Add("topicList", "list all topics", TopicList);

  const auto topic = std::make_shared<std::string>();
  CLI::App* verb = verbs->Add("topicRoute", "show who serves a topic",
                              [topic](Session* session) { return TopicRoute(*topic, session); });
  verb->add_option("-t,--topic", *topic, "topic")->required();
  verb = verbs->Add("topicStatus", "show a topic's queues",
                    [topic](Session* session) { return TopicStatus(*topic, session); });
  verb->add_option("-t,--topic", *topic, "topic")->required();

  const auto o = std::make_shared<TopicOptions>();
  verb = verbs->Add("updateTopic", "create or change a topic",
                    [o](Session* session) { return UpdateTopic(*o, session); });
  AddPlace(verb, &o->cluster, &o->broker);
  verb->add_option("-t,--topic", o->topic, "topic")->required();
  verb->add_option("-r,--readQueueNums", o->read_queues, "read queues")->capture_default_str();
  verb->add_option("-w,--writeQueueNums", o->write_queues, "write queues")->capture_default_str();
  verb->add_option("-p,--perm", o->perm, "2 write, 4 read, 6 both")
      ->capture_default_str()
      ->check(CLI::IsMember({2, 4, 6}));
  verb->add_option("-a,--attributes", o->attributes,
                   "attributes to set and to remove, such as +dedup=uniqKey,+dedupWindowSec=600 or "
                   "-order");
  verb->add_option("-o,--order", o->order, "ordered topic: true or false")
      ->capture_default_str()
      ->check(IsFlag());
  verb = verbs->Add("deleteTopic", "delete a topic everywhere",
                    [o](Session* session) { return DeleteTopic(*o, session); });
  verb->add_option("-t,--topic", o->topic, "topic")->required();
  verb->add_option("-c,--clusterName", o->cluster, "only in this cluster");
}

}  // namespace triad::admin
