#include "triad/producer.h"

#include <glog/logging.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <utility>

#include "client/client_instance.h"
#include "client/compression.h"
#include "client/message_codec.h"
#include "client/not_running.h"
#include "client/ordered_lanes.h"
#include "client/sender.h"

namespace triad::client {

namespace {

// The queue of a key: stable as long as the topic has as many queues.
std::size_t QueueOfKey(const std::string& key, std::size_t queues) {
  const auto hash = static_cast<std::uint32_t>(JavaHash(key));
  return (hash & 0x7FFFFFFFu) % queues;
}

}  // namespace

class Producer::State : public std::enable_shared_from_this<Producer::State> {
 public:
  explicit State(ProducerOptions options) : options_(std::move(options)) {}

  Status Start();
  void Shutdown();
  bool running() const { return running_; }

  // Errors: kInvalidArgument.
  Result<SendTask> MakeTask(const Message& message, std::string* unique_key) const;
  Result<SendResult> SendAndWait(Message message, SendTask* chosen);
  void SendAsync(SendTask task, std::string unique_key, Callback done);
  Status SendOneway(const Message& message);
  Result<std::vector<SendResult>> SendBatch(const std::vector<Message>& messages);
  void SubmitAsync(const Message& message, Callback done);
  void SubmitOrdered(Message message, const std::string& key, Callback done);
  Result<std::vector<MessageQueue>> Queues(const std::string& topic);

 private:
  struct Ordered {
    Message message;
    std::string key;
    Callback done;
  };
  void StartOrdered(const std::string& lane, Ordered ordered);
  void OrderedDone(const std::string& lane, const Callback& done, Result<SendResult> result);
  // Counts an async send against max_inflight. Null, and `done` has been told, when there is no
  // place; else `done`, which now also gives the place back.
  Callback TakePlace(Callback done);

  const ProducerOptions options_;
  std::mutex lifecycle_;  // Start and Shutdown
  std::shared_ptr<ClientInstance> instance_;
  std::unique_ptr<Sender> sender_;
  std::atomic<bool> running_ = false;

  std::mutex mutex_;  // leaf
  OrderedLanes<Ordered> lanes_;
  std::condition_variable idle_;
  std::size_t places_taken_ = 0;  // async and ordered sends
};

Status Producer::State::Start() {
  std::lock_guard hold(lifecycle_);
  if (running_) return Status::Ok();
  TRIAD_RETURN_IF_ERROR(CheckName("producer group", options_.group, 255));
  if (options_.send_timeout.count() <= 0 || options_.retries < 0) {
    return Status::InvalidArgument("send_timeout must be positive and retries not negative");
  }
  auto instance = ClientInstance::Attach(options_.client);
  if (!instance.ok()) return instance.status();
  instance_ = *instance;
  instance_->AddProducer(options_.group);
  sender_ = std::make_unique<Sender>(instance_.get());
  running_ = true;
  return Status::Ok();
}

void Producer::State::Shutdown() {
  std::lock_guard hold(lifecycle_);
  if (!running_.exchange(false)) return;
  sender_->Close();
  {
    // What waited in the lanes is cancelled by the failures in front of it.
    std::unique_lock wait(mutex_);
    idle_.wait(wait, [this] { return places_taken_ == 0; });
  }
  instance_->RemoveProducer(options_.group);
  instance_->Detach();
}

Result<SendTask> Producer::State::MakeTask(const Message& message, std::string* unique_key) const {
  TRIAD_RETURN_IF_ERROR(CheckMessage(message, options_.max_message_bytes));
  const auto own = message.properties.find("UNIQ_KEY");  // a message that is sent again
  *unique_key = own == message.properties.end() ? NewUniqueKey() : own->second;
  SendTask task;
  task.header.producer_group = options_.group;
  task.header.topic = message.topic;
  task.header.default_topic = std::string(kTemplateTopic);
  task.header.default_topic_queue_nums = kTemplateQueues;
  task.header.flag = message.flag;
  task.header.properties = JoinProperties(WireProperties(message, *unique_key));
  task.timeout = options_.send_timeout;
  task.attempts_max = options_.retries + 1;
  task.body = message.body;
  if (options_.compress_above_bytes > 0 && message.body.size() >= options_.compress_above_bytes) {
    std::string packed = Deflate(message.body);
    if (packed.size() < message.body.size()) {
      task.body = std::move(packed);
      task.header.sys_flag |= kCompressed;
    }
  }
  return task;
}

void Producer::State::SendAsync(SendTask task, std::string unique_key, Callback done) {
  task.done = [unique_key = std::move(unique_key),
               done = std::move(done)](Result<SendAnswer> answer) {
    if (!answer.ok()) {
      done(answer.status());
      return;
    }
    SendResult result;
    result.message_id = unique_key;
    result.offset_message_id = answer->header.msg_id;
    result.queue = answer->queue;
    result.queue_offset = answer->header.queue_offset;
    done(std::move(result));
  };
  sender_->Send(std::move(task));
}

Result<SendResult> Producer::State::SendAndWait(Message message, SendTask* chosen) {
  if (!running_) return NotRunning("producer");
  std::string unique_key;
  Result<SendTask> task = MakeTask(message, &unique_key);
  if (!task.ok()) return task.status();
  task->queue = chosen->queue;
  task->pick = chosen->pick;
  auto answer = std::make_shared<std::promise<Result<SendResult>>>();
  SendAsync(std::move(*task), std::move(unique_key),
            [answer](Result<SendResult> result) { answer->set_value(std::move(result)); });
  return answer->get_future().get();
}

Status Producer::State::SendOneway(const Message& message) {
  if (!running_) return NotRunning("producer");
  std::string unique_key;
  Result<SendTask> task = MakeTask(message, &unique_key);
  if (!task.ok()) return task.status();
  return sender_->SendOneway(std::move(*task));
}

Result<std::vector<SendResult>> Producer::State::SendBatch(const std::vector<Message>& messages) {
  if (!running_) return NotRunning("producer");
  if (messages.empty()) return Status::InvalidArgument("an empty batch");
  std::string body;
  std::vector<std::string> unique_keys;
  for (const Message& message : messages) {
    TRIAD_RETURN_IF_ERROR(CheckMessage(message, options_.max_message_bytes));
    if (message.topic != messages.front().topic) {
      return Status::InvalidArgument("all messages of a batch must have one topic");
    }
    if (message.delay_level > 0 || message.topic.starts_with(kRetryPrefix)) {
      return Status::InvalidArgument("a batch can be neither delayed nor sent to a retry topic");
    }
    unique_keys.push_back(NewUniqueKey());
    AppendBatchItem(message, JoinProperties(WireProperties(message, unique_keys.back())), &body);
  }
  if (body.size() > options_.max_message_bytes) {
    return Status::InvalidArgument("the batch has " + std::to_string(body.size()) +
                                   " bytes; at most " + std::to_string(options_.max_message_bytes) +
                                   " may be sent at once");
  }
  std::string unique_key;
  Result<SendTask> task = MakeTask(messages.front(), &unique_key);
  if (!task.ok()) return task.status();
  task->header.batch = true;
  task->header.sys_flag = 0;
  task->header.properties = "WAIT\x01true\x02";
  task->body = std::move(body);
  auto promise = std::make_shared<std::promise<Result<SendAnswer>>>();
  task->done = [promise](Result<SendAnswer> result) { promise->set_value(std::move(result)); };
  sender_->Send(std::move(*task));
  Result<SendAnswer> answer = promise->get_future().get();
  if (!answer.ok()) return answer.status();
  std::vector<SendResult> results;
  std::string ids = answer->header.msg_id;
  for (std::size_t i = 0; i < unique_keys.size(); ++i) {
    const std::size_t comma = std::min(ids.find(','), ids.size());
    SendResult result;
    result.message_id = unique_keys[i];
    result.offset_message_id = ids.substr(0, comma);
    result.queue = answer->queue;
    result.queue_offset = answer->header.queue_offset + static_cast<std::int64_t>(i);
    ids.erase(0, std::min(comma + 1, ids.size()));
    results.push_back(std::move(result));
  }
  return results;
}

Producer::Callback Producer::State::TakePlace(Callback done) {
  Status refused;
  {
    std::lock_guard hold(mutex_);
    if (!running_) {
      refused = NotRunning("producer");
    } else if (places_taken_ >= options_.max_inflight) {
      refused = Status::Busy(std::to_string(places_taken_) +
                             " sends wait for their answers already; wait for some of them");
    } else {
      ++places_taken_;
    }
  }
  if (!refused.ok()) {
    done(std::move(refused));
    return nullptr;
  }
  return [self = shared_from_this(), done = std::move(done)](Result<SendResult> result) {
    done(std::move(result));
    std::lock_guard hold(self->mutex_);
    if (--self->places_taken_ == 0) self->idle_.notify_all();
  };
}

void Producer::State::SubmitAsync(const Message& message, Callback done) {
  done = TakePlace(std::move(done));
  if (!done) return;
  std::string unique_key;
  Result<SendTask> task = MakeTask(message, &unique_key);
  if (!task.ok()) {
    done(task.status());
    return;
  }
  SendAsync(std::move(*task), std::move(unique_key), std::move(done));
}

void Producer::State::SubmitOrdered(Message message, const std::string& key, Callback done) {
  Status sendable = CheckMessage(message, options_.max_message_bytes);
  if (!sendable.ok()) {  // found before it took its place in the order: it breaks none
    done(std::move(sendable));
    return;
  }
  done = TakePlace(std::move(done));
  if (!done) return;
  const std::string lane = message.topic + '\n' + key;
  if (!key.empty()) message.properties["__SHARDINGKEY"] = key;
  std::optional<Ordered> start;
  {
    std::lock_guard hold(mutex_);
    start = lanes_.Enter(lane, Ordered{std::move(message), key, std::move(done)});
  }
  if (start) StartOrdered(lane, std::move(*start));
}

void Producer::State::StartOrdered(const std::string& lane, Ordered ordered) {
  std::string unique_key;
  Result<SendTask> task = MakeTask(ordered.message, &unique_key);
  if (!task.ok()) {
    OrderedDone(lane, ordered.done, task.status());
    return;
  }
  task->pick = [key = ordered.key](const std::vector<MessageQueue>& queues) {
    return QueueOfKey(key, queues.size());
  };
  SendAsync(std::move(*task), std::move(unique_key),
            [self = shared_from_this(), lane, done = std::move(ordered.done)](
                Result<SendResult> result) { self->OrderedDone(lane, done, std::move(result)); });
}

void Producer::State::OrderedDone(const std::string& lane, const Callback& done,
                                  Result<SendResult> result) {
  OrderedLanes<Ordered>::Next next;
  {
    std::lock_guard hold(mutex_);
    next = lanes_.Leave(lane, result.ok());
  }
  if (next.start) StartOrdered(lane, std::move(*next.start));
  done(std::move(result));
  for (Ordered& behind : next.cancel) {
    behind.done(Status::Cancelled("an earlier message of key '" + behind.key +
                                  "' failed; sending this one would break their order"));
  }
}

Result<std::vector<MessageQueue>> Producer::State::Queues(const std::string& topic) {
  if (!running_) return NotRunning("producer");
  const Result<RoutePtr> route = instance_->routes().Get(topic, true);
  if (!route.ok()) return route.status();
  return (*route)->publish;
}

// ---- the public face ----------------------------------------------------------------------------

Producer::Producer(ProducerOptions options) : state_(std::make_shared<State>(std::move(options))) {}
Producer::~Producer() {
  Shutdown();
}
Status Producer::Start() {
  return state_->Start();
}
void Producer::Shutdown() {
  state_->Shutdown();
}

Result<SendResult> Producer::Send(Message message) {
  SendTask any;
  return state_->SendAndWait(std::move(message), &any);
}

Result<SendResult> Producer::Send(Message message, const MessageQueue& queue) {
  SendTask fixed;
  fixed.queue = queue;
  if (queue.topic != message.topic) {
    return Status::InvalidArgument("the queue belongs to topic '" + queue.topic + "', not to '" +
                                   message.topic + "'");
  }
  return state_->SendAndWait(std::move(message), &fixed);
}

Result<SendResult> Producer::Send(Message message, const Selector& selector) {
  SendTask picked;
  picked.pick = [selector, message](const std::vector<MessageQueue>& queues) {
    return selector(queues, message);
  };
  return state_->SendAndWait(std::move(message), &picked);
}

void Producer::SendAsync(Message message, Callback done) {
  state_->SubmitAsync(message, std::move(done));
}

Status Producer::SendOneway(Message message) {
  return state_->SendOneway(message);
}

Result<std::vector<SendResult>> Producer::SendBatch(std::vector<Message> messages) {
  return state_->SendBatch(messages);
}

Result<SendResult> Producer::SendOrdered(Message message, const std::string& key) {
  auto answer = std::make_shared<std::promise<Result<SendResult>>>();
  SendOrderedAsync(std::move(message), key,
                   [answer](Result<SendResult> result) { answer->set_value(std::move(result)); });
  return answer->get_future().get();
}

void Producer::SendOrderedAsync(Message message, const std::string& key, Callback done) {
  state_->SubmitOrdered(std::move(message), key, std::move(done));
}

Result<std::vector<MessageQueue>> Producer::Queues(const std::string& topic) {
  return state_->Queues(topic);
}

}  // namespace triad::client
