#include "tests/chaos/load.h"

#include <glog/logging.h>

#include <utility>

#include "common/crc32c.h"

namespace triad::chaos {

using std::chrono::milliseconds;

namespace {

constexpr int kFreeProducers = 5;
constexpr int kOrderedProducers = 2;
constexpr int kKeysPerProducer = 12;
constexpr milliseconds kAfterFailure{20};

}  // namespace

void Stopper::Stop() {
  std::lock_guard hold(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

bool Stopper::stopped() {
  std::lock_guard hold(mutex_);
  return stopped_;
}

bool Stopper::Wait(milliseconds time) {
  std::unique_lock hold(mutex_);
  return changed_.wait_for(hold, time, [this] { return stopped_; });
}

std::string QueueName(const client::MessageQueue& queue) {
  return queue.topic + "/" + std::to_string(queue.queue_id);
}

std::string BodyOf(const std::string& value, std::size_t filler_bytes) {
  std::string body = value + "|";
  for (std::size_t i = 0; i < filler_bytes; ++i) {
    body.push_back(static_cast<char>('a' + (i * 7 + value.size() * 3 + i / 13) % 26));
  }
  return body;
}

std::string ValueOf(const std::string& body) {
  return body.substr(0, body.find('|'));
}

std::int64_t HashOf(const std::string& body) {
  return Crc32c(body);
}

Outcome OutcomeOf(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk: return Outcome::kOk;
    case StatusCode::kUnavailable:
    case StatusCode::kBusy:
    case StatusCode::kNotFound:
    case StatusCode::kPermissionDenied:
    case StatusCode::kInvalidArgument: return Outcome::kFail;
    default: return Outcome::kInfo;
  }
}

void NoteGroups(HistoryWriter* history) {
  for (const bool orderly : {true, false}) {
    Event group;
    group.op = Op::kGroup;
    group.group = orderly ? "G-orderly" : kFreeGroup;
    group.attempts = orderly ? 1 : kFreeAttempts;
    group.key = orderly ? kOrderedTopic : kFreeTopic;
    group.value = orderly ? "orderly" : "concurrent";
    history->Note(group);
  }
}

Load::Load(std::string namesrv_address, std::string broker_name, HistoryWriter* history,
           std::uint64_t seed, milliseconds between_sends)
    : namesrv_address_(std::move(namesrv_address)),
      broker_name_(std::move(broker_name)),
      history_(history),
      seed_(seed),
      between_sends_(between_sends) {}

Load::~Load() {
  IgnoreError(StopSending(), "it cannot fail");
  IgnoreError(StopConsuming(), "it cannot fail");
}

Status Load::Start() {
  NoteGroups(history_);
  for (const bool orderly : {true, false}) {
    for (const char* member : {"a", "b"}) {
      TRIAD_RETURN_IF_ERROR(
          StartConsumer(std::string(orderly ? "G-orderly" : "G-free") + member, orderly));
    }
  }
  for (int i = 0; i < kFreeProducers; ++i) {
    threads_.emplace_back([this, i] {
      SendFree("f" + std::to_string(i), seed_ + static_cast<std::uint64_t>(i), false);
    });
  }
  threads_.emplace_back([this] { SendFree("d0", seed_ + 500, true); });
  for (int i = 0; i < kOrderedProducers; ++i) threads_.emplace_back([this, i] { SendOrdered(i); });
  return Status::Ok();
}

Status Load::StartConsumer(const std::string& client, bool orderly) {
  client::PushConsumerOptions options;
  options.client.namesrv_address = namesrv_address_;
  options.client.instance_name = client;
  options.group = orderly ? "G-orderly" : kFreeGroup;
  if (!orderly) options.max_reconsume_times = kFreeAttempts - 1;
  options.consume_from = client::ConsumeFrom::kFirstOffset;
  options.threads = 4;
  options.suspend_current_queue = milliseconds(20);
  options.rebalance_interval = milliseconds(5000);
  options.offset_commit_interval = milliseconds(1000);
  auto consumer = std::make_unique<client::PushConsumer>(options);
  TRIAD_RETURN_IF_ERROR(consumer->Subscribe(orderly ? kOrderedTopic : kFreeTopic));
  const std::string group = options.group;
  if (orderly) {
    consumer->SetListener(client::MessageListenerOrderly(
        [this, group, client](const std::vector<client::ReceivedMessage>& messages,
                              client::OrderlyContext* context) {
          for (const client::ReceivedMessage& message : messages) {
            OnDelivered(group, client, context->fence_token, message, true);
          }
          // One in a hundred fails and comes again in place.
          const bool fails =
              HashOf(messages.front().body) % 100 == 0 && messages.front().reconsume_times == 0;
          return fails ? client::OrderlyResult::kSuspendCurrentQueue
                       : client::OrderlyResult::kSuccess;
        }));
  } else {
    consumer->SetListener(client::MessageListenerConcurrently(
        [this, group, client](const std::vector<client::ReceivedMessage>& messages,
                              client::ConcurrentContext* context) {
          // One in two hundred is refused the first time and comes back through the retry topic,
          // after 10 s; another one always, every second, until it is a dead letter.
          const std::int64_t kind = HashOf(messages.front().body) % 200;
          const bool takes = kind == 1 ? messages.front().reconsume_times > 0 : kind != 2;
          if (kind == 2) context->delay_level = 1;
          for (const client::ReceivedMessage& message : messages) {
            OnDelivered(group, client, 0, message, takes);
          }
          return takes ? client::ConcurrentResult::kSuccess
                       : client::ConcurrentResult::kReconsumeLater;
        }));
  }
  TRIAD_RETURN_IF_ERROR(consumer->Start());
  consumers_.push_back(std::move(consumer));
  return Status::Ok();
}

void Load::OnDelivered(const std::string& group, const std::string& client, std::uint64_t token,
                       const client::ReceivedMessage& message, bool taken) {
  Event event;
  event.outcome = taken ? Outcome::kOk : Outcome::kFail;
  event.op = Op::kDeliver;
  event.group = group;
  event.client = client;
  event.token = static_cast<std::int64_t>(token);
  event.times = message.reconsume_times;
  event.born = message.born_time_ms;
  event.key = QueueName(message.queue);
  event.offset = message.queue_offset;
  event.value = ValueOf(message.body);
  event.hash = HashOf(message.body);
  history_->Note(event);
}

void Load::SendFree(const std::string& client, std::uint64_t seed, bool delayed) {
  client::ProducerOptions options;
  options.client.namesrv_address = namesrv_address_;
  options.client.instance_name = client;
  options.group = "P-free";
  options.send_timeout = milliseconds(3000);
  options.retries = 0;  // one attempt: it must never be stored twice
  client::Producer producer(options);
  while (!producer.Start().ok()) {
    if (stopper_.Wait(milliseconds(200))) return;
  }
  sim::Random random(seed);
  for (std::int64_t n = 1; !stopper_.stopped(); ++n) {
    client::Message message;
    message.topic = kFreeTopic;
    const client::MessageQueue queue{kFreeTopic, broker_name_,
                                     static_cast<std::int32_t>(random.Below(kTopicQueues))};
    Event send;
    send.op = Op::kSend;
    send.client = client;
    send.key = QueueName(queue);
    send.value = client + "-" + std::to_string(n);
    send.delayed = delayed;
    if (delayed) message.delay_level = 1 + static_cast<int>(random.Below(kDelayLevels));
    // Mostly small, some large enough to be compressed.
    message.body = BodyOf(send.value, random.Below(random.OneIn(20) ? 16000 : 400));
    send.hash = HashOf(message.body);
    const std::int64_t id = history_->Begin(send);
    const Result<client::SendResult> result = producer.Send(std::move(message), queue);
    Event end;
    end.outcome = OutcomeOf(result.status());
    if (result.ok() && !delayed) {
      end.offset = result->queue_offset;
      end.key = QueueName(result->queue);
    } else if (!result.ok()) {
      end.value = result.status().ToString();
    }
    history_->End(id, end);
    if (stopper_.Wait(result.ok() ? between_sends_ : kAfterFailure)) break;
  }
  producer.Shutdown();
}

void Load::SendOrdered(int number) {
  const std::string client = "o" + std::to_string(number);
  client::ProducerOptions options;
  options.client.namesrv_address = namesrv_address_;
  options.client.instance_name = client;
  options.group = "P-ordered";
  client::Producer producer(options);
  while (!producer.Start().ok()) {
    if (stopper_.Wait(milliseconds(200))) return;
  }
  sim::Random random(seed_ + 1000 + static_cast<std::uint64_t>(number));
  for (std::int64_t n = 1; !stopper_.stopped(); ++n) {
    Event send;
    send.op = Op::kSend;
    send.client = client;
    send.key = kOrderedTopic;
    send.order = client + "/k" + std::to_string(random.Below(kKeysPerProducer));
    send.value = client + "-" + std::to_string(n);
    send.attempts = 0;  // the client repeats by itself
    client::Message message;
    message.topic = kOrderedTopic;
    message.body = BodyOf(send.value, random.Below(300));
    send.hash = HashOf(message.body);
    const std::int64_t id = history_->Begin(send);
    const Result<client::SendResult> result = producer.SendOrdered(std::move(message), send.order);
    Event end;
    end.outcome = OutcomeOf(result.status());
    if (result.ok()) {
      end.offset = result->queue_offset;
      end.key = QueueName(result->queue);
    } else {
      end.value = result.status().ToString();
    }
    history_->End(id, end);
    if (stopper_.Wait(result.ok() ? between_sends_ : kAfterFailure)) break;
  }
  producer.Shutdown();
}

Status Load::StopSending() {
  stopper_.Stop();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  return Status::Ok();
}

Status Load::StopConsuming() {
  for (auto& consumer : consumers_) consumer->Shutdown();
  consumers_.clear();
  return Status::Ok();
}

}  // namespace triad::chaos
