// topicList, topicRoute, topicStatus, topicClusterList, statsAll, allocateMQ: topics as they are.

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "bin/admin/ask.h"
#include "bin/admin/number_text.h"
#include "bin/admin/time_text.h"
#include "bin/admin/verbs.h"
#include "client/allocate.h"
#include "remoting/bodies.h"
#include "remoting/codes.h"

namespace triad::admin {
namespace {

using client::MessageQueue;

// Online, or with a stored offset; of every group of brokers.
std::set<std::string> ClustersOf(const client::TopicRoute& route) {
  std::set<std::string> clusters;
  for (const client::BrokerGroup& group : route.brokers) clusters.insert(group.cluster);
  return clusters;
}

bool IsOfAGroup(const std::string& topic) {
  return topic.starts_with("%RETRY%") || topic.starts_with("%DLQ%");
}

int TopicList(const Given& given, Session* session) {
  const auto topics = session->admin().TopicList();
  if (!topics.ok()) return Fail(topics.status());
  if (!given.Is("clusterModel")) {
    Table table({"#Topic"});
    for (const std::string& topic : *topics) {
      if (!given.json()) Note(topic, given);
      table.Add({topic});
    }
    if (given.json()) Print(table, given);
    return kDone;
  }
  Table table({"#Cluster Name", "#Topic", "#Consumer Group"});
  for (const std::string& topic : *topics) {
    if (IsOfAGroup(topic)) continue;
    const auto route = session->admin().Route(topic);
    const auto groups = GroupsOf(topic, session);
    if (!route.ok() || !groups.ok()) continue;  // deleted meanwhile
    for (const std::string& cluster : ClustersOf(*route)) {
      for (const std::string& group : *groups) table.Add({cluster, topic, group});
      if (groups->empty()) table.Add({cluster, topic, ""});
    }
  }
  Print(table, given);
  return kDone;
}

int TopicRoute(const Given& given, Session* session) {
  const auto route = session->admin().Route(given.Text("topic"));
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
  Print(table, given);
  if (!route->order_conf.empty()) Note("order configuration: " + route->order_conf, given);
  return kDone;
}

int TopicStatus(const Given& given, Session* session) {
  const auto stats = session->admin().TopicStatus(given.Text("topic"));
  if (!stats.ok()) return Fail(stats.status());
  Table table({"#Broker Name", "#QID", "#Min Offset", "#Max Offset", "#Last Updated"});
  for (const auto& [queue, offsets] : *stats) {
    table.Add({queue.broker_name, std::to_string(queue.queue_id),
               std::to_string(offsets.min_offset), std::to_string(offsets.max_offset),
               FormatTime(offsets.last_update_ms)});
  }
  Print(table, given);
  return kDone;
}

int TopicClusterList(const Given& given, Session* session) {
  const auto route = session->admin().Route(given.Text("topic"));
  if (!route.ok()) return Fail(route.status());
  Table table({"#Cluster Name"});
  for (const std::string& cluster : ClustersOf(*route)) table.Add({cluster});
  Print(table, given);
  return kDone;
}

Status AddStats(const std::string& topic, bool active_only, Table* table, Session* session) {
  const auto leaders = LeadersOf(topic, session);
  if (!leaders.ok()) return leaders.status();
  const auto groups = GroupsOf(topic, session);
  if (!groups.ok()) return groups.status();
  const Figure in = StatsOf(*leaders, "TOPIC_PUT_NUMS", topic, session);
  if (groups->empty() && (!active_only || in.day > 0)) {
    table->Add({topic, "", "0", Decimal(in.tps), "", std::to_string(in.day), "NO_CONSUMER"});
  }
  for (const std::string& group : *groups) {
    const Figure out = StatsOf(*leaders, "GROUP_GET_NUMS", topic + "@" + group, session);
    if (active_only && in.day == 0 && out.day == 0) continue;
    const auto progress = session->admin().ConsumerProgress(group, topic);
    std::int64_t behind = 0;
    if (progress.ok()) {
      for (const auto& [queue, at] : *progress) behind += at.broker_offset - at.consumer_offset;
    }
    table->Add({topic, group, std::to_string(std::max<std::int64_t>(behind, 0)), Decimal(in.tps),
                Decimal(out.tps), std::to_string(in.day), std::to_string(out.day)});
  }
  return Status::Ok();
}

int StatsAll(const Given& given, Session* session) {
  Table table({"#Topic", "#Consumer Group", "#Accumulation", "#InTPS", "#OutTPS", "#InMsg24Hour",
               "#OutMsg24Hour"});
  if (given.Has("topic")) {
    const Status done = AddStats(given.Text("topic"), given.Is("activeTopic"), &table, session);
    if (!done.ok()) return Fail(done);
    Print(table, given);
    return kDone;
  }
  const auto topics = session->admin().TopicList();
  if (!topics.ok()) return Fail(topics.status());
  for (const std::string& topic : *topics) {
    if (IsOfAGroup(topic)) continue;
    const Status done = AddStats(topic, given.Is("activeTopic"), &table, session);
    if (!done.ok() && done.code() != StatusCode::kNotFound) return Fail(done);
  }
  Print(table, given);
  return kDone;
}

std::vector<std::string> Split(const std::string& list) {
  std::vector<std::string> items;
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    if (end > begin) items.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return items;
}

int AllocateMq(const Given& given, Session* session) {
  const auto route = session->admin().Route(given.Text("topic"));
  if (!route.ok()) return Fail(route.status());
  std::vector<MessageQueue> queues;
  for (const client::QueueCounts& counts : route->queues) {
    for (int id = 0; id < counts.read_queues; ++id) {
      queues.push_back({given.Text("topic"), counts.broker_name, id});
    }
  }
  std::sort(queues.begin(), queues.end());
  std::vector<std::string> members = Split(given.Text("ipList"));
  std::sort(members.begin(), members.end());
  Table table({"#Member", "#Broker Name", "#QID"});
  for (const std::string& member : members) {
    for (const MessageQueue& queue : client::AllocateAveragely(queues, members, member)) {
      table.Add({member, queue.broker_name, std::to_string(queue.queue_id)});
    }
  }
  Print(table, given);
  return kDone;
}

}  // namespace

std::vector<Verb> TopicVerbs() {
  const Option topic = {"-t,--topic", "topic"};
  return {
      {"topicList",
       "list all topics",
       "",
       {{"-c,--clusterModel", "with cluster and consumer groups", "", kSwitch}},
       TopicList},
      {"topicRoute",
       "show who serves a topic",
       "-t Orders",
       {topic, {"-l,--list", "as a list, which it always is", "", kSwitch}},
       TopicRoute},
      {"topicStatus",
       "show a topic's queues",
       "-t Orders",
       {topic, {"-c,--cluster", "taken, without effect", ""}},
       TopicStatus},
      {"topicClusterList",
       "list the clusters that serve a topic",
       "-t Orders",
       {topic},
       TopicClusterList},
      {"statsAll",
       "show how much goes into and out of every topic",
       "-t Orders",
       {{"-t,--topic", "only this topic", ""},
        {"-a,--activeTopic", "only where something goes in or out", "", kSwitch}},
       StatsAll},
      {"allocateMQ",
       "show which queues each of these members would get",
       "-t Orders -i 10.0.0.1,10.0.0.2",
       {topic, {"-i,--ipList", "members, separated by commas"}},
       AllocateMq},
  };
}

}  // namespace triad::admin
