#include "broker/processor/offset_processor.h"

#include <algorithm>
#include <utility>

#include "broker/processor/names.h"
#include "broker/processor/response.h"
#include "broker/processor/system_state.h"
#include "remoting/headers.h"

namespace triad::broker {
namespace {

// Of our own client: the token of the lock under which it consumed.
constexpr std::string_view kFenceField = "fenceToken";
constexpr std::string_view kSetZeroField = "setZeroIfNotFound";

remoting::Command WithOffset(const remoting::Command& request, std::int64_t offset) {
  remoting::Command response = Success(request);
  remoting::OffsetResponse header;
  header.offset = offset;
  header.Encode(&response.ext);
  return response;
}

remoting::Command NoTopic(const remoting::Command& request, const std::string& topic) {
  return remoting::Command::ResponseTo(request, remoting::kTopicNotExist,
                                       "topic " + topic + " does not exist");
}

remoting::Command NotFound(const remoting::Command& request) {
  return remoting::Command::ResponseTo(request, remoting::kQueryNotFound,
                                       "Not found, maybe this group consumer boot first");
}

}  // namespace

void OffsetProcessor::Register(Dispatcher* dispatcher) {
  dispatcher->RegisterForLeader(
      remoting::kQueryConsumerOffset, LeaderGate::Silent(kBudget),
      [this](RequestPtr request, Reply reply) { OnQuery(request, reply); });
  // Not repeated: the second time it would take back what another consumer committed meanwhile.
  dispatcher->RegisterForLeader(
      remoting::kUpdateConsumerOffset, LeaderGate::For(kBudget, remoting::kServiceNotAvailable),
      [this](RequestPtr request, Reply reply) { OnUpdate(request, reply); });
}

void OffsetProcessor::OnQuery(const RequestPtr& request, const Reply& reply) {
  auto header = remoting::QueryConsumerOffsetRequest::Decode(request->command.ext);
  if (!header.ok()) {
    reply(BadRequest(request->command, header.status()));
    return;
  }
  const TopicQueue queue{Topic(header->topic), QueueId(header->queue_id)};
  const GroupQueue key{GroupName(header->consumer_group), queue};
  context_.offsets.Query(
      key, request->arrived + kBudget,
      [this, request, reply, queue](const Result<std::optional<QueueOffset>>& stored) {
        if (!stored.ok()) {
          if (stored.status().code() == StatusCode::kNotLeader) {
            reply(NotLeaderResponse(request->command));
          } else {
            KeepSilent(*request, reply);
          }
          return;
        }
        if (stored.value().has_value()) {
          reply(WithOffset(request->command, stored.value()->value()));
        } else {
          AnswerWithoutStored(request, reply, queue);
        }
      });
}

void OffsetProcessor::AnswerWithoutStored(const RequestPtr& request, const Reply& reply,
                                          const TopicQueue& queue) {
  if (!request->command.ext.BoolOr(kSetZeroField, true)) {
    reply(NotFound(request->command));
    return;
  }
  const QueueRange range = context_.store.RangeOf(queue);
  if (range.max.value() == 0) {  // never written: 0 is right whatever comes next
    reply(WithOffset(request->command, 0));
    return;
  }
  if (range.min.value() > 0) {
    reply(NotFound(request->command));
    return;
  }
  const auto units = context_.store.queues().ReadNow(queue, QueueOffset(0), 1);
  if (units && !units->empty()) {
    AnswerByDistance(request, reply, units->front());
    return;
  }
  const bool posted = context_.store.node().PostReader([this, request, reply, queue] {
    auto read = context_.store.queues().Read(queue, QueueOffset(0), 1);
    if (read.ok() && !read->empty()) {
      AnswerByDistance(request, reply, read->front());
    } else {
      LOG(WARNING) << "offset query: message 0 of " << queue.topic << " queue " << queue.queue_id
                   << " cannot be found: " << read.status();
      KeepSilent(*request, reply);
    }
  });
  if (posted) return;
  LOG(WARNING) << "offset query left unanswered: too many reads wait";
  KeepSilent(*request, reply);
}

void OffsetProcessor::AnswerByDistance(const RequestPtr& request, const Reply& reply,
                                       const QueueUnit& first) {
  const std::int64_t end = context_.store.node().end_position().value();
  const std::int64_t limit = memory_bytes_ / 100 * context_.config.in_memory_percent;
  const bool in_memory = end - first.position.value() <= limit;
  reply(in_memory ? WithOffset(request->command, 0) : NotFound(request->command));
}

void OffsetProcessor::OnUpdate(const RequestPtr& request, const Reply& reply) {
  const remoting::Command& command = request->command;
  auto header = remoting::UpdateConsumerOffsetRequest::Decode(command.ext);
  auto token = command.ext.Int64Or(kFenceField, 0);
  if (!header.ok() || !token.ok()) {
    reply(ResponseOf(command, header.ok() ? token.status() : header.status()));
    return;
  }
  if (header->queue_id < 0 || header->commit_offset < 0 || token.value() < 0) {
    reply(
        remoting::Command::ResponseTo(command, remoting::kInvalidParameter,
                                      "queueId, commitOffset and fenceToken must not be negative"));
    return;
  }
  OffsetCommit commit;
  commit.key = {GroupName(header->consumer_group),
                {Topic(header->topic), QueueId(header->queue_id)}};
  commit.offset = QueueOffset(header->commit_offset);
  commit.fence_token = static_cast<std::uint64_t>(token.value());
  const auto topic = context_.store.state().FindTopic(commit.key.queue.topic);
  if (!topic) {
    reply(NoTopic(command, header->topic));
    return;
  }
  if (!IsQueueOf(*topic, commit.key)) {
    reply(remoting::Command::ResponseTo(
        command, remoting::kInvalidParameter,
        "queueId[" + std::to_string(header->queue_id) + "] is illegal, topic[" + header->topic +
            "] has " + std::to_string(topic->read_queues) + " read and " +
            std::to_string(topic->write_queues) + " write queues and had no such queue before"));
    return;
  }
  if (context_.store.state().FindGroup(commit.key.group)) {
    Commit(request, reply, std::move(commit));
  } else {
    CommitInNewGroup(request, reply, commit);
  }
}

void OffsetProcessor::CommitInNewGroup(const RequestPtr& request, const Reply& reply,
                                       const OffsetCommit& commit) {
  const std::string& group = commit.key.group.value();
  if (!context_.config.auto_create_group || !CheckGroupName(group).ok()) {
    reply(remoting::Command::ResponseTo(request->command, remoting::kSubscriptionGroupNotExist,
                                        "group " + group + " does not exist"));
    return;
  }
  StateCommand missing =
      MissingGroupState(context_.config, context_.store.state(), commit.key.group, false, false);
  creator_.Create(group, std::move(missing), request->arrived + kBudget,
                  [this, request, reply, commit](const Status& status) {
                    if (status.ok()) {
                      Commit(request, reply, commit);
                    } else {
                      reply(ResponseOf(request->command, status));
                    }
                  });
}

void OffsetProcessor::Commit(const RequestPtr& request, const Reply& reply, OffsetCommit commit) {
  if (context_.resets->Pending(commit.key.group, commit.key.queue, context_.clock.MonoNow())) {
    remoting::Command ignored = Success(request->command);
    ignored.remark = "Offset has been previously reset";
    reply(std::move(ignored));
    return;
  }
  const std::string topic = commit.key.queue.topic.value();
  context_.offsets.Commit(std::move(commit), request->arrived + kBudget,
                          [request, reply, topic](const Status& status) {
                            if (status.code() == StatusCode::kNotFound) {
                              reply(NoTopic(request->command, topic));
                            } else {
                              reply(ResponseOf(request->command, status));
                            }
                          });
}

// A queue that the topic has, or had when it was larger: it was written to, or an offset of it is
// kept. Offsets of any other number would fill the table for good.
bool OffsetProcessor::IsQueueOf(const TopicConfig& topic, const GroupQueue& key) const {
  if (key.queue.queue_id.value() < std::max(topic.read_queues, topic.write_queues)) return true;
  const ReplicatedState& state = context_.store.state();
  return state.NextOffset(key.queue).value() > 0 || state.FindOffset(key).has_value();
}

}  // namespace triad::broker
