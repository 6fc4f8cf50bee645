#include "broker/processor/lock_processor.h"

#include <algorithm>
#include <utility>

#include "broker/processor/names.h"
#include "broker/processor/response.h"

namespace triad::broker {
namespace {

constexpr std::chrono::milliseconds kLockBudget{800};
constexpr std::size_t kClientIdBytesMax = 1024;

std::string EncodeHeld(const std::string& broker_name, const std::vector<LockService::Held>& held) {
  remoting::JsonWriter writer;
  writer.BeginObject();
  writer.Key("fenceTokens").BeginObject();
  for (const LockService::Held& one : held) {
    writer.Key(one.queue.topic.value() + "@" + std::to_string(one.queue.queue_id.value()))
        .Int(static_cast<std::int64_t>(one.token));
  }
  writer.EndObject();
  writer.Key("lockOKMQSet").BeginArray();
  for (const LockService::Held& one : held) {
    remoting::MessageQueue queue;
    queue.topic = one.queue.topic.value();
    queue.broker_name = broker_name;
    queue.queue_id = one.queue.queue_id.value();
    queue.WriteTo(&writer);
  }
  writer.EndArray();
  writer.EndObject();
  return writer.Take();
}

Result<remoting::LockBatchRequest> Decode(const remoting::Command& command) {
  auto body = remoting::LockBatchRequest::Decode(command.body);
  if (!body.ok()) return body;
  if (body->client_id.empty() || body->consumer_group.empty()) {
    return Status::InvalidArgument("clientId and consumerGroup are needed");
  }
  // They stay in the group's state.
  TRIAD_RETURN_IF_ERROR(CheckGroupName(body->consumer_group));
  if (body->client_id.size() > kClientIdBytesMax) {
    return Status::InvalidArgument("clientId has " + std::to_string(body->client_id.size()) +
                                   " bytes, the limit is " + std::to_string(kClientIdBytesMax));
  }
  return body;
}

}  // namespace

void LockProcessor::Register(Dispatcher* dispatcher) {
  auto policy = LeaderGate::For(kLockBudget, remoting::kServiceNotAvailable);
  policy.repeatable = true;
  dispatcher->RegisterForLeader(
      remoting::kLockBatchMq, policy,
      [this](RequestPtr request, Reply reply) { OnLock(request, reply); });
  // The second time it could release what the client has locked anew.
  policy.repeatable = false;
  dispatcher->RegisterForLeader(
      remoting::kUnlockBatchMq, policy,
      [this](RequestPtr request, Reply reply) { OnUnlock(request, reply); });
}

std::vector<TopicQueue> LockProcessor::QueuesOf(const remoting::LockBatchRequest& body) const {
  std::vector<TopicQueue> queues;
  for (const remoting::MessageQueue& queue : body.queues) {
    if (queue.broker_name != context_.config.broker_name || queue.queue_id < 0) continue;
    const auto topic = context_.store.state().FindTopic(Topic(queue.topic));
    // What does not exist is not locked: the table would grow with every name that is made up.
    if (!topic || queue.queue_id >= std::max(topic->read_queues, topic->write_queues)) continue;
    queues.push_back({Topic(queue.topic), QueueId(queue.queue_id)});
  }
  return queues;
}

void LockProcessor::OnLock(const RequestPtr& request, const Reply& reply) {
  auto body = Decode(request->command);
  if (!body.ok()) {
    reply(BadRequest(request->command, body.status()));
    return;
  }
  context_.locks.Lock(GroupName(body->consumer_group), ClientId(body->client_id),
                      QueuesOf(body.value()), request->arrived + kLockBudget,
                      [request, reply, name = context_.config.broker_name](
                          const Result<std::vector<LockService::Held>>& held) {
                        if (held.ok()) {
                          reply(SuccessWith(request->command, EncodeHeld(name, held.value())));
                        } else {
                          reply(ResponseOf(request->command, held.status()));
                        }
                      });
}

void LockProcessor::OnUnlock(const RequestPtr& request, const Reply& reply) {
  auto body = Decode(request->command);
  if (!body.ok()) {
    reply(BadRequest(request->command, body.status()));
    return;
  }
  context_.locks.Unlock(
      GroupName(body->consumer_group), ClientId(body->client_id), QueuesOf(body.value()),
      request->arrived + kLockBudget,
      [request, reply](const Status& status) { reply(ResponseOf(request->command, status)); });
}

}  // namespace triad::broker
