#include "triad/push_consumer.h"

#include <glog/logging.h>

#include <mutex>
#include <utility>

#include "client/concurrent_service.h"
#include "client/consumer_context.h"
#include "client/directed_calls.h"
#include "client/lock_keeper.h"
#include "client/message_codec.h"
#include "client/offset_committer.h"
#include "client/orderly_service.h"
#include "client/rebalancer.h"
#include "remoting/codes.h"

namespace triad::client {

namespace {

constexpr std::chrono::milliseconds kFirstHeartbeat{3000};

Status CheckOptions(const PushConsumerOptions& options) {
  TRIAD_RETURN_IF_ERROR(CheckName("consumer group", options.group, kMaxGroupBytes));
  if (options.threads < 1 || options.threads > 1000) {
    return Status::InvalidArgument("threads must be within 1..1000");
  }
  if (options.consume_batch < 1 || options.consume_batch > 1024) {
    return Status::InvalidArgument("consume_batch must be within 1..1024");
  }
  if (options.pull_batch < 1 || options.pull_batch > 1024) {
    return Status::InvalidArgument("pull_batch must be within 1..1024");
  }
  if (options.max_cached_messages < 1 || options.max_cached_bytes < 1) {
    return Status::InvalidArgument("max_cached_messages and max_cached_bytes must be positive");
  }
  return Status::Ok();
}

remoting::ConsumeFromWhere WireFrom(ConsumeFrom from) {
  switch (from) {
    case ConsumeFrom::kLastOffset: return remoting::ConsumeFromWhere::kLastOffset;
    case ConsumeFrom::kFirstOffset: return remoting::ConsumeFromWhere::kFirstOffset;
    case ConsumeFrom::kTimestamp: break;
  }
  return remoting::ConsumeFromWhere::kTimestamp;
}

remoting::SubscriptionData WireSubscription(const std::string& topic,
                                            const Subscription& subscription,
                                            std::int64_t version) {
  remoting::SubscriptionData data;
  data.topic = topic;
  data.sub_string = subscription.expression;
  data.sub_version = version;
  data.tags_set = subscription.tags;
  for (const std::string& tag : subscription.tags) data.code_set.push_back(JavaHash(tag));
  return data;
}

}  // namespace

class PushConsumer::State final : public GroupMember,
                                  public std::enable_shared_from_this<PushConsumer::State> {
 public:
  explicit State(PushConsumerOptions options) : options_(std::move(options)) {}

  Status Subscribe(const std::string& topic, const std::string& expression);
  void SetListener(MessageListenerConcurrently listener) { concurrently_ = std::move(listener); }
  void SetListener(MessageListenerOrderly listener) { orderly_ = std::move(listener); }
  Status Start();
  void Shutdown();
  void SetSuspended(bool suspended) { context_->suspended = suspended; }
  std::vector<MessageQueue> AssignedQueues() const;

  remoting::ConsumerData Describe() override;
  void OnGroupChanged() override { WakeRebalancer(); }
  void OnRouteChanged() override { WakeRebalancer(); }
  void OnOffsetReset(std::map<MessageQueue, std::int64_t> offsets) override;
  void OnDirected(const remoting::Command& request, Reply reply) override;

 private:
  bool Listen(const Messages& messages, const MessageQueue& queue);
  Status Prepare(ConsumerContext* context);
  void FetchRoutes();
  void Run(std::map<MessageQueue, std::int64_t> local_offsets);
  void WakeRebalancer();

  const PushConsumerOptions options_;
  std::map<std::string, Subscription> subscriptions_;
  MessageListenerConcurrently concurrently_;
  MessageListenerOrderly orderly_;

  std::mutex lifecycle_;
  bool running_ = false;
  bool started_ = false;
  const std::shared_ptr<QueueTable> table_ = std::make_shared<QueueTable>();
  // Filled by Start, before anybody else sees it.
  const ConsumerContextPtr context_ = std::make_shared<ConsumerContext>();
  std::shared_ptr<OffsetCommitter> committer_;
  std::unique_ptr<LockKeeper> lock_keeper_;

  std::mutex mutex_;  // leaf: notifications may come before the rebalancer is there
  std::shared_ptr<Rebalancer> rebalancer_;
};

Status PushConsumer::State::Subscribe(const std::string& topic, const std::string& expression) {
  std::lock_guard hold(lifecycle_);
  if (running_) return Status::InvalidArgument("subscribe before Start");
  TRIAD_RETURN_IF_ERROR(CheckName("topic", topic, 255));
  Result<std::vector<std::string>> tags = ParseTags(expression);
  if (!tags.ok()) return tags.status();
  Subscription subscription;
  subscription.expression = tags->empty() ? "*" : expression;
  subscription.tags = std::move(*tags);
  subscriptions_[topic] = std::move(subscription);
  return Status::Ok();
}

Status PushConsumer::State::Prepare(ConsumerContext* context) {
  TRIAD_RETURN_IF_ERROR(CheckOptions(options_));
  if (subscriptions_.empty()) return Status::InvalidArgument("Subscribe to a topic first");
  if ((concurrently_ == nullptr) == (orderly_ == nullptr)) {
    return Status::InvalidArgument("set one listener, either concurrently or orderly");
  }
  context->options = options_;
  context->orderly = orderly_ != nullptr;
  context->subscriptions = subscriptions_;
  if (context->clustering()) {
    context->subscriptions[std::string(kRetryPrefix) + options_.group] = Subscription();
  }
  context->started_at_ms = SystemClock().WallNowMs();
  context->sub_version = context->started_at_ms;
  return Status::Ok();
}

Status PushConsumer::State::Start() {
  std::lock_guard hold(lifecycle_);
  if (running_) return Status::Ok();
  if (started_) return Status::InvalidArgument("a consumer starts once; make a new one");
  const ConsumerContextPtr& context = context_;
  TRIAD_RETURN_IF_ERROR(Prepare(context.get()));
  std::map<MessageQueue, std::int64_t> local_offsets;
  if (!context->clustering()) {
    auto loaded = OffsetCommitter::LoadFile(options_);
    if (!loaded.ok()) return loaded.status();
    local_offsets = std::move(*loaded);
  }
  auto instance = ClientInstance::Attach(options_.client);
  if (!instance.ok()) return instance.status();
  context->instance = *instance;
  const Status joined = context->instance->Join(options_.group, weak_from_this());
  if (!joined.ok()) {
    context->instance->Detach();
    return joined;
  }
  context->calls = std::make_unique<BrokerCalls>(context->instance.get());
  context->sender = std::make_unique<Sender>(context->instance.get());
  context->pool = std::make_unique<WorkerPool>(options_.threads, "listener");
  running_ = true;
  started_ = true;
  Run(std::move(local_offsets));
  return Status::Ok();
}

void PushConsumer::State::FetchRoutes() {
  for (const auto& [topic, subscription] : subscriptions_) {
    const Result<RoutePtr> route = context_->instance->routes().Get(topic, false);
    if (!route.ok()) LOG(WARNING) << "group " << options_.group << ": " << route.status();
  }
}

void PushConsumer::State::Run(std::map<MessageQueue, std::int64_t> local_offsets) {
  FetchRoutes();
  // The brokers must know the group before they are asked for its members; they create its retry
  // topic, too.
  context_->instance->Heartbeat(kFirstHeartbeat);
  std::shared_ptr<ConsumeService> service;
  if (context_->orderly) {
    service = std::make_shared<OrderlyService>(context_, orderly_);
  } else {
    service = std::make_shared<ConcurrentService>(context_, concurrently_);
  }
  auto rebalancer =
      std::make_shared<Rebalancer>(context_, table_, std::move(service), std::move(local_offsets));
  if (context_->orderly && context_->clustering()) {
    lock_keeper_ = std::make_unique<LockKeeper>(
        context_, table_.get(),
        [raw = rebalancer.get()](const ProcessQueuePtr& queue) { raw->Lost(queue); },
        [raw = rebalancer.get()](const std::vector<MessageQueue>& queues) {
          raw->Surplus(queues);
        });
  }
  committer_ = std::make_shared<OffsetCommitter>(context_, table_);
  committer_->Start();
  rebalancer->Start();
  std::lock_guard hold(mutex_);
  rebalancer_ = std::move(rebalancer);
}

void PushConsumer::State::Shutdown() {
  std::lock_guard hold(lifecycle_);
  if (!running_) return;
  running_ = false;
  context_->stopping = true;
  rebalancer_->Stop();
  context_->pool->Stop();  // running listeners finish; their locks are renewed meanwhile
  lock_keeper_.reset();
  rebalancer_->ReleaseAll();
  if (!context_->clustering()) {
    const Status saved = committer_->SaveFile();
    if (!saved.ok()) LOG(ERROR) << "offsets could not be saved: " << saved;
  }
  context_->sender->Close();
  context_->instance->Leave(options_.group);
  context_->instance->Detach();
}

std::vector<MessageQueue> PushConsumer::State::AssignedQueues() const {
  std::vector<MessageQueue> queues;
  for (const ProcessQueuePtr& queue : table_->All()) {
    if (!queue->dropped()) queues.push_back(queue->queue());
  }
  return queues;
}

remoting::ConsumerData PushConsumer::State::Describe() {
  remoting::ConsumerData data;
  data.group_name = options_.group;
  data.consume_type = remoting::ConsumeType::kPassively;
  data.message_model = options_.model == MessageModel::kClustering
                           ? remoting::MessageModel::kClustering
                           : remoting::MessageModel::kBroadcasting;
  data.consume_from_where = WireFrom(options_.consume_from);
  for (const auto& [topic, subscription] : context_->subscriptions) {
    data.subscriptions.push_back(
        WireSubscription(topic, subscription, context_->sub_version.load()));
  }
  return data;
}

void PushConsumer::State::WakeRebalancer() {
  std::lock_guard hold(mutex_);
  if (rebalancer_ != nullptr) rebalancer_->Wake(std::chrono::milliseconds(0));
}

void PushConsumer::State::OnOffsetReset(std::map<MessageQueue, std::int64_t> offsets) {
  std::lock_guard hold(mutex_);
  if (rebalancer_ == nullptr) return;
  for (const auto& [name, offset] : offsets) {
    const ProcessQueuePtr queue = table_->Find(name);
    if (queue != nullptr) rebalancer_->MoveOffset(queue, offset);
  }
}

void PushConsumer::State::OnDirected(const remoting::Command& request, Reply reply) {
  {
    std::lock_guard hold(mutex_);
    if (rebalancer_ == nullptr || context_->stopping) {
      reply(remoting::Command::ResponseTo(request, remoting::kSystemError,
                                          "the consumer is not running"));
      return;
    }
  }
  if (request.code == remoting::kConsumeMessageDirectly) {
    context_->pool->Submit([self = shared_from_this(), request, reply = std::move(reply)] {
      reply(ConsumeDirectly(request, self->context_->orderly,
                            [&](const Messages& messages, const MessageQueue& queue) {
                              return self->Listen(messages, queue);
                            }));
    });
    return;
  }
  remoting::Command answer = remoting::Command::ResponseTo(request, remoting::kSuccess);
  answer.body = request.code == remoting::kGetConsumerRunningInfo
                    ? RunningInfoBody(*context_, Describe(), *table_, SystemClock().MonoNow())
                    : StatusBody(*context_, *table_, request.ext.StringOr("topic", ""));
  reply(std::move(answer));
}

bool PushConsumer::State::Listen(const Messages& messages, const MessageQueue& queue) {
  if (context_->orderly) {
    OrderlyContext call;
    call.queue = queue;
    return orderly_(messages, &call) == OrderlyResult::kSuccess;
  }
  ConcurrentContext call;
  call.queue = queue;
  return concurrently_(messages, &call) == ConcurrentResult::kSuccess;
}

// ---- the public face ----------------------------------------------------------------------------

PushConsumer::PushConsumer(PushConsumerOptions options)
    : state_(std::make_shared<State>(std::move(options))) {}
PushConsumer::~PushConsumer() {
  Shutdown();
}
Status PushConsumer::Subscribe(const std::string& topic, const std::string& expression) {
  return state_->Subscribe(topic, expression);
}
void PushConsumer::SetListener(MessageListenerConcurrently listener) {
  state_->SetListener(std::move(listener));
}
void PushConsumer::SetListener(MessageListenerOrderly listener) {
  state_->SetListener(std::move(listener));
}
Status PushConsumer::Start() {
  return state_->Start();
}
void PushConsumer::Shutdown() {
  state_->Shutdown();
}
void PushConsumer::Suspend() {
  state_->SetSuspended(true);
}
void PushConsumer::Resume() {
  state_->SetSuspended(false);
}
std::vector<MessageQueue> PushConsumer::AssignedQueues() const {
  return state_->AssignedQueues();
}

}  // namespace triad::client
