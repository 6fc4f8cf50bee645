#include "client/broker_calls.h"

#include <algorithm>
#include <future>
#include <utility>

#include "remoting/bodies.h"
#include "remoting/codes.h"
#include "remoting/headers.h"

namespace triad::client {

namespace {

constexpr std::chrono::milliseconds kAttempt{3000};
constexpr std::chrono::milliseconds kTotal{6000};
constexpr std::chrono::milliseconds kLockTotal{2500};
constexpr std::chrono::milliseconds kPause{50};  // between attempts
constexpr int kCommitAttempts = 5;

// The broker means: not now, not here.
bool IsPassing(std::int32_t code) {
  return code == remoting::kServiceNotAvailable || code == remoting::kSystemBusy ||
         code == remoting::kGoAway || code == remoting::kFlowControl;
}

remoting::MessageQueue WireQueue(const MessageQueue& queue) {
  remoting::MessageQueue wire;
  wire.topic = queue.topic;
  wire.broker_name = queue.broker_name;
  wire.queue_id = queue.queue_id;
  return wire;
}

std::string Name(const MessageQueue& queue) {
  return queue.topic + "@" + queue.broker_name + ":" + std::to_string(queue.queue_id);
}

}  // namespace

Status StatusOfCode(const remoting::Command& answer, const std::string& what) {
  if (answer.code == remoting::kSuccess) return Status::Ok();
  const std::string text = what + ": answered " + std::to_string(answer.code) + " " +
                           std::string(remoting::ResponseCodeName(answer.code)) + ": " +
                           answer.remark;
  switch (answer.code) {
    case remoting::kSystemBusy:
    case remoting::kFlowControl: return Status::Busy(text);
    case remoting::kRequestCodeNotSupported:
    case remoting::kVersionNotSupported: return Status::Unsupported(text);
    case remoting::kMessageIllegal:
    case remoting::kInvalidParameter:
    case remoting::kSubscriptionParseFailed: return Status::InvalidArgument(text);
    case remoting::kNoPermission: return Status::PermissionDenied(text);
    case remoting::kTopicNotExist:
    case remoting::kQueryNotFound:
    case remoting::kSubscriptionNotExist:
    case remoting::kSubscriptionGroupNotExist:
    case remoting::kConsumerNotOnline: return Status::NotFound(text);
    case remoting::kFlushDiskTimeout:
    case remoting::kSlaveNotAvailable:
    case remoting::kFlushSlaveTimeout:
      return Status::TimedOut(text + "; stored, but not confirmed by the other peers");
    case remoting::kServiceNotAvailable:
    case remoting::kGoAway: return Status::Unavailable(text);
    default: return Status::Internal(text);
  }
}

Result<remoting::Command> BrokerCalls::Call(const std::string& broker_name,
                                            remoting::Command request,
                                            std::chrono::milliseconds timeout) {
  const TimePoint deadline = SystemClock().MonoNow() + timeout;
  Status last = Status::Unavailable("no address of broker group '" + broker_name + "' is known");
  for (;;) {
    const TimePoint now = SystemClock().MonoNow();
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - now);
    if (left.count() <= 0) return last;
    const std::string address = instance_->book().Pick(broker_name, now);
    if (address.empty()) return last;
    Result<remoting::Command> answer =
        instance_->remoting().CallSync(address, request, std::min(left, kAttempt));
    if (answer.ok() && !IsPassing(answer->code)) {
      instance_->book().NoteSuccess(address);
      return answer;
    }
    last = answer.ok() ? StatusOfCode(*answer, address) : answer.status();
    if (last.code() == StatusCode::kCancelled) return last;
    instance_->book().NoteFailure(address, SystemClock().MonoNow());
    instance_->routes().RefreshAll();
    // A short wait that ends with the instance: its scheduler drops the task and the promise.
    auto wake = std::make_shared<std::promise<void>>();
    auto woken = wake->get_future();
    instance_->scheduler().After(kPause, [wake] { wake->set_value(); });
    wake.reset();
    woken.wait_for(kPause * 2);
  }
}

Result<std::optional<std::int64_t>> BrokerCalls::QueryOffset(const std::string& group,
                                                             const MessageQueue& queue) {
  remoting::QueryConsumerOffsetRequest header;
  header.consumer_group = group;
  header.topic = queue.topic;
  header.queue_id = queue.queue_id;
  remoting::Command request = remoting::Command::Request(remoting::kQueryConsumerOffset);
  header.Encode(&request.ext);
  const Result<remoting::Command> answer = Call(queue.broker_name, std::move(request), kTotal);
  if (!answer.ok()) return answer.status();
  if (answer->code == remoting::kQueryNotFound) return std::optional<std::int64_t>();
  TRIAD_RETURN_IF_ERROR(StatusOfCode(*answer, "offset of " + Name(queue)));
  const Result<std::int64_t> offset = answer->ext.GetInt64("offset");
  if (!offset.ok()) return offset.status();
  return std::optional<std::int64_t>(*offset);
}

Status BrokerCalls::CommitOffset(const std::string& group, const MessageQueue& queue,
                                 std::int64_t offset, std::uint64_t fence_token) {
  remoting::UpdateConsumerOffsetRequest header;
  header.consumer_group = group;
  header.topic = queue.topic;
  header.queue_id = queue.queue_id;
  header.commit_offset = offset;
  remoting::Command request = remoting::Command::Request(remoting::kUpdateConsumerOffset);
  header.Encode(&request.ext);
  if (fence_token != 0) request.ext.Set("fenceToken", static_cast<std::int64_t>(fence_token));
  // "Not committed in time" may be said of a commit more than once; repeating it does no harm.
  Status last;
  for (int attempt = 0; attempt < kCommitAttempts; ++attempt) {
    const Result<remoting::Command> answer = Call(queue.broker_name, request, kTotal);
    if (!answer.ok()) return answer.status();
    last = StatusOfCode(*answer, "commit of " + Name(queue));
    if (answer->code != remoting::kSystemError) return last;
  }
  return last;
}

Result<std::int64_t> BrokerCalls::AskOffset(const std::string& broker_name,
                                            remoting::Command request) {
  const Result<remoting::Command> answer = Call(broker_name, std::move(request), kTotal);
  if (!answer.ok()) return answer.status();
  TRIAD_RETURN_IF_ERROR(StatusOfCode(*answer, "offset at " + broker_name));
  return answer->ext.GetInt64("offset");
}

Result<std::int64_t> BrokerCalls::MaxOffset(const MessageQueue& queue) {
  remoting::GetMaxOffsetRequest header;
  header.topic = queue.topic;
  header.queue_id = queue.queue_id;
  remoting::Command request = remoting::Command::Request(remoting::kGetMaxOffset);
  header.Encode(&request.ext);
  return AskOffset(queue.broker_name, std::move(request));
}

Result<std::int64_t> BrokerCalls::MinOffset(const MessageQueue& queue) {
  remoting::GetMinOffsetRequest header;
  header.topic = queue.topic;
  header.queue_id = queue.queue_id;
  remoting::Command request = remoting::Command::Request(remoting::kGetMinOffset);
  header.Encode(&request.ext);
  return AskOffset(queue.broker_name, std::move(request));
}

Result<std::int64_t> BrokerCalls::OffsetByTime(const MessageQueue& queue, std::int64_t time_ms) {
  remoting::SearchOffsetRequest header;
  header.topic = queue.topic;
  header.queue_id = queue.queue_id;
  header.timestamp_ms = time_ms;
  remoting::Command request = remoting::Command::Request(remoting::kSearchOffsetByTimestamp);
  header.Encode(&request.ext);
  return AskOffset(queue.broker_name, std::move(request));
}

Result<std::vector<std::string>> BrokerCalls::Members(const std::string& group,
                                                      const RoutePtr& route) {
  if (route->data.broker_datas.empty()) return Status::Unavailable("the topic has no broker");
  remoting::ConsumerGroupRequest header;
  header.consumer_group = group;
  remoting::Command request = remoting::Command::Request(remoting::kGetConsumerListByGroup);
  header.Encode(&request.ext);
  const Result<remoting::Command> answer =
      Call(route->data.broker_datas.front().broker_name, std::move(request), kTotal);
  if (!answer.ok()) return answer.status();
  TRIAD_RETURN_IF_ERROR(StatusOfCode(*answer, "members of group " + group));
  Result<remoting::ConsumerIdList> list = remoting::ConsumerIdList::Decode(answer->body);
  if (!list.ok()) return list.status();
  std::sort(list->ids.begin(), list->ids.end());
  list->ids.erase(std::unique(list->ids.begin(), list->ids.end()), list->ids.end());
  return list->ids;
}

remoting::Command BrokerCalls::LockRequest(std::int32_t code, const std::string& group,
                                           const std::vector<MessageQueue>& queues) {
  remoting::LockBatchRequest body;
  body.client_id = instance_->client_id();
  body.consumer_group = group;
  for (const MessageQueue& queue : queues) body.queues.push_back(WireQueue(queue));
  remoting::Command request = remoting::Command::Request(code);
  request.body = body.Encode();
  return request;
}

Result<std::map<MessageQueue, std::uint64_t>> BrokerCalls::Lock(
    const std::string& group, const std::string& broker_name,
    const std::vector<MessageQueue>& queues) {
  const Result<remoting::Command> answer =
      Call(broker_name, LockRequest(remoting::kLockBatchMq, group, queues), kLockTotal);
  if (!answer.ok()) return answer.status();
  TRIAD_RETURN_IF_ERROR(StatusOfCode(*answer, "queue locks of group " + group));
  const Result<remoting::LockBatchResponse> body =
      remoting::LockBatchResponse::Decode(answer->body);
  if (!body.ok()) return body.status();
  const Result<remoting::Json> json = remoting::Json::Parse(answer->body);
  std::map<MessageQueue, std::uint64_t> held;
  for (const remoting::MessageQueue& queue : body->locked) {
    std::int64_t token = 0;
    if (json.ok()) {
      const std::string key = queue.topic + "@" + std::to_string(queue.queue_id);
      token = (*json)["fenceTokens"][key].AsInt64(0);
    }
    held[MessageQueue{queue.topic, queue.broker_name, queue.queue_id}] =
        static_cast<std::uint64_t>(token);
  }
  return held;
}

Status BrokerCalls::Unlock(const std::string& group, const std::string& broker_name,
                           const std::vector<MessageQueue>& queues) {
  const Result<remoting::Command> answer =
      Call(broker_name, LockRequest(remoting::kUnlockBatchMq, group, queues), kLockTotal);
  if (!answer.ok()) return answer.status();
  return StatusOfCode(*answer, "release of queue locks of group " + group);
}

}  // namespace triad::client
