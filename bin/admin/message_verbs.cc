// sendMessage, consumeMessage, queryMsgById.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bin/admin/time_text.h"
#include "bin/admin/verbs.h"
#include "bin/table.h"
#include "triad/producer.h"
#include "triad/pull_consumer.h"

namespace triad::admin {
namespace {

using client::MessageQueue;

void PrintMessage(const client::ReceivedMessage& message) {
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

struct SendOptions {
  std::string broker, topic, body, keys, tags;
  int queue = -1;
};

int SendMessage(const SendOptions& o, Session* session) {
  client::ProducerOptions producer_options;
  producer_options.client = session->client_options();
  producer_options.group = "mqadmin_producer";
  producer_options.retries = 3;
  client::Producer producer(producer_options);
  const Status started = producer.Start();
  if (!started.ok()) return Fail(started);
  client::Message message;
  message.topic = o.topic;
  message.body = o.body;
  message.tag = o.tags;
  if (!o.keys.empty()) message.keys = {o.keys};
  Result<client::SendResult> sent =
      o.queue >= 0 && !o.broker.empty()
          ? producer.Send(message, MessageQueue{o.topic, o.broker, o.queue})
          : producer.Send(message);
  if (!sent.ok()) return Fail(sent.status());
  Table table({"#Broker Name", "#QID", "#Queue Offset", "#Send Result", "#MsgId", "#OffsetMsgId"});
  table.Add({sent->queue.broker_name, std::to_string(sent->queue.queue_id),
             std::to_string(sent->queue_offset), "SEND_OK", sent->message_id,
             sent->offset_message_id});
  table.Print();
  return kDone;
}

struct ConsumeOptions {
  std::string broker, topic, group, expression = "*";
  int queue = -1, count = 128;
  std::int64_t offset = -1;
};

Status PrintQueue(const ConsumeOptions& o, client::PullConsumer* consumer,
                  const MessageQueue& queue, int* left) {
  Result<std::int64_t> begin =
      o.offset >= 0 ? Result<std::int64_t>(o.offset) : consumer->MinOffset(queue);
  Result<std::int64_t> end = consumer->MaxOffset(queue);
  if (!begin.ok()) return begin.status();
  if (!end.ok()) return end.status();
  std::int64_t at = *begin;
  while (*left > 0 && at < *end) {
    Result<client::PullResult> pulled =
        consumer->Pull(queue, o.expression, at, std::min(*left, 32));
    if (!pulled.ok()) return pulled.status();
    for (const client::ReceivedMessage& message : pulled->messages) {
      if (*left == 0) break;
      --*left;
      std::printf("MSGID: %s %s %s QID: %d offset: %lld tags: %s BODY: %s\n",
                  message.message_id.c_str(), FormatTime(message.store_time_ms).c_str(),
                  queue.topic.c_str(), queue.queue_id, static_cast<long long>(message.queue_offset),
                  message.tag.c_str(), message.body.c_str());
    }
    if (pulled->next_begin_offset <= at) break;
    at = pulled->next_begin_offset;
  }
  return Status::Ok();
}

int ConsumeMessage(const ConsumeOptions& o, Session* session) {
  client::PullConsumerOptions consumer_options;
  consumer_options.client = session->client_options();
  if (!o.group.empty()) consumer_options.group = o.group;
  client::PullConsumer consumer(consumer_options);
  const Status started = consumer.Start();
  if (!started.ok()) return Fail(started);
  Result<std::vector<MessageQueue>> queues = consumer.Queues(o.topic);
  if (!queues.ok()) return Fail(queues.status());
  int left = o.count;
  for (const MessageQueue& queue : *queues) {
    if (!o.broker.empty() && queue.broker_name != o.broker) continue;
    if (o.queue >= 0 && queue.queue_id != o.queue) continue;
    const Status done = PrintQueue(o, &consumer, queue, &left);
    if (!done.ok()) return Fail(done);
  }
  std::printf("%d message%s\n", o.count - left, o.count - left == 1 ? "" : "s");
  return kDone;
}

int QueryMsgById(const std::string& id, Session* session) {
  Result<client::ReceivedMessage> message = session->admin().ViewMessage(id);
  if (!message.ok()) return Fail(message.status());
  PrintMessage(*message);
  return kDone;
}

}  // namespace

void AddMessageVerbs(Registry* verbs) {
  const auto send = std::make_shared<SendOptions>();
  CLI::App* verb = verbs->Add("sendMessage", "send one message",
                              [send](Session* session) { return SendMessage(*send, session); });
  verb->add_option("-t,--topic", send->topic, "topic")->required();
  verb->add_option("-p,--body", send->body, "body")->required();
  verb->add_option("-k,--key", send->keys, "key");
  verb->add_option("-c,--tags", send->tags, "tag");
  verb->add_option("-b,--broker", send->broker, "broker name (with -i)");
  verb->add_option("-i,--qid", send->queue, "queue id (with -b)");

  const auto consume = std::make_shared<ConsumeOptions>();
  verb = verbs->Add("consumeMessage", "print messages, from the beginning or an offset",
                    [consume](Session* session) { return ConsumeMessage(*consume, session); });
  verb->add_option("-t,--topic", consume->topic, "topic")->required();
  verb->add_option("-b,--brokerName", consume->broker, "only this broker name");
  verb->add_option("-i,--queueId", consume->queue, "only this queue");
  verb->add_option("-o,--offset", consume->offset, "first queue offset");
  verb->add_option("-c,--MessageNumber", consume->count, "at most so many")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  verb->add_option("-g,--consumerGroup", consume->group, "group to pull as");
  verb->add_option("-e,--expression", consume->expression, "tag expression")->capture_default_str();

  const auto id = std::make_shared<std::string>();
  verb = verbs->Add("queryMsgById", "show one message by its offset message id",
                    [id](Session* session) { return QueryMsgById(*id, session); });
  verb->add_option("-i,--msgId", *id, "offset message id (32 hexadecimal digits)")->required();
}

}  // namespace triad::admin
