#include "client/retry_sender.h"

#include <glog/logging.h>

#include <future>
#include <utility>

#include "client/compression.h"
#include "client/message_codec.h"
#include "remoting/codes.h"

namespace triad::client {

namespace {
constexpr std::chrono::milliseconds kTimeout{5000};
// What a broker of ours keeps with a dead letter (others ignore it).
constexpr std::size_t kReasonBytesMax = 1024;
constexpr int kAttempts = 3;    // of a send-back that ends with "failed", which may mean: done
constexpr int kNoMaximum = 16;  // what a group's retries end at when the consumer says nothing

// Nothing was done, and asking again will not help.
bool IsRefusal(const remoting::Command& answer, const Status& status) {
  switch (status.code()) {
    case StatusCode::kInvalidArgument:
    case StatusCode::kNotFound:
    case StatusCode::kPermissionDenied:
    case StatusCode::kUnsupported: return true;
    // Among all else that code 1 says: the message has left the broker's log.
    default: return answer.remark.starts_with("look message by offset failed");
  }
}
}  // namespace

SendTask MakeRetryTask(const ReceivedMessage& message, const std::string& group,
                       int max_reconsume_times, const std::string& reason) {
  Properties properties = message.properties;
  if (properties.try_emplace("RETRY_TOPIC", message.topic).second) {
    properties["ORIGIN_QUEUE_ID"] = std::to_string(message.queue.queue_id);
    properties["ORIGIN_QUEUE_OFFSET"] = std::to_string(message.queue_offset);
  }
  if (!reason.empty()) properties["FAILURE_REASON"] = reason.substr(0, kReasonBytesMax);
  properties.try_emplace("ORIGIN_MESSAGE_ID", message.offset_message_id);
  properties.erase("TRAN_MSG");
  properties["DELAY"] = std::to_string(3 + message.reconsume_times);
  SendTask task;
  task.header.producer_group = "CLIENT_INNER_PRODUCER";
  task.header.topic = std::string(kRetryPrefix) + group;
  task.header.default_topic = std::string(kTemplateTopic);
  task.header.default_topic_queue_nums = kTemplateQueues;
  task.header.flag = message.flag;
  task.header.properties = JoinProperties(properties);
  task.header.reconsume_times = message.reconsume_times + 1;
  task.header.max_reconsume_times = max_reconsume_times < 0 ? kNoMaximum : max_reconsume_times;
  if (!CanUnpack(message.sys_flag)) {  // the body is as it was stored
    task.header.sys_flag = message.sys_flag & (kCompressed | kCompressionTypeMask);
  }
  task.body = message.body;
  task.timeout = kTimeout;
  return task;
}

RetrySender::Outcome RetrySender::SendCopy(const ReceivedMessage& message,
                                           const std::string& reason) {
  SendTask task =
      MakeRetryTask(message, context_->options.group, context_->max_reconsume_times(), reason);
  auto answer = std::make_shared<std::promise<Status>>();
  task.done = [answer](const Result<SendAnswer>& result) { answer->set_value(result.status()); };
  context_->sender->Send(std::move(task));
  Status sent = answer->get_future().get();
  const bool is_open = sent.code() == StatusCode::kTimedOut;  // all else was certainly not stored
  return {std::move(sent), is_open};
}

RetrySender::Outcome RetrySender::SendBack(const ReceivedMessage& message, int delay_level,
                                           const std::string& reason) {
  remoting::SendBackRequest header;
  header.offset = message.physical_offset;
  header.group = context_->options.group;
  header.delay_level = delay_level;
  header.origin_msg_id = message.offset_message_id;
  header.origin_topic = message.topic;
  header.max_reconsume_times = context_->max_reconsume_times();
  remoting::Command request = remoting::Command::Request(remoting::kConsumerSendMsgBack);
  header.Encode(&request.ext);
  if (!reason.empty()) request.ext.Set("failureReason", reason.substr(0, kReasonBytesMax));
  Status last;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const Result<remoting::Command> answer =
        context_->calls->Call(message.queue.broker_name, request, kTimeout);
    if (!answer.ok()) return {answer.status(), true};
    last = StatusOfCode(*answer, "send back");
    if (last.ok()) return {last};
    if (!IsRefusal(*answer, last)) continue;
    LOG(WARNING) << "message " << message.message_id << " could not be sent back (" << last
                 << "); sending a copy to the retry topic of group " << context_->options.group;
    return SendCopy(message, reason);
  }
  return {last, true};
}

}  // namespace triad::client
