#include "client/directed_calls.h"

#include <exception>

#include "client/message_codec.h"
#include "remoting/codes.h"
#include "remoting/json.h"

namespace triad::client {

namespace {

std::string KeyOf(const MessageQueue& queue) {
  remoting::JsonWriter writer;
  remoting::MessageQueue{queue.topic, queue.broker_name, queue.queue_id}.WriteTo(&writer);
  return writer.Take();
}

void WriteQueue(const ConsumerContext& context, const ProcessQueue& queue, TimePoint now,
                remoting::JsonWriter* writer) {
  const bool pulled = queue.last_pull() != TimePoint{};
  const auto ago = std::chrono::duration_cast<std::chrono::milliseconds>(now - queue.last_pull());
  writer->BeginObject();
  writer->Key("cachedMsgCount").Int(static_cast<std::int64_t>(queue.cached_messages()));
  writer->Key("cachedMsgMaxOffset").Int(0);
  writer->Key("cachedMsgMinOffset").Int(0);
  writer->Key("cachedMsgSizeInMiB").Int(0);
  writer->Key("commitOffset").Int(context.offsets.Find(queue.queue()).value_or(-1));
  writer->Key("droped").Bool(queue.dropped());
  writer->Key("lastConsumeTimestamp").Int(0);
  writer->Key("lastLockTimestamp").Int(0);
  writer->Key("lastPullTimestamp").Int(pulled ? SystemClock().WallNowMs() - ago.count() : 0);
  writer->Key("locked").Bool(queue.HasLock(now));
  writer->Key("transactionMsgCount").Int(0);
  writer->Key("transactionMsgMaxOffset").Int(0);
  writer->Key("transactionMsgMinOffset").Int(0);
  writer->Key("tryUnlockTimes").Int(0);
  writer->EndObject();
}

}  // namespace

std::string RunningInfoBody(const ConsumerContext& context, const remoting::ConsumerData& self,
                            const QueueTable& table, TimePoint now) {
  remoting::JsonWriter writer;
  writer.BeginObject();
  writer.Key("mqPopTable").BeginObject().EndObject();
  writer.Key("mqTable").BeginObject();
  for (const ProcessQueuePtr& queue : table.All()) {
    writer.RawKey(KeyOf(queue->queue()));
    WriteQueue(context, *queue, now, &writer);
  }
  writer.EndObject();
  writer.Key("properties").BeginObject();
  writer.Key("PROP_CLIENT_VERSION").String(remoting::kServerVersionName);
  writer.Key("PROP_CONSUMEORDERLY").String(context.orderly ? "true" : "false");
  writer.Key("PROP_CONSUMER_START_TIMESTAMP").String(std::to_string(context.started_at_ms));
  writer.Key("PROP_CONSUME_TYPE").String("CONSUME_PASSIVELY");
  writer.Key("PROP_NAMESERVER_ADDR").String(context.options.client.namesrv_address);
  writer.Key("PROP_THREADPOOL_CORE_SIZE").String(std::to_string(context.options.threads));
  writer.EndObject();
  writer.Key("statusTable").BeginObject().EndObject();
  writer.Key("subscriptionSet").BeginArray();
  for (const remoting::SubscriptionData& subscription : self.subscriptions) {
    subscription.WriteTo(&writer);
  }
  writer.EndArray();
  writer.Key("userConsumerInfo").BeginObject().EndObject();
  writer.EndObject();
  return writer.Take();
}

std::string StatusBody(const ConsumerContext& context, const QueueTable& table,
                       const std::string& topic) {
  remoting::JsonWriter writer;
  writer.BeginObject();
  writer.Key("consumerTable").BeginObject().EndObject();
  writer.Key("messageQueueTable").BeginObject();
  for (const ProcessQueuePtr& queue : table.All()) {
    const auto offset = context.offsets.Find(queue->queue());
    if (queue->queue().topic != topic || !offset) continue;
    writer.RawKey(KeyOf(queue->queue())).Int(*offset);
  }
  writer.EndObject().EndObject();
  return writer.Take();
}

remoting::Command ConsumeDirectly(const remoting::Command& request, bool orderly,
                                  const DirectListener& listener) {
  const auto messages = DecodeMessages(request.body, request.ext.StringOr("brokerName", ""));
  if (!messages.ok() || messages->empty()) {
    return remoting::Command::ResponseTo(
        request, remoting::kSystemError,
        "the message cannot be read: " +
            (messages.ok() ? "there is none" : std::string(messages.status().message())));
  }
  const TimePoint begin = SystemClock().MonoNow();
  std::string result;
  std::string remark;
  try {
    const bool consumed = listener(*messages, messages->front().queue);
    result = consumed ? "CR_SUCCESS" : "CR_LATER";
  } catch (const std::exception& error) {  // the listener is not ours
    result = "CR_THROW_EXCEPTION";
    remark = error.what();
  } catch (...) {
    result = "CR_THROW_EXCEPTION";
  }
  const auto spent =
      std::chrono::duration_cast<std::chrono::milliseconds>(SystemClock().MonoNow() - begin);
  remoting::JsonWriter writer;
  writer.BeginObject();
  writer.Key("autoCommit").Bool(true);
  writer.Key("consumeResult").String(result);
  writer.Key("order").Bool(orderly);
  if (!remark.empty()) writer.Key("remark").String(remark);
  writer.Key("spentTimeMills").Int(spent.count());
  writer.EndObject();
  remoting::Command answer = remoting::Command::ResponseTo(request, remoting::kSuccess);
  answer.body = writer.Take();
  return answer;
}

}  // namespace triad::client
