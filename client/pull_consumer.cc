#include "triad/pull_consumer.h"

#include <atomic>
#include <mutex>
#include <utility>

#include "client/broker_calls.h"
#include "client/message_codec.h"
#include "client/not_running.h"
#include "client/pull_request.h"

namespace triad::client {

namespace {

// Drops what only shares the hash of a wanted tag.
Status KeepTags(const std::string& expression, std::vector<ReceivedMessage>* messages) {
  const Result<std::vector<std::string>> tags = ParseTags(expression);
  if (!tags.ok()) return tags.status();
  if (tags->empty()) return Status::Ok();
  std::erase_if(*messages, [&](const ReceivedMessage& message) {
    return std::find(tags->begin(), tags->end(), message.tag) == tags->end();
  });
  return Status::Ok();
}

}  // namespace

class PullConsumer::State {
 public:
  explicit State(PullConsumerOptions options) : options_(std::move(options)) {}

  Status Start();
  void Shutdown();
  Result<RoutePtr> RouteOf(const std::string& topic);
  // Where a queue's broker is must be known before it can be asked: from the route of its topic, or
  // of another topic, since a light message queue has no route of its own.
  Status Ready(const MessageQueue& queue);
  Result<PullResult> Finish(const Result<remoting::Command>& answer, const PullQuestion& question,
                            const std::string& address);

  const PullConsumerOptions options_;
  std::mutex lifecycle_;
  std::shared_ptr<ClientInstance> instance_;
  std::unique_ptr<BrokerCalls> calls_;
  std::atomic<bool> running_ = false;
};

Status PullConsumer::State::Start() {
  std::lock_guard hold(lifecycle_);
  if (running_) return Status::Ok();
  TRIAD_RETURN_IF_ERROR(CheckName("consumer group", options_.group, kMaxGroupBytes));
  auto instance = ClientInstance::Attach(options_.client);
  if (!instance.ok()) return instance.status();
  instance_ = *instance;
  calls_ = std::make_unique<BrokerCalls>(instance_.get());
  running_ = true;
  return Status::Ok();
}

void PullConsumer::State::Shutdown() {
  std::lock_guard hold(lifecycle_);
  if (running_.exchange(false)) instance_->Detach();
}

Result<RoutePtr> PullConsumer::State::RouteOf(const std::string& topic) {
  if (!running_) return NotRunning("pull consumer");
  return instance_->routes().Get(topic, false);
}

Status PullConsumer::State::Ready(const MessageQueue& queue) {
  const Status known = RouteOf(queue.topic).status();
  if (known.code() != StatusCode::kNotFound) return known;
  const bool met = !instance_->book().Pick(queue.broker_name, SystemClock().MonoNow()).empty();
  return met ? Status::Ok() : known;
}

Result<PullResult> PullConsumer::State::Finish(const Result<remoting::Command>& answer,
                                               const PullQuestion& question,
                                               const std::string& address) {
  if (!answer.ok()) return answer.status();
  Result<PullAnswer> decoded = DecodePull(*answer, question.queue, address);
  if (!decoded.ok()) return decoded.status();
  TRIAD_RETURN_IF_ERROR(KeepTags(question.expression, &decoded->result.messages));
  return std::move(decoded->result);
}

PullConsumer::PullConsumer(PullConsumerOptions options)
    : state_(std::make_shared<State>(std::move(options))) {}
PullConsumer::~PullConsumer() {
  Shutdown();
}
Status PullConsumer::Start() {
  return state_->Start();
}
void PullConsumer::Shutdown() {
  state_->Shutdown();
}

Result<std::vector<MessageQueue>> PullConsumer::Queues(const std::string& topic) {
  const Result<RoutePtr> route = state_->RouteOf(topic);
  if (!route.ok()) return route.status();
  return (*route)->subscribe;
}

namespace {
PullQuestion Question(const std::string& group, const MessageQueue& queue,
                      const std::string& expression, std::int64_t offset, int max_messages) {
  PullQuestion question;
  question.group = group;
  question.queue = queue;
  question.expression = expression;
  question.offset = offset;
  question.max_messages = max_messages;
  return question;
}
}  // namespace

Result<PullResult> PullConsumer::Pull(const MessageQueue& queue, const std::string& expression,
                                      std::int64_t offset, int max_messages,
                                      std::chrono::milliseconds hold) {
  TRIAD_RETURN_IF_ERROR(state_->Ready(queue));
  PullQuestion question = Question(state_->options_.group, queue, expression, offset, max_messages);
  question.hold = hold;
  // The first attempt may be held; BrokerCalls' attempts are too short for that.
  const std::string address =
      state_->instance_->book().Pick(queue.broker_name, SystemClock().MonoNow());
  if (hold.count() > 0 && !address.empty()) {
    const Result<remoting::Command> answer = state_->instance_->remoting().CallSync(
        address, EncodePull(question), hold + state_->options_.timeout);
    if (answer.ok()) return state_->Finish(answer, question, address);
    state_->instance_->book().NoteFailure(address, SystemClock().MonoNow());
    question.hold = std::chrono::milliseconds(0);
  }
  return state_->Finish(
      state_->calls_->Call(queue.broker_name, EncodePull(question), state_->options_.timeout),
      question, queue.broker_name);
}

Result<PullResult> PullConsumer::PullFrom(const std::string& address, const MessageQueue& queue,
                                          const std::string& expression, std::int64_t offset,
                                          int max_messages) {
  if (!state_->running_) return NotRunning("pull consumer");
  const PullQuestion question =
      Question(state_->options_.group, queue, expression, offset, max_messages);
  return state_->Finish(state_->instance_->remoting().CallSync(address, EncodePull(question),
                                                               state_->options_.timeout),
                        question, address);
}

Result<std::int64_t> PullConsumer::MinOffset(const MessageQueue& queue) {
  TRIAD_RETURN_IF_ERROR(state_->Ready(queue));
  return state_->calls_->MinOffset(queue);
}

Result<std::int64_t> PullConsumer::MaxOffset(const MessageQueue& queue) {
  TRIAD_RETURN_IF_ERROR(state_->Ready(queue));
  return state_->calls_->MaxOffset(queue);
}

Result<std::int64_t> PullConsumer::OffsetByTime(const MessageQueue& queue, std::int64_t time_ms) {
  TRIAD_RETURN_IF_ERROR(state_->Ready(queue));
  return state_->calls_->OffsetByTime(queue, time_ms);
}

Result<std::int64_t> PullConsumer::FetchOffset(const MessageQueue& queue) {
  TRIAD_RETURN_IF_ERROR(state_->Ready(queue));
  const Result<std::optional<std::int64_t>> stored =
      state_->calls_->QueryOffset(state_->options_.group, queue);
  if (!stored.ok()) return stored.status();
  if (!stored->has_value()) {
    return Status::NotFound("group '" + state_->options_.group + "' has no offset of this queue");
  }
  return **stored;
}

Status PullConsumer::CommitOffset(const MessageQueue& queue, std::int64_t offset) {
  TRIAD_RETURN_IF_ERROR(state_->Ready(queue));
  return state_->calls_->CommitOffset(state_->options_.group, queue, offset, 0);
}

}  // namespace triad::client
