#include "bin/admin/messages.h"

#include <algorithm>
#include <vector>

#include "bin/admin/time_text.h"

namespace triad::admin {
namespace {

using client::MessageQueue;

constexpr std::int64_t kBatch = 32;

Status ForEachOfQueue(const Range& range, const MessageQueue& queue, client::PullConsumer* consumer,
                      std::int64_t* left,
                      const std::function<void(const client::ReceivedMessage&)>& use) {
  Result<std::int64_t> begin = range.from_offset >= 0 ? Result<std::int64_t>(range.from_offset)
                               : range.begin_ms > 0 ? consumer->OffsetByTime(queue, range.begin_ms)
                                                    : consumer->MinOffset(queue);
  const Result<std::int64_t> end = consumer->MaxOffset(queue);
  if (!begin.ok()) return begin.status();
  if (!end.ok()) return end.status();
  for (std::int64_t at = *begin; *left > 0 && at < *end;) {
    const auto pulled =
        consumer->Pull(queue, range.expression, at, static_cast<int>(std::min(*left, kBatch)));
    if (!pulled.ok()) return pulled.status();
    for (const client::ReceivedMessage& message : pulled->messages) {
      if (range.end_ms > 0 && message.store_time_ms > range.end_ms) return Status::Ok();
      if (*left == 0) break;
      --*left;
      use(message);
    }
    if (pulled->next_begin_offset <= at) break;
    at = pulled->next_begin_offset;
  }
  return Status::Ok();
}

}  // namespace

Record Describe(const client::ReceivedMessage& message) {
  std::string keys;
  for (const std::string& key : message.keys) keys += (keys.empty() ? "" : " ") + key;
  std::string properties;
  for (const auto& [key, value] : message.properties) {
    properties += (properties.empty() ? "" : ", ") + key + "=" + value;
  }
  return {{"OffsetID", message.offset_message_id},
          {"MsgId", message.message_id},
          {"Topic", message.queue.topic},
          {"Tags", message.tag},
          {"Keys", keys},
          {"Queue ID", std::to_string(message.queue.queue_id)},
          {"Queue Offset", std::to_string(message.queue_offset)},
          {"CommitLog Offset", std::to_string(message.physical_offset)},
          {"Reconsume Times", std::to_string(message.reconsume_times)},
          {"Born Timestamp", FormatTime(message.born_time_ms)},
          {"Store Timestamp", FormatTime(message.store_time_ms)},
          {"Born Host", message.born_host},
          {"Store Host", message.store_host},
          {"System Flag", std::to_string(message.sys_flag)},
          {"Properties", "{" + properties + "}"},
          {"Message Body", message.body}};
}

client::ProducerOptions ProducerOptionsOf(Session* session) {
  client::ProducerOptions options;
  options.client = session->client_options();
  options.group = "mqadmin_producer";
  options.retries = 3;
  return options;
}

Status ForEach(const Range& range, client::PullConsumer* consumer,
               const std::function<void(const client::ReceivedMessage&)>& use) {
  auto queues = consumer->Queues(range.route_topic.empty() ? range.topic : range.route_topic);
  if (!queues.ok()) return queues.status();
  std::int64_t left = range.count;
  bool any = false;
  for (MessageQueue& queue : *queues) {
    queue.topic = range.topic;
    if (!range.broker_name.empty() && queue.broker_name != range.broker_name) continue;
    if (range.queue_id >= 0 && queue.queue_id != range.queue_id) continue;
    any = true;
    TRIAD_RETURN_IF_ERROR(ForEachOfQueue(range, queue, consumer, &left, use));
  }
  if (any) return Status::Ok();
  return Status::NotFound("topic " + range.topic + " has no such queue");
}

Result<std::int64_t> TimeOrZero(const std::string& text) {
  return text.empty() ? Result<std::int64_t>(0) : ParseTime(text);
}

}  // namespace triad::admin
