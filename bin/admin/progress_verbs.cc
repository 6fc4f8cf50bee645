// consumerProgress, resetOffsetByTime, skipAccumulatedMessage, cloneGroupOffset,
// brokerConsumeStats: how far groups are, and moving them.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "bin/admin/ask.h"
#include "bin/admin/number_text.h"
#include "bin/admin/time_text.h"
#include "bin/admin/verbs.h"
#include "remoting/bodies.h"
#include "remoting/codes.h"
#include "remoting/version_text.h"

namespace triad::admin {
namespace {

using client::MessageQueue;

// GET_CONSUME_STATS at every leader that has the group's retry topic (or the one that is asked
// for).
struct Progress {
  std::map<remoting::MessageQueue, remoting::ConsumeStats::Item> queues;
  double tps = 0;
  std::int64_t diff = 0;       // not consumed
  std::int64_t in_flight = 0;  // of them, handed out
};

Result<Progress> ProgressOf(const std::string& group, const std::string& topic, Session* session) {
  const auto leaders = LeadersOf(topic.empty() ? RetryTopic(group) : topic, session);
  if (!leaders.ok()) return leaders.status();
  Progress progress;
  for (const Leader& leader : *leaders) {
    const auto answer = AskOk(leader.address, remoting::kGetConsumeStats,
                              {{"consumerGroup", group}, {"topic", topic}}, "", session);
    if (!answer.ok()) return answer.status();
    const auto stats = remoting::ConsumeStats::Decode(answer->body);
    if (!stats.ok()) return stats.status();
    progress.tps += stats->consume_tps;
    for (const auto& [queue, at] : stats->offset_table) {
      progress.queues[queue] = at;
      progress.diff += at.broker_offset - at.consumer_offset;
      progress.in_flight += at.pull_offset - at.consumer_offset;
    }
  }
  return progress;
}

int OneGroup(const Given& given, Session* session) {
  const std::string& group = given.Text("groupName");
  const auto progress = ProgressOf(group, given.Text("topicName"), session);
  if (!progress.ok()) return Fail(progress.status());
  Table table({"#Topic", "#Broker Name", "#QID", "#Broker Offset", "#Consumer Offset", "#Diff",
               "#Inflight", "#LastTime"});
  for (const auto& [queue, at] : progress->queues) {
    table.Add({queue.topic, queue.broker_name, std::to_string(queue.queue_id),
               std::to_string(at.broker_offset), std::to_string(at.consumer_offset),
               std::to_string(at.broker_offset - at.consumer_offset),
               std::to_string(at.pull_offset - at.consumer_offset),
               FormatTime(at.last_timestamp_ms)});
  }
  Print(table, given);
  Note("\nConsume TPS: " + Decimal(progress->tps), given);
  Note("Consume Diff Total: " + std::to_string(progress->diff), given);
  Note("Consume Inflight Total: " + std::to_string(progress->in_flight), given);
  if (table.rows() == 0) return Fail(Status::NotFound("group " + group + " has no stored offset"));
  return kDone;
}

// Columns #Count to #Model of a group: its members, as one leader knows them.
Result<std::vector<std::string>> MembersOf(const std::string& group, Session* session) {
  const auto leaders = LeadersOf(RetryTopic(group), session);
  if (!leaders.ok()) return leaders.status();
  const auto answer =
      session->admin().Ask(leaders->front().address, remoting::kGetConsumerConnectionList,
                           {{"consumerGroup", group}}, "");
  if (!answer.ok()) return answer.status();
  if (answer->code == remoting::kConsumerNotOnline) {
    return std::vector<std::string>{"0", "OFFLINE", "", ""};
  }
  if (answer->code != remoting::kSuccess) return Status::Internal(answer->remark);
  const auto body = remoting::ConsumerConnection::Decode(answer->body);
  if (!body.ok()) return body.status();
  std::int32_t oldest = std::numeric_limits<std::int32_t>::max();
  for (const remoting::ConnectionInfo& one : body->connections) {
    oldest = std::min(oldest, one.version);
  }
  const bool pulls = body->consume_type == remoting::ConsumeType::kActively;
  const bool broadcast = body->message_model == remoting::MessageModel::kBroadcasting;
  return std::vector<std::string>{std::to_string(body->connections.size()),
                                  remoting::VersionName(oldest), pulls ? "PULL" : "PUSH",
                                  pulls       ? ""
                                  : broadcast ? "BROADCASTING"
                                              : "CLUSTERING"};
}

// A group that could not be asked about has its row, and the exit code says so.
int AllGroups(const Given& given, Session* session) {
  const auto topics = session->admin().TopicList();
  if (!topics.ok()) return Fail(topics.status());
  Table table({"#Group", "#Count", "#Version", "#Type", "#Model", "#TPS", "#Diff Total"});
  const std::string prefix = RetryTopic("");
  std::vector<Status> failures;
  for (const std::string& topic : *topics) {
    if (!topic.starts_with(prefix)) continue;
    const std::string group = topic.substr(prefix.size());
    const auto members = MembersOf(group, session);
    const auto progress = ProgressOf(group, "", session);
    std::vector<std::string> row = {group};
    const std::vector<std::string> unknown = {"N/A", "N/A", "N/A", "N/A"};
    const auto& columns = members.ok() ? *members : unknown;
    row.insert(row.end(), columns.begin(), columns.end());
    row.push_back(progress.ok() ? std::to_string(static_cast<std::int64_t>(progress->tps)) : "N/A");
    row.push_back(progress.ok() ? std::to_string(progress->diff) : "N/A");
    table.Add(std::move(row));
    const Status failed = members.ok() ? progress.status() : members.status();
    if (!failed.ok())
      failures.emplace_back(failed.code(), group + ": " + std::string(failed.message()));
  }
  Print(table, given);
  int code = kDone;
  for (const Status& failure : failures) code = std::max(code, Fail(failure));
  return code;
}

int ConsumerProgress(const Given& given, Session* session) {
  return given.Has("groupName") ? OneGroup(given, session) : AllGroups(given, session);
}

// INVOKE_BROKER_TO_RESET_OFFSET at every leader, or at --brokerAddr.
int Reset(const Fields& fields, const std::string& broker, const Given& given, Session* session) {
  std::vector<std::string> addresses = {broker};
  if (broker.empty()) {
    const auto leaders = LeadersOf(fields.at("topic"), session);
    if (!leaders.ok()) return Fail(leaders.status());
    addresses.clear();
    for (const Leader& leader : *leaders) addresses.push_back(leader.address);
  }
  Table table({"#brokerName", "#queueId", "#offset"});
  for (const std::string& address : addresses) {
    const auto answer = AskOk(address, remoting::kInvokeBrokerToResetOffset, fields, "", session);
    if (!answer.ok()) return Fail(answer.status());
    const auto body = remoting::ResetOffsetBody::Decode(answer->body);
    if (!body.ok()) return Fail(body.status());
    for (const auto& [queue, offset] : body->offset_table) {
      table.Add({queue.broker_name, std::to_string(queue.queue_id), std::to_string(offset)});
    }
  }
  Print(table, given);
  return kDone;
}

int ResetOffsetByTime(const Given& given, Session* session) {
  const auto time = ParseTime(given.Text("timestamp"));
  if (!time.ok()) return WrongUse(time.status());
  Fields fields = {{"topic", given.Text("topic")},
                   {"group", given.Text("group")},
                   {"timestamp", std::to_string(*time)},
                   {"isForce", given.Text("force")}};
  if (given.Number("queue") >= 0) fields["queueId"] = given.Text("queue");
  if (given.Number("offset") >= 0) fields["offset"] = given.Text("offset");
  return Reset(fields, given.Text("broker"), given, session);
}

int SkipAccumulatedMessage(const Given& given, Session* session) {
  return Reset({{"topic", given.Text("topic")},
                {"group", given.Text("group")},
                {"timestamp", "-1"},
                {"isForce", given.Text("force")}},
               "", given, session);
}

// Of the leaders those where the group has stored an offset in the topic. Its progress does not say
// so: an offset that was never stored is a 0 there.
Result<std::vector<Leader>> WithOffsets(const std::vector<Leader>& leaders,
                                        const std::string& group, const std::string& topic,
                                        Session* session) {
  std::vector<Leader> with;
  for (const Leader& leader : leaders) {
    const auto answer =
        AskOk(leader.address, remoting::kQueryTopicsByConsumer, {{"group", group}}, "", session);
    if (!answer.ok()) return answer.status();
    const auto list = remoting::TopicList::Decode(answer->body);
    if (!list.ok()) return list.status();
    if (std::find(list->topic_list.begin(), list->topic_list.end(), topic) !=
        list->topic_list.end()) {
      with.push_back(leader);
    }
  }
  return with;
}

int CloneGroupOffset(const Given& given, Session* session) {
  const std::string& topic = given.Text("topic");
  const std::string& source = given.Text("srcGroup");
  const auto all = LeadersOf(topic, session);
  if (!all.ok()) return Fail(all.status());
  const auto leaders = WithOffsets(*all, source, topic, session);
  if (!leaders.ok()) return Fail(leaders.status());
  const auto progress = session->admin().ConsumerProgress(source, topic);
  if (!progress.ok()) return Fail(progress.status());
  Table table({"#Broker Name", "#QID", "#Offset"});
  for (const auto& [queue, at] : *progress) {
    for (const Leader& leader : *leaders) {
      if (leader.broker_name != queue.broker_name) continue;
      const auto answer = AskOk(leader.address, remoting::kUpdateConsumerOffset,
                                {{"consumerGroup", given.Text("destGroup")},
                                 {"topic", topic},
                                 {"queueId", std::to_string(queue.queue_id)},
                                 {"commitOffset", std::to_string(at.consumer_offset)}},
                                "", session);
      if (!answer.ok()) return Fail(answer.status());
      table.Add(
          {queue.broker_name, std::to_string(queue.queue_id), std::to_string(at.consumer_offset)});
    }
  }
  if (table.rows() == 0) {
    return Fail(Status::NotFound("group " + source + " has no offset in " + topic));
  }
  Print(table, given);
  return kDone;
}

// The rows of one group's statistics in one topic or several.
std::int64_t AddRows(const std::string& group, const remoting::Json& stats, std::int64_t level,
                     Table* table) {
  std::int64_t total = 0;
  for (const auto& queue : stats["offsetTable"].members()) {
    const std::int64_t broker = queue.value["brokerOffset"].AsInt64();
    const std::int64_t consumer = queue.value["consumerOffset"].AsInt64();
    total += broker - consumer;
    if (broker - consumer < level) continue;
    table->Add({queue.key_object["topic"].AsString(), group,
                queue.key_object["brokerName"].AsString(), queue.key_object["queueId"].AsString(),
                std::to_string(broker), std::to_string(consumer), std::to_string(broker - consumer),
                FormatTime(queue.value["lastTimestamp"].AsInt64())});
  }
  return total;
}

int BrokerConsumeStats(const Given& given, Session* session) {
  const auto answer = AskOk(given.Text("brokerAddr"), remoting::kGetBrokerConsumeStats,
                            {{"isOrder", given.Text("order")}}, "", session);
  if (!answer.ok()) return Fail(answer.status());
  const auto json = remoting::Json::Parse(answer->body);
  if (!json.ok()) return Fail(json.status());
  Table table({"#Topic", "#Group", "#Broker Name", "#QID", "#Broker Offset", "#Consumer Offset",
               "#Diff", "#LastTime"});
  std::int64_t total = 0;
  for (const remoting::Json& groups : (*json)["consumeStatsList"].items()) {
    for (const auto& group : groups.members()) {
      for (const remoting::Json& stats : group.value.items()) {
        total += AddRows(group.key, stats, given.Number("level"), &table);
      }
    }
  }
  Print(table, given);
  Note("\nDiff Total: " + std::to_string(total), given);
  return kDone;
}

}  // namespace

std::vector<Verb> ProgressVerbs() {
  const Option topic = {"-t,--topic", "topic"};
  const Option group = {"-g,--group", "consumer group"};
  return {
      {"consumerProgress",
       "show how far a group (or every group) has consumed",
       "-g my_group",
       {{"-g,--groupName", "group; without it: all groups", ""},
        {"-t,--topicName", "only this topic", ""},
        {"-c,--cluster", "taken, without effect", ""},
        {"-s,--showClientIP", "taken, without effect: see consumerStatus", "false", kText, kYesNo}},
       ConsumerProgress},
      {"resetOffsetByTime",
       "move a group to a point in time, or one queue to an offset",
       "-g my_group -t Orders -s now",
       {group,
        topic,
        {"-s,--timestamp", "now, -1 (end), milliseconds, or yyyy-MM-dd#HH:mm:ss:SSS"},
        {"-f,--force", "also forwards", "true", kText, kYesNo},
        {"-q,--queue", "only this queue id", "-1", kNumber},
        {"-o,--offset", "to this offset instead (with -q)", "-1", kNumber},
        {"-b,--broker", "only at this address", ""},
        {"-c,--cplus,--cluster",
         "taken, without effect, with a cluster or alone: C++ clients are moved as all others", "",
         kMaybeValue}},
       ResetOffsetByTime},
      {"skipAccumulatedMessage",
       "move a group behind the newest message",
       "-g my_group -t Orders",
       {group,
        topic,
        {"-f,--force", "also forwards", "true", kText, kYesNo},
        {"-c,--cluster", "taken, without effect", ""}},
       SkipAccumulatedMessage},
      {"cloneGroupOffset",
       "give a group the offsets of another one",
       "-s my_group -d other_group -t Orders",
       {{"-s,--srcGroup", "group to copy from"},
        {"-d,--destGroup", "group to copy to"},
        topic,
        {"-o,--offline", "taken, without effect", "true", kText, kYesNo}},
       CloneGroupOffset},
      {"brokerConsumeStats",
       "show the progress of every group at a broker",
       "-b 127.0.0.1:10911",
       {{"-b,--brokerAddr", "address"},
        {"-o,--order", "only orderly groups", "false", kText, kYesNo},
        {"-l,--level", "only queues that are so far behind", "0", kCount},
        {"-t,--timeoutMillis", "taken, without effect", "50000", kCount}},
       BrokerConsumeStats},
  };
}

}  // namespace triad::admin
