#include "client/pull_request.h"

#include <utility>

#include "client/broker_calls.h"
#include "client/message_codec.h"
#include "remoting/codes.h"
#include "remoting/headers.h"

namespace triad::client {

namespace {

constexpr std::int32_t kCommitOffset = 0x1;
constexpr std::int32_t kSuspend = 0x2;
constexpr std::int32_t kSubscriptionInRequest = 0x4;

std::string Name(const MessageQueue& queue) {
  return queue.topic + "@" + queue.broker_name + ":" + std::to_string(queue.queue_id);
}

}  // namespace

remoting::Command EncodePull(const PullQuestion& question) {
  remoting::PullMessageRequest header;
  header.consumer_group = question.group;
  header.topic = question.queue.topic;
  header.queue_id = question.queue.queue_id;
  header.queue_offset = question.offset;
  header.max_msg_nums = question.max_messages;
  // The expression always travels along: a broker that has not heard of the group yet can answer.
  header.sys_flag = kSubscriptionInRequest;
  if (question.hold.count() > 0) header.sys_flag |= kSuspend;
  if (question.commit_offset > 0) header.sys_flag |= kCommitOffset;
  header.commit_offset = question.commit_offset;
  header.suspend_timeout_ms = question.hold.count();
  header.subscription = question.expression;
  header.sub_version = question.sub_version;
  header.expression_type = "TAG";
  remoting::Command request = remoting::Command::Request(remoting::kPullMessage);
  header.Encode(&request.ext);
  return request;
}

Result<PullAnswer> DecodePull(const remoting::Command& answer, const MessageQueue& queue,
                              const std::string& address) {
  PullAnswer decoded;
  switch (answer.code) {
    case remoting::kSuccess: decoded.result.status = PullStatus::kFound; break;
    case remoting::kPullNotFound: decoded.result.status = PullStatus::kNoNewMessage; break;
    case remoting::kPullRetryImmediately:
      decoded.result.status = PullStatus::kNoMatchedMessage;
      break;
    case remoting::kPullOffsetMoved: decoded.result.status = PullStatus::kOffsetIllegal; break;
    default: return StatusOfCode(answer, "pull of " + Name(queue) + " at " + address);
  }
  const Result<remoting::PullMessageResponse> header =
      remoting::PullMessageResponse::Decode(answer.ext);
  if (!header.ok()) return header.status();
  decoded.result.next_begin_offset = header->next_begin_offset;
  decoded.result.min_offset = header->min_offset;
  decoded.result.max_offset = header->max_offset;
  decoded.suggested_broker_id = header->suggest_which_broker_id;
  if (decoded.result.status == PullStatus::kFound) {
    Result<std::vector<ReceivedMessage>> messages = DecodeMessages(answer.body, queue.broker_name);
    if (!messages.ok()) {
      return Status::Corruption("pull of " + Name(queue) + " at " + address + ": " +
                                std::string(messages.status().message()));
    }
    decoded.result.messages = std::move(*messages);
  }
  return decoded;
}

}  // namespace triad::client
