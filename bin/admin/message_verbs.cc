// sendMessage, checkMsgSendRT, sendMsgStatus, consumeMessage, printMsg, printMsgByQueue.

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bin/admin/charset.h"
#include "bin/admin/messages.h"
#include "bin/admin/number_text.h"
#include "bin/admin/time_text.h"
#include "bin/admin/verbs.h"
#include "triad/producer.h"
#include "triad/pull_consumer.h"

namespace triad::admin {
namespace {

using client::MessageQueue;
using client::ReceivedMessage;
using Clock = std::chrono::steady_clock;

int SendMessage(const Given& given, Session* session) {
  client::Producer producer(ProducerOptionsOf(session));
  const Status started = producer.Start();
  if (!started.ok()) return Fail(started);
  client::Message message;
  message.topic = given.Text("topic");
  message.body = given.Text("body");
  message.tag = given.Text("tags");
  if (given.Has("key")) message.keys = {given.Text("key")};
  if (given.Has("broker") != (given.Number("qid") >= 0)) {
    return WrongUse(Status::InvalidArgument("-b and -i go together"));
  }
  const auto sent = given.Has("broker")
                        ? producer.Send(message, MessageQueue{message.topic, given.Text("broker"),
                                                              given.Int("qid")})
                        : producer.Send(message);
  if (!sent.ok()) return Fail(sent.status());
  Table table({"#Broker Name", "#QID", "#Queue Offset", "#Send Result", "#MsgId", "#OffsetMsgId"});
  table.Add({sent->queue.broker_name, std::to_string(sent->queue.queue_id),
             std::to_string(sent->queue_offset), "SEND_OK", sent->message_id,
             sent->offset_message_id});
  Print(table, given);
  return kDone;
}

// How long each of `count` sends takes; 1 when one fails.
int TimeSends(const std::string& topic, std::int64_t count, std::int64_t bytes, const Given& given,
              Session* session) {
  client::Producer producer(ProducerOptionsOf(session));
  const Status started = producer.Start();
  if (!started.ok()) return Fail(started);
  client::Message message;
  message.topic = topic;
  message.body = std::string(static_cast<std::size_t>(bytes), 'm');
  Table table({"#Broker Name", "#QID", "#Send Result", "#RT ms"});
  double total = 0;
  std::int64_t failed = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto begin = Clock::now();
    const auto sent = producer.Send(message);
    const double ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    total += ms;
    failed += !sent.ok();
    table.Add({sent.ok() ? sent->queue.broker_name : "",
               sent.ok() ? std::to_string(sent->queue.queue_id) : "",
               sent.ok() ? "SEND_OK" : sent.status().ToString(), Decimal(ms)});
  }
  Print(table, given);
  Note("Avg RT: " + Decimal(count > 0 ? total / static_cast<double>(count) : 0) + " ms", given);
  return failed == 0 ? kDone : kRefused;
}

int CheckMsgSendRt(const Given& given, Session* session) {
  return TimeSends(given.Text("topic"), given.Number("amount"), given.Number("size"), given,
                   session);
}

int SendMsgStatus(const Given& given, Session* session) {  // each broker has a topic of its name
  return TimeSends(given.Text("brokerName"), given.Number("count"), given.Number("messageSize"),
                   given, session);
}

// Prints what `range` holds: a line each, or a list of all. `charset`: of the bodies.
int Show(Range range, bool bodies, const std::string& group, const std::string& charset,
         const Given& given, Session* session) {
  const auto known = ToUtf8("", charset);
  if (!known.ok()) return WrongUse(known.status());
  const auto begin = TimeOrZero(given.Text("beginTimestamp"));
  const auto end = TimeOrZero(given.Text("endTimestamp"));
  if (!begin.ok()) return WrongUse(begin.status());
  if (!end.ok()) return WrongUse(end.status());
  range.begin_ms = *begin;
  range.end_ms = *end;
  client::PullConsumerOptions options;
  options.client = session->client_options();
  if (!group.empty()) options.group = group;
  client::PullConsumer consumer(options);
  const Status started = consumer.Start();
  if (!started.ok()) return Fail(started);
  std::vector<Record> records;
  std::size_t count = 0;
  const Status done = ForEach(range, &consumer, [&](ReceivedMessage message) {
    ++count;
    message.body = ToUtf8(message.body, charset).value();
    if (given.json()) {
      records.push_back(Describe(message));
      return;
    }
    Note("MSGID: " + message.message_id + " " + FormatTime(message.store_time_ms) + " " +
             message.queue.topic + " QID: " + std::to_string(message.queue.queue_id) +
             " offset: " + std::to_string(message.queue_offset) + " tags: " + message.tag +
             (bodies ? " BODY: " + message.body : ""),
         given);
  });
  if (!done.ok()) return Fail(done);
  if (given.json()) Print(records, given);
  Note(std::to_string(count) + " message" + (count == 1 ? "" : "s"), given);
  return kDone;
}

int ConsumeMessage(const Given& given, Session* session) {
  Range range;
  range.topic = given.Text("topic");
  range.broker_name = given.Text("brokerName");
  range.queue_id = given.Number("queueId");
  range.from_offset = given.Number("offset");
  range.count = given.Number("MessageNumber");
  range.expression = given.Text("expression");
  return Show(std::move(range), true, given.Text("consumerGroup"), "", given, session);
}

int PrintMsg(const Given& given, Session* session) {
  Range range;
  range.topic = given.Text("topic");
  range.route_topic = given.Text("lmqParentTopic");
  range.expression = given.Text("subExpression");
  return Show(std::move(range), given.Is("printBody"), "", given.Text("charsetName"), given,
              session);
}

// How many messages of each tag the queue holds.
int CountTags(const Range& range, const Given& given, Session* session) {
  client::PullConsumerOptions options;
  options.client = session->client_options();
  client::PullConsumer consumer(options);
  const Status started = consumer.Start();
  if (!started.ok()) return Fail(started);
  std::map<std::string, std::int64_t> counts;
  const Status done = ForEach(range, &consumer,
                              [&counts](const ReceivedMessage& message) { ++counts[message.tag]; });
  if (!done.ok()) return Fail(done);
  Table table({"#Tag", "#Count"});
  for (const auto& [tag, count] : counts) table.Add({tag, std::to_string(count)});
  Print(table, given);
  return kDone;
}

int PrintMsgByQueue(const Given& given, Session* session) {
  Range range;
  range.topic = given.Text("topic");
  range.expression = given.Text("subExpression");
  range.broker_name = given.Text("brokerName");
  range.queue_id = given.Number("queueId");
  if (given.Is("calculate")) return CountTags(range, given, session);
  return Show(std::move(range), given.Is("printBody"), "", given.Text("charsetName"), given,
              session);
}

}  // namespace

std::vector<Verb> MessageVerbs() {
  const Option topic = {"-t,--topic", "topic"};
  const char* time = "currentTimeMillis, milliseconds, or yyyy-MM-dd#HH:mm:ss:SSS";
  const Option tags = {"-s,--subExpression", "only with these tags: TagA || TagB", "*"};
  const Option charset = {"-c,--charsetName",
                          "character set of the bodies, as GBK; UTF-8: they stand as they are",
                          "UTF-8"};
  return {
      {"sendMessage",
       "send one message",
       "-t Orders -k order-1 -c paid -p hello",
       {topic,
        {"-p,--body", "body"},
        {"-k,--key", "key", ""},
        {"-c,--tags", "tag", ""},
        {"-b,--broker", "broker name (with -i)", ""},
        {"-i,--qid", "queue id (with -b)", "-1", kNumber},
        {"-m,--msgTraceEnable", "taken, without effect", "false", kText, kYesNo}},
       SendMessage},
      {"checkMsgSendRT",
       "send messages and show how long each takes",
       "-t Orders -a 10",
       {topic,
        {"-a,--amount", "how many", "100", kCount},
        {"-s,--size", "bytes of each", "128", kCount}},
       CheckMsgSendRt},
      {"sendMsgStatus",
       "the same, to the topic that is named like a broker",
       "-b RaftNode00 -c 10",
       {{"-b,--brokerName", "broker name"},
        {"-c,--count", "how many", "50", kCount},
        {"-s,--messageSize", "bytes of each", "128", kCount}},
       SendMsgStatus},
      {"consumeMessage",
       "print messages, from the beginning, an offset or a time",
       "-t Orders -c 10",
       {topic,
        {"-b,--brokerName", "only of this broker name", ""},
        {"-i,--queueId", "only of this queue", "-1", kNumber},
        {"-o,--offset", "first queue offset", "-1", kNumber},
        {"-c,--MessageNumber", "at most so many", "128", kCount},
        {"-s,--beginTimestamp", time, ""},
        {"-e,--endTimestamp", time, ""},
        {"-g,--consumerGroup", "group to pull as", ""},
        {"--expression", "only with these tags: TagA || TagB", "*"}},
       ConsumeMessage},
      {"printMsg",
       "print the messages of a topic",
       "-t Orders -d true",
       {topic,
        tags,
        charset,
        {"-b,--beginTimestamp", time, ""},
        {"-e,--endTimestamp", time, ""},
        {"-d,--printBody", "with the body", "true", kText, kYesNo},
        {"-l,--lmqParentTopic",
         "the topic is a light message queue: look for it where this topic is", ""}},
       PrintMsg},
      {"printMsgByQueue",
       "print the messages of one queue, or count them by tag",
       "-t Orders -a RaftNode00 -i 0 -d true",
       {topic,
        {"-a,--brokerName", "broker name"},
        {"-i,--queueId", "queue id", nullptr, kCount},
        tags,
        charset,
        {"-b,--beginTimestamp", time, ""},
        {"-e,--endTimestamp", time, ""},
        {"-p,--print-msg,--print", "taken: messages are printed unless -f true", "true", kText,
         kYesNo},
        {"-d,--printBody", "with the body", "false", kText, kYesNo},
        {"-f,--calculate", "count by tag instead", "false", kText, kYesNo}},
       PrintMsgByQueue},
  };
}

}  // namespace triad::admin
