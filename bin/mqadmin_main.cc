// mqadmin: looks at and changes a cluster. The verbs and options of the original's everyday
// commands.
//
//   mqadmin clusterList -n 127.0.0.1:9876
//
// Exit code: 0 done, 1 the cluster refused or has no such thing, 2 wrong usage or nobody could be
// reached.

#include <glog/logging.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "bin/table.h"
#include "triad/admin.h"
#include "triad/producer.h"
#include "triad/pull_consumer.h"

namespace triad {
namespace {

using client::Admin;
using client::MessageQueue;
using client::ReceivedMessage;

constexpr int kDone = 0;
constexpr int kRefused = 1;
constexpr int kUnreachable = 2;

std::string FormatTime(std::int64_t ms) {
  if (ms <= 0) return "N/A";
  const std::time_t seconds = static_cast<std::time_t>(ms / 1000);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  char text[40];
  const std::size_t n = std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
  std::snprintf(text + n, sizeof text - n, ",%03d", static_cast<int>(ms % 1000));
  return text;
}

// "now", "currentTimeMillis", milliseconds, or yyyy-MM-dd#HH:mm:ss:SSS; -1 is the end of the queue.
Result<std::int64_t> ParseTime(const std::string& text) {
  if (text == "-1") return std::int64_t{-1};
  if (text == "now" || text == "currentTimeMillis") {
    return std::int64_t{std::chrono::duration_cast<std::chrono::milliseconds>(
                            std::chrono::system_clock::now().time_since_epoch())
                            .count()};
  }
  if (!text.empty() && text.find_first_not_of("0123456789") == std::string::npos &&
      text.size() < 18) {
    return std::int64_t{std::stoll(text)};
  }
  std::tm time{};
  int ms = 0;
  if (std::sscanf(text.c_str(), "%d-%d-%d#%d:%d:%d:%d", &time.tm_year, &time.tm_mon, &time.tm_mday,
                  &time.tm_hour, &time.tm_min, &time.tm_sec, &ms) < 6) {
    return Status::InvalidArgument(
        "'" + text + "' is no time; expected now, milliseconds, or yyyy-MM-dd#HH:mm:ss:SSS");
  }
  time.tm_year -= 1900;
  time.tm_mon -= 1;
  time.tm_isdst = -1;
  return std::int64_t{std::mktime(&time)} * 1000 + ms;
}

int Fail(const Status& status) {
  std::fprintf(stderr, "mqadmin: %s\n", status.ToString().c_str());
  const bool reachable =
      status.code() != StatusCode::kUnavailable && status.code() != StatusCode::kTimedOut;
  return reachable ? kRefused : kUnreachable;
}

std::string FirstWord(const std::map<std::string, std::string>& info, const std::string& key) {
  const auto it = info.find(key);
  return it == info.end() ? "" : it->second.substr(0, it->second.find(' '));
}

void PrintMessage(const ReceivedMessage& message) {
  const auto row = [](const char* name, const std::string& value) {
    std::printf("%-20s %s\n", name, value.c_str());
  };
  row("OffsetID:", message.offset_message_id);
  row("Topic:", message.queue.topic);
  std::string keys;
  for (const std::string& key : message.keys) keys += (keys.empty() ? "" : " ") + key;
  row("Tags:", "[" + message.tag + "]");
  row("Keys:", "[" + keys + "]");
  row("Queue ID:", std::to_string(message.queue.queue_id));
  row("Queue Offset:", std::to_string(message.queue_offset));
  row("CommitLog Offset:", std::to_string(message.physical_offset));
  row("Reconsume Times:", std::to_string(message.reconsume_times));
  row("Born Timestamp:", FormatTime(message.born_time_ms));
  row("Store Timestamp:", FormatTime(message.store_time_ms));
  row("Born Host:", message.born_host);
  row("Store Host:", message.store_host);
  row("System Flag:", std::to_string(message.sys_flag));
  std::string properties;
  for (const auto& [key, value] : message.properties)
    properties += (properties.empty() ? "" : ", ") + key + "=" + value;
  row("Properties:", "{" + properties + "}");
  row("Message Body:", message.body);
}

// Everything the verbs may be given. One run uses one verb.
struct Options {
  std::string namesrv;
  std::string cluster, broker, topic, group, body, keys, tags, id, time, expression = "*";
  std::string order = "false", consume = "true", from_min = "true", broadcast = "false",
              notify = "true", force = "true";
  int read_queues = 8, write_queues = 8, perm = 6, queue = -1, retry_queues = 1, retry_max = 16,
      count = 128;
  std::int64_t offset = -1, broker_id = 0, slow_broker = 1;
};

class Verbs {
 public:
  explicit Verbs(const Options& options) : options_(options), admin_(ClientOptions()) {}
  ~Verbs() { admin_.Shutdown(); }

  Status Start() { return admin_.Start(); }

  int ClusterList() {
    Result<std::vector<client::BrokerGroup>> groups = admin_.ClusterList();
    if (!groups.ok()) return Fail(groups.status());
    Table table({"#Cluster Name", "#Broker Name", "#BID", "#Addr", "#Version", "#InTPS(LOAD)",
                 "#OutTPS(LOAD)", "#Hour", "#SPACE", "#ACTIVATED"});
    for (const client::BrokerGroup& group : *groups) {
      if (!options_.cluster.empty() && group.cluster != options_.cluster) continue;
      for (const auto& [id, address] : group.addresses) {
        Result<std::map<std::string, std::string>> info = admin_.RuntimeInfo(address);
        if (!info.ok()) {
          table.Add({group.cluster, group.broker_name, std::to_string(id), address, "", "", "", "",
                     "", "no answer: " + std::string(info.status().message())});
          continue;
        }
        const double earliest = std::atof(FirstWord(*info, "earliestMessageTimeStamp").c_str());
        char hours[32];
        std::snprintf(hours, sizeof hours, "%.2f",
                      earliest > 0
                          ? (static_cast<double>(std::time(nullptr)) - earliest / 1000) / 3600
                          : 0.0);
        table.Add({group.cluster, group.broker_name, std::to_string(id), address,
                   FirstWord(*info, "brokerVersionDesc"), FirstWord(*info, "putTps"),
                   FirstWord(*info, "getTransferredTps"), hours,
                   FirstWord(*info, "commitLogDiskRatio").substr(0, 6),
                   FirstWord(*info, "brokerActive")});
      }
    }
    table.Print();
    return table.rows() > 0 ? kDone : kRefused;
  }

  int TopicList() {
    Result<std::vector<std::string>> topics = admin_.TopicList();
    if (!topics.ok()) return Fail(topics.status());
    for (const std::string& topic : *topics) std::printf("%s\n", topic.c_str());
    return kDone;
  }

  int TopicRoute() {
    Result<client::TopicRoute> route = admin_.Route(options_.topic);
    if (!route.ok()) return Fail(route.status());
    Table table({"#Cluster Name", "#Broker Name", "#BID", "#Addr", "#Read Queues", "#Write Queues",
                 "#Perm"});
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

  int TopicStatus() {
    Result<std::map<MessageQueue, client::QueueStats>> stats = admin_.TopicStatus(options_.topic);
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

  int UpdateTopic() {
    client::TopicSettings topic;
    topic.name = options_.topic;
    topic.read_queues = options_.read_queues;
    topic.write_queues = options_.write_queues;
    topic.perm = options_.perm;
    topic.order = options_.order == "true";
    const Status done = admin_.UpdateTopic(topic, options_.cluster, options_.broker);
    if (!done.ok()) return Fail(done);
    std::printf("create topic %s success: readQueueNums=%d writeQueueNums=%d perm=%d order=%s\n",
                options_.topic.c_str(), topic.read_queues, topic.write_queues, topic.perm,
                options_.order.c_str());
    return kDone;
  }

  int DeleteTopic() {
    const Status done = admin_.DeleteTopic(options_.topic, options_.cluster);
    if (!done.ok()) return Fail(done);
    std::printf("delete topic %s success\n", options_.topic.c_str());
    return kDone;
  }

  int UpdateSubGroup() {
    client::GroupSettings group;
    group.name = options_.group;
    group.consume_enable = options_.consume == "true";
    group.consume_from_min_enable = options_.from_min == "true";
    group.consume_broadcast_enable = options_.broadcast == "true";
    group.retry_queue_nums = options_.retry_queues;
    group.retry_max_times = options_.retry_max;
    group.broker_id = options_.broker_id;
    group.which_broker_when_consume_slowly = options_.slow_broker;
    group.notify_consumer_ids_changed_enable = options_.notify == "true";
    const Status done = admin_.UpdateGroup(group, options_.cluster, options_.broker);
    if (!done.ok()) return Fail(done);
    std::printf(
        "create subscription group %s success: retryQueueNums=%d retryMaxTimes=%d "
        "consumeEnable=%s\n",
        options_.group.c_str(), group.retry_queue_nums, group.retry_max_times,
        options_.consume.c_str());
    return kDone;
  }

  int ConsumerProgress() { return options_.group.empty() ? AllGroups() : OneGroup(); }

  int BrokerStatus() {
    std::vector<std::string> addresses;
    if (!options_.broker.empty()) {
      addresses.push_back(options_.broker);
    } else {
      Result<std::vector<client::BrokerGroup>> groups = admin_.ClusterList();
      if (!groups.ok()) return Fail(groups.status());
      for (const client::BrokerGroup& group : *groups) {
        if (!options_.cluster.empty() && group.cluster != options_.cluster) continue;
        for (const auto& [id, address] : group.addresses) addresses.push_back(address);
      }
    }
    if (addresses.empty())
      return Fail(Status::NotFound("no broker in cluster " + options_.cluster));
    for (const std::string& address : addresses) {
      Result<std::map<std::string, std::string>> info = admin_.RuntimeInfo(address);
      if (!info.ok()) return Fail(info.status());
      for (const auto& [key, value] : *info) {
        const std::string prefix = addresses.size() > 1 ? address + " " : "";
        std::printf("%s%-36s: %s\n", prefix.c_str(), key.c_str(), value.c_str());
      }
    }
    return kDone;
  }

  int SendMessage() {
    client::ProducerOptions producer_options;
    producer_options.client = ClientOptions();
    producer_options.group = "mqadmin_producer";
    producer_options.retries = 3;
    client::Producer producer(producer_options);
    const Status started = producer.Start();
    if (!started.ok()) return Fail(started);
    client::Message message;
    message.topic = options_.topic;
    message.body = options_.body;
    message.tag = options_.tags;
    if (!options_.keys.empty()) message.keys = {options_.keys};
    Result<client::SendResult> sent =
        options_.queue >= 0 && !options_.broker.empty()
            ? producer.Send(message, MessageQueue{options_.topic, options_.broker, options_.queue})
            : producer.Send(message);
    if (!sent.ok()) return Fail(sent.status());
    Table table(
        {"#Broker Name", "#QID", "#Queue Offset", "#Send Result", "#MsgId", "#OffsetMsgId"});
    table.Add({sent->queue.broker_name, std::to_string(sent->queue.queue_id),
               std::to_string(sent->queue_offset), "SEND_OK", sent->message_id,
               sent->offset_message_id});
    table.Print();
    return kDone;
  }

  int ConsumeMessage() {
    client::PullConsumerOptions consumer_options;
    consumer_options.client = ClientOptions();
    if (!options_.group.empty()) consumer_options.group = options_.group;
    client::PullConsumer consumer(consumer_options);
    const Status started = consumer.Start();
    if (!started.ok()) return Fail(started);
    Result<std::vector<MessageQueue>> queues = consumer.Queues(options_.topic);
    if (!queues.ok()) return Fail(queues.status());
    int left = options_.count;
    for (const MessageQueue& queue : *queues) {
      if (!options_.broker.empty() && queue.broker_name != options_.broker) continue;
      if (options_.queue >= 0 && queue.queue_id != options_.queue) continue;
      const Status done = PrintQueue(&consumer, queue, &left);
      if (!done.ok()) return Fail(done);
    }
    std::printf("%d message%s\n", options_.count - left, options_.count - left == 1 ? "" : "s");
    return kDone;
  }

  int QueryMsgById() {
    Result<ReceivedMessage> message = admin_.ViewMessage(options_.id);
    if (!message.ok()) return Fail(message.status());
    PrintMessage(*message);
    return kDone;
  }

  int ResetOffsetByTime() {
    Result<std::int64_t> time = ParseTime(options_.time);
    if (!time.ok()) {
      std::fprintf(stderr, "mqadmin: %s\n", time.status().ToString().c_str());
      return kUnreachable;
    }
    Result<std::map<MessageQueue, std::int64_t>> offsets =
        admin_.ResetOffsetByTime(options_.topic, options_.group, *time, options_.force == "true");
    if (!offsets.ok()) return Fail(offsets.status());
    Table table({"#brokerName", "#queueId", "#offset"});
    for (const auto& [queue, offset] : *offsets) {
      table.Add({queue.broker_name, std::to_string(queue.queue_id), std::to_string(offset)});
    }
    table.Print();
    return kDone;
  }

 private:
  client::ClientOptions ClientOptions() const {
    client::ClientOptions options;
    options.namesrv_address = options_.namesrv;
    options.instance_name = "mqadmin";
    return options;
  }

  int OneGroup() {
    Result<std::map<MessageQueue, client::ConsumeProgress>> progress =
        admin_.ConsumerProgress(options_.group, options_.topic);
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
    if (table.rows() == 0)
      return Fail(Status::NotFound("group " + options_.group + " has no stored offset"));
    return kDone;
  }

  // Every group that has a retry topic, as the original lists them.
  int AllGroups() {
    Result<std::vector<std::string>> topics = admin_.TopicList();
    if (!topics.ok()) return Fail(topics.status());
    Table table({"#Group", "#Count", "#Diff Total"});
    const std::string prefix = "%RETRY%";
    for (const std::string& topic : *topics) {
      if (topic.compare(0, prefix.size(), prefix) != 0) continue;
      const std::string group = topic.substr(prefix.size());
      Result<std::vector<client::ClientConnection>> members = admin_.ConsumerConnections(group);
      Result<std::map<MessageQueue, client::ConsumeProgress>> progress =
          admin_.ConsumerProgress(group, "");
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

  Status PrintQueue(client::PullConsumer* consumer, const MessageQueue& queue, int* left) {
    Result<std::int64_t> begin =
        options_.offset >= 0 ? Result<std::int64_t>(options_.offset) : consumer->MinOffset(queue);
    Result<std::int64_t> end = consumer->MaxOffset(queue);
    if (!begin.ok()) return begin.status();
    if (!end.ok()) return end.status();
    for (std::int64_t at = *begin; at<*end&& * left> 0;) {
      Result<client::PullResult> pulled =
          consumer->Pull(queue, options_.expression, at, std::min(*left, 32));
      if (!pulled.ok()) return pulled.status();
      for (const ReceivedMessage& message : pulled->messages) {
        if (*left == 0) break;
        --*left;
        std::printf("MSGID: %s %s %s QID: %d offset: %lld tags: %s BODY: %s\n",
                    message.message_id.c_str(), FormatTime(message.store_time_ms).c_str(),
                    queue.topic.c_str(), queue.queue_id,
                    static_cast<long long>(message.queue_offset), message.tag.c_str(),
                    message.body.c_str());
      }
      if (pulled->next_begin_offset <= at) break;
      at = pulled->next_begin_offset;
    }
    return Status::Ok();
  }

  const Options& options_;
  Admin admin_;
};

using VerbAction = int (Verbs::*)();
struct Verb {
  CLI::App* app;
  VerbAction action;
};

std::vector<Verb> DefineVerbs(CLI::App* app, Options* o) {
  std::vector<Verb> verbs;
  const auto verb = [&](const char* name, const char* help, VerbAction action) {
    CLI::App* sub = app->add_subcommand(name, help);
    sub->add_option("-n,--namesrvAddr", o->namesrv,
                    "name server list, host:port;host:port (or NAMESRV_ADDR)")
        ->envname("NAMESRV_ADDR")
        ->required();
    verbs.push_back({sub, action});
    return sub;
  };
  const auto place = [&](CLI::App* sub) {
    sub->add_option("-c,--clusterName", o->cluster,
                    "in every group of this cluster (default: every cluster)");
    sub->add_option("-b,--brokerAddr", o->broker, "only at this address");
  };
  const auto flag = CLI::IsMember({"true", "false"});

  CLI::App* sub = verb("clusterList", "list clusters, their groups and peers", &Verbs::ClusterList);
  sub->add_option("-c,--clusterName", o->cluster, "only this cluster");
  verb("topicList", "list all topics", &Verbs::TopicList);
  sub = verb("topicRoute", "show who serves a topic", &Verbs::TopicRoute);
  sub->add_option("-t,--topic", o->topic, "topic")->required();
  sub = verb("topicStatus", "show a topic's queues", &Verbs::TopicStatus);
  sub->add_option("-t,--topic", o->topic, "topic")->required();
  sub = verb("updateTopic", "create or change a topic", &Verbs::UpdateTopic);
  place(sub);
  sub->add_option("-t,--topic", o->topic, "topic")->required();
  sub->add_option("-r,--readQueueNums", o->read_queues, "read queues")->capture_default_str();
  sub->add_option("-w,--writeQueueNums", o->write_queues, "write queues")->capture_default_str();
  sub->add_option("-p,--perm", o->perm, "2 write, 4 read, 6 both")
      ->capture_default_str()
      ->check(CLI::IsMember({2, 4, 6}));
  sub->add_option("-o,--order", o->order, "ordered topic: true or false")
      ->capture_default_str()
      ->check(flag);
  sub = verb("deleteTopic", "delete a topic everywhere", &Verbs::DeleteTopic);
  sub->add_option("-t,--topic", o->topic, "topic")->required();
  sub->add_option("-c,--clusterName", o->cluster, "only in this cluster");
  sub = verb("updateSubGroup", "create or change a consumer group", &Verbs::UpdateSubGroup);
  place(sub);
  sub->add_option("-g,--groupName", o->group, "group")->required();
  sub->add_option("-s,--consumeEnable", o->consume, "true or false")
      ->capture_default_str()
      ->check(flag);
  sub->add_option("-m,--consumeFromMinEnable", o->from_min, "true or false")
      ->capture_default_str()
      ->check(flag);
  sub->add_option("-d,--consumeBroadcastEnable", o->broadcast, "true or false")
      ->capture_default_str()
      ->check(flag);
  sub->add_option("-q,--retryQueueNums", o->retry_queues, "queues of the retry topic")
      ->capture_default_str();
  sub->add_option("-r,--retryMaxTimes", o->retry_max,
                  "deliveries after the first, before a dead letter")
      ->capture_default_str();
  sub->add_option("-i,--brokerId", o->broker_id, "consume from this broker id")
      ->capture_default_str();
  sub->add_option("-w,--whichBrokerWhenConsumeSlowly", o->slow_broker, "broker id for cold reads")
      ->capture_default_str();
  sub->add_option("-a,--notifyConsumerIdsChanged", o->notify, "true or false")
      ->capture_default_str()
      ->check(flag);
  sub = verb("consumerProgress", "show how far a group (or every group) has consumed",
             &Verbs::ConsumerProgress);
  sub->add_option("-g,--groupName", o->group, "group; without it: all groups");
  sub->add_option("-t,--topicName", o->topic, "only this topic");
  sub = verb("brokerStatus", "show what a broker says of itself", &Verbs::BrokerStatus);
  place(sub);
  sub = verb("sendMessage", "send one message", &Verbs::SendMessage);
  sub->add_option("-t,--topic", o->topic, "topic")->required();
  sub->add_option("-p,--body", o->body, "body")->required();
  sub->add_option("-k,--key", o->keys, "key");
  sub->add_option("-c,--tags", o->tags, "tag");
  sub->add_option("-b,--broker", o->broker, "broker name (with -i)");
  sub->add_option("-i,--qid", o->queue, "queue id (with -b)");
  sub = verb("consumeMessage", "print messages, from the beginning or an offset",
             &Verbs::ConsumeMessage);
  sub->add_option("-t,--topic", o->topic, "topic")->required();
  sub->add_option("-b,--brokerName", o->broker, "only this broker name");
  sub->add_option("-i,--queueId", o->queue, "only this queue");
  sub->add_option("-o,--offset", o->offset, "first queue offset");
  sub->add_option("-c,--MessageNumber", o->count, "at most so many")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  sub->add_option("-g,--consumerGroup", o->group, "group to pull as");
  sub->add_option("-e,--expression", o->expression, "tag expression")->capture_default_str();
  sub = verb("queryMsgById", "show one message by its offset message id", &Verbs::QueryMsgById);
  sub->add_option("-i,--msgId", o->id, "offset message id (32 hexadecimal digits)")->required();
  sub = verb("resetOffsetByTime", "move a group to a point in time", &Verbs::ResetOffsetByTime);
  sub->add_option("-g,--group", o->group, "group")->required();
  sub->add_option("-t,--topic", o->topic, "topic")->required();
  sub->add_option("-s,--timestamp", o->time,
                  "now, -1 (end), milliseconds, or yyyy-MM-dd#HH:mm:ss:SSS")
      ->required();
  sub->add_option("-f,--force", o->force, "also forwards: true or false")
      ->capture_default_str()
      ->check(flag);
  return verbs;
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Looks at and changes a cluster. 'mqadmin VERB --help' explains a verb.", "mqadmin");
  app.require_subcommand(1);
  const std::vector<Verb> verbs = DefineVerbs(&app, &options);
  // "help VERB" as in the original.
  if (argc == 3 && std::string(argv[1]) == "help") {
    std::string verb = argv[2];
    std::string help = "--help";
    char* words[] = {argv[0], verb.data(), help.data()};
    try {
      app.parse(3, words);
    } catch (const CLI::ParseError& error) {
      return app.exit(error) == 0 ? kDone : kUnreachable;
    }
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kUnreachable;
  }
  Verbs run(options);
  const Status started = run.Start();
  if (!started.ok()) return Fail(started);
  for (const Verb& verb : verbs) {
    if (verb.app->parsed()) return (run.*verb.action)();
  }
  return kUnreachable;
}

}  // namespace
}  // namespace triad

int main(int argc, char** argv) {
  FLAGS_logtostderr = true;
  FLAGS_minloglevel = google::GLOG_ERROR;
  google::InitGoogleLogging(argv[0]);
  return triad::Main(argc, argv);
}
