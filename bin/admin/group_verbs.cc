// updateSubGroup, consumerProgress, resetOffsetByTime.

#include <cstdint>
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

struct GroupOptions {
  std::string cluster, broker, group;
  std::string consume = "true", from_min = "true", broadcast = "false", notify = "true";
  int retry_queues = 1, retry_max = 16;
  std::int64_t broker_id = 0, slow_broker = 1;
};

int UpdateSubGroup(const GroupOptions& o, Session* session) {
  client::GroupSettings group;
  group.name = o.group;
  group.consume_enable = o.consume == "true";
  group.consume_from_min_enable = o.from_min == "true";
  group.consume_broadcast_enable = o.broadcast == "true";
  group.retry_queue_nums = o.retry_queues;
  group.retry_max_times = o.retry_max;
  group.broker_id = o.broker_id;
  group.which_broker_when_consume_slowly = o.slow_broker;
  group.notify_consumer_ids_changed_enable = o.notify == "true";
  const Status done = session->admin().UpdateGroup(group, o.cluster, o.broker);
  if (!done.ok()) return Fail(done);
  std::printf(
      "create subscription group %s success: retryQueueNums=%d retryMaxTimes=%d "
      "consumeEnable=%s\n",
      o.group.c_str(), group.retry_queue_nums, group.retry_max_times, o.consume.c_str());
  return kDone;
}

int OneGroup(const std::string& group, const std::string& topic, Session* session) {
  Result<std::map<MessageQueue, client::ConsumeProgress>> progress =
      session->admin().ConsumerProgress(group, topic);
  if (!progress.ok()) return Fail(progress.status());
  Table table({"#Topic", "#Broker Name", "#QID", "#Broker Offset", "#Consumer Offset", "#Diff",
               "#LastTime"});
  std::int64_t total = 0;
  for (const auto& [queue, at] : *progress) {
    const std::int64_t diff = at.broker_offset - at.consumer_offset;
    total += diff;
    table.Add({queue.topic, queue.broker_name, std::to_string(queue.queue_id),
               std::to_string(at.broker_offset), std::to_string(at.consumer_offset),
               std::to_string(diff), FormatTime(at.last_time_ms)});
  }
  table.Print();
  std::printf("\nConsume Diff Total: %lld\n", static_cast<long long>(total));
  if (table.rows() == 0) return Fail(Status::NotFound("group " + group + " has no stored offset"));
  return kDone;
}

int AllGroups(Session* session) {
  Result<std::vector<std::string>> topics = session->admin().TopicList();
  if (!topics.ok()) return Fail(topics.status());
  Table table({"#Group", "#Count", "#Diff Total"});
  const std::string prefix = "%RETRY%";
  for (const std::string& topic : *topics) {
    if (topic.compare(0, prefix.size(), prefix) != 0) continue;
    const std::string group = topic.substr(prefix.size());
    Result<std::vector<client::ClientConnection>> members =
        session->admin().ConsumerConnections(group);
    Result<std::map<MessageQueue, client::ConsumeProgress>> progress =
        session->admin().ConsumerProgress(group, "");
    std::int64_t total = 0;
    if (progress.ok()) {
      for (const auto& [queue, at] : *progress) total += at.broker_offset - at.consumer_offset;
    }
    table.Add({group, std::to_string(members.ok() ? members->size() : 0),
               progress.ok() ? std::to_string(total) : "N/A"});
  }
  table.Print();
  return kDone;
}

struct ResetOptions {
  std::string topic, group, time, force = "true";
};

int ResetOffsetByTime(const ResetOptions& o, Session* session) {
  Result<std::int64_t> time = ParseTime(o.time);
  if (!time.ok()) {
    std::fprintf(stderr, "mqadmin: %s\n", time.status().ToString().c_str());
    return kUnreachable;
  }
  Result<std::map<MessageQueue, std::int64_t>> offsets =
      session->admin().ResetOffsetByTime(o.topic, o.group, *time, o.force == "true");
  if (!offsets.ok()) return Fail(offsets.status());
  Table table({"#brokerName", "#queueId", "#offset"});
  for (const auto& [queue, offset] : *offsets) {
    table.Add({queue.broker_name, std::to_string(queue.queue_id), std::to_string(offset)});
  }
  table.Print();
  return kDone;
}

void AddUpdateSubGroup(Registry* verbs) {
  const auto o = std::make_shared<GroupOptions>();
  CLI::App* verb = verbs->Add("updateSubGroup", "create or change a consumer group",
                              [o](Session* session) { return UpdateSubGroup(*o, session); });
  AddPlace(verb, &o->cluster, &o->broker);
  verb->add_option("-g,--groupName", o->group, "group")->required();
  verb->add_option("-s,--consumeEnable", o->consume, "true or false")
      ->capture_default_str()
      ->check(IsFlag());
  verb->add_option("-m,--consumeFromMinEnable", o->from_min, "true or false")
      ->capture_default_str()
      ->check(IsFlag());
  verb->add_option("-d,--consumeBroadcastEnable", o->broadcast, "true or false")
      ->capture_default_str()
      ->check(IsFlag());
  verb->add_option("-q,--retryQueueNums", o->retry_queues, "queues of the retry topic")
      ->capture_default_str();
  verb->add_option("-r,--retryMaxTimes", o->retry_max,
                   "deliveries after the first, before a dead letter")
      ->capture_default_str();
  verb->add_option("-i,--brokerId", o->broker_id, "consume from this broker id")
      ->capture_default_str();
  verb->add_option("-w,--whichBrokerWhenConsumeSlowly", o->slow_broker, "broker id for cold reads")
      ->capture_default_str();
  verb->add_option("-a,--notifyConsumerIdsChanged", o->notify, "true or false")
      ->capture_default_str()
      ->check(IsFlag());
}

}  // namespace

void AddGroupVerbs(Registry* verbs) {
  AddUpdateSubGroup(verbs);

  struct ProgressOptions {
    std::string group, topic;
  };
  const auto progress = std::make_shared<ProgressOptions>();
  CLI::App* verb = verbs->Add(
      "consumerProgress", "show how far a group (or every group) has consumed",
      [progress](Session* session) {
        return progress->group.empty() ? AllGroups(session)
                                       : OneGroup(progress->group, progress->topic, session);
      });
  verb->add_option("-g,--groupName", progress->group, "group; without it: all groups");
  verb->add_option("-t,--topicName", progress->topic, "only this topic");

  const auto reset = std::make_shared<ResetOptions>();
  verb = verbs->Add("resetOffsetByTime", "move a group to a point in time",
                    [reset](Session* session) { return ResetOffsetByTime(*reset, session); });
  verb->add_option("-g,--group", reset->group, "group")->required();
  verb->add_option("-t,--topic", reset->topic, "topic")->required();
  verb->add_option("-s,--timestamp", reset->time,
                   "now, -1 (end), milliseconds, or yyyy-MM-dd#HH:mm:ss:SSS")
      ->required();
  verb->add_option("-f,--force", reset->force, "also forwards: true or false")
      ->capture_default_str()
      ->check(IsFlag());
}

}  // namespace triad::admin
