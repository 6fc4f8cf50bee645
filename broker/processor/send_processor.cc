#include "broker/processor/send_processor.h"

#include <glog/logging.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "broker/processor/failure_properties.h"
#include "broker/processor/names.h"
#include "broker/processor/response.h"
#include "broker/processor/system_state.h"
#include "broker/service/delay_topic.h"
#include "broker/service/strict_topics.h"
#include "broker/store/delay_levels.h"
#include "common/log_rate_limiter.h"
#include "remoting/codes.h"

namespace triad::broker {
namespace {

constexpr std::int32_t kPermInherit = 1;
constexpr std::int32_t kUnitTopic = 1;
// The topic, the retry topic's group and the dead-letter topic; more means somebody deletes them
// as fast as they are made.
constexpr int kCreationsMax = 3;
constexpr std::size_t kAddedPropertyBytes = 128;  // guesses; more costs one allocation
constexpr std::size_t kResponseFields = 6;
constexpr std::size_t kResponseBytes = 160;

bool IsRetryTopic(std::string_view topic) {
  return topic.starts_with(kRetryPrefix);
}
std::string GroupOfRetryTopic(std::string_view topic) {
  return std::string(topic.substr(kRetryPrefix.size()));
}

}  // namespace

SendProcessor::SendProcessor(BrokerContext& context)
    : context_(context), creator_(context.store.appender()) {
  CHECK(!context.store_host.ip.empty());
}

void SendProcessor::Register(Dispatcher* dispatcher) {
  const auto policy = LeaderGate::For(kSendBudget, remoting::kServiceNotAvailable);
  for (const std::int32_t code :
       {remoting::kSendMessage, remoting::kSendMessageV2, remoting::kSendBatchMessage}) {
    dispatcher->RegisterForLeader(code, policy, [this](RequestPtr request, Reply reply) {
      OnSend(std::move(request), std::move(reply));
    });
  }
}

void SendProcessor::OnSend(RequestPtr request, Reply reply) {
  const remoting::Command& command = request->command;
  auto header = remoting::SendMessageRequest::Decode(command.code, command.ext);
  if (!header.ok()) {
    reply(remoting::Command::ResponseTo(command, remoting::kSystemError,
                                        std::string(header.status().message())));
    return;
  }
  auto send = std::make_shared<Send>();
  send->request = std::move(request);
  send->reply = std::move(reply);
  send->header = std::move(header).value();
  send->header.reconsume_times = std::clamp(send->header.reconsume_times, 0, kReconsumeTimesMax);
  Continue(send);
}

// From the first check to the proposal; again from the start after something was created.
void SendProcessor::Continue(const SendPtr& send) {
  Refusal refusal = CheckBroker(*send);
  StateCommand missing;
  if (!refusal) refusal = RouteRetry(send.get());
  if (!refusal) missing = MissingTopic(*send, &refusal);
  if (refusal) {
    send->reply(RefusalResponse(send->request->command, refusal));
    return;
  }
  if (!missing.empty()) {
    CreateFirst(send, std::move(missing));
    return;
  }
  const auto topic = context_.store.state().FindTopic(Topic(send->header.topic));
  if (!topic) {  // deleted this very moment
    refusal = {.code = remoting::kTopicNotExist,
               .remark = "topic[" + send->header.topic + "] not exist"};
  } else {
    refusal = CheckQueue(*topic, send.get());
  }
  if (refusal) {
    send->reply(RefusalResponse(send->request->command, refusal));
    return;
  }
  Submit(send, *topic);
}

Refusal SendProcessor::CheckBroker(const Send& send) const {
  const remoting::SendMessageRequest& header = send.header;
  if (const Status disk = context_.disk.Writable(); !disk.ok()) {
    return {.code = remoting::kServiceNotAvailable, .remark = std::string(disk.message())};
  }
  if ((context_.config.broker_permission & kPermWrite) == 0) {
    const auto topic = context_.store.state().FindTopic(Topic(header.topic));
    if (topic && topic->order) {
      return {.code = remoting::kNoPermission,
              .remark = "the broker[" + context_.config.broker_ip1 +
                        "] sending message is forbidden (brokerPermission)"};
    }
  }
  if (const Status name = CheckTopicName(header.topic, context_.config.max_topic_bytes);
      !name.ok()) {
    return {.code = remoting::kInvalidParameter, .remark = std::string(name.message())};
  }
  if (IsSendForbidden(header.topic)) {
    return {.code = remoting::kNoPermission,
            .remark = "Sending message to topic[" + header.topic + "] is forbidden."};
  }
  return {};
}

Refusal SendProcessor::RouteRetry(Send* send) const {
  if (!IsRetryTopic(send->header.topic)) return {};
  const GroupName group(GroupOfRetryTopic(send->header.topic));
  const auto config = context_.store.state().FindGroup(group);
  if (!config && (!context_.config.auto_create_group || !CheckGroupName(group.value()).ok())) {
    return {.code = remoting::kSubscriptionGroupNotExist,
            .remark = "subscription group not exist, " + group.value()};
  }
  const std::int32_t allowed = send->header.max_reconsume_times.value_or(
      config ? config->retry_max_times : GroupConfig().retry_max_times);
  if (send->header.reconsume_times <= allowed && !context_.locks.GroupHoldsLease(group)) {
    send->is_retry_copy = true;
    return {};
  }
  send->to_dead_letters = true;
  send->header.topic = DlqTopicOf(group.value());
  send->header.queue_id = -1;
  SetProperty(&send->header.properties, "DELAY", "-1");
  NoteDeadLetter(context_.store.node().LogTimeMs(), &send->header.properties);
  MakeRoom(kPropertiesBytesMax, &send->header.properties);
  return {};
}

StateCommand SendProcessor::MissingTopic(const Send& send, Refusal* refusal) const {
  const remoting::SendMessageRequest& header = send.header;
  const ReplicatedState& state = context_.store.state();
  if (IsRetryTopic(header.topic)) {
    const GroupName group(GroupOfRetryTopic(header.topic));
    return MissingGroupState(context_.config, state, group, false, header.unit_mode);
  }
  if (state.FindTopic(Topic(header.topic))) return {};
  TopicConfig topic;
  topic.name = Topic(header.topic);
  topic.read_queues = 1;
  topic.write_queues = 1;
  if (!send.to_dead_letters) {
    const auto model = state.FindTopic(Topic(header.default_topic));
    const bool allowed =
        model && (model->perm & kPermInherit) != 0 &&
        (context_.config.auto_create_topic || model->name.value() != kDefaultTopic);
    if (!allowed) {
      *refusal = {.code = remoting::kTopicNotExist,
                  .remark = "topic[" + header.topic + "] not exist, apply first please!"};
      return {};
    }
    topic.write_queues =
        std::max(1, std::min(header.default_topic_queue_nums, model->write_queues));
    topic.read_queues = topic.write_queues;
    topic.perm = model->perm & ~kPermInherit;
    topic.sys_flag = header.unit_mode ? kUnitTopic : 0;
  }
  StateCommand command;
  command.put_topics.push_back(std::move(topic));
  command.create_only = true;
  return command;
}

void SendProcessor::CreateFirst(const SendPtr& send, StateCommand command) {
  if (++send->creations > kCreationsMax) {
    send->reply(remoting::Command::ResponseTo(
        send->request->command, remoting::kTopicNotExist,
        "topic[" + send->header.topic + "] is deleted while it is created"));
    return;
  }
  const StateCreator::Question ask = AskBefore(command);
  creator_.Create(
      send->header.topic, std::move(command), send->request->arrived + kSendBudget,
      [this, send](const Status& status) {
        if (!status.ok()) {
          send->reply(ResponseOf(send->request->command, status));
          return;
        }
        // Whoever starts a consumer after this send was answered finds the route.
        context_.registration.RegisterNow(kRegisterBudget, [this, send] { Continue(send); });
      },
      ask);
}

StateCreator::Question SendProcessor::AskBefore(const StateCommand& creation) const {
  if (context_.other_groups == nullptr) return {};
  std::vector<TopicConfig> topics;
  for (const TopicConfig& topic : creation.put_topics) {
    const std::string& name = topic.name.value();
    const bool is_system =
        IsRetryTopic(name) || name.starts_with(kDlqPrefix) || IsSystemTopic(context_.config, name);
    if (!is_system && TakesSends(topic)) topics.push_back(topic);
  }
  if (topics.empty()) return {};
  return [this, topics = std::move(topics)](std::function<void(Status)> done) {
    CheckOneGroupOfEach(*context_.other_groups, topics, std::move(done));
  };
}

Refusal SendProcessor::CheckQueue(const TopicConfig& topic, Send* send) const {
  remoting::SendMessageRequest& header = send->header;
  if (header.queue_id >= std::max(topic.write_queues, topic.read_queues)) {
    return {.code = remoting::kInvalidParameter,
            .remark = "request queueId[" + std::to_string(header.queue_id) +
                      "] is illegal, topic[" + header.topic + "] has " +
                      std::to_string(topic.write_queues) + " queues"};
  }
  if ((topic.perm & kPermWrite) == 0 || topic.write_queues <= 0) {
    return {.code = remoting::kNoPermission,
            .remark = "topic[" + header.topic + "] is not writable"};
  }
  if (header.queue_id < 0) {
    const auto queues = static_cast<std::uint32_t>(topic.write_queues);
    header.queue_id =
        static_cast<std::int32_t>(counter_.fetch_add(1, std::memory_order_relaxed) % queues);
  }
  return {};
}

std::vector<MessageDraft> SendProcessor::BatchDrafts(const TopicConfig& topic,
                                                     const HostPort& born_host, Send* send,
                                                     Refusal* refusal) const {
  const remoting::SendMessageRequest& header = send->header;
  if (send->to_dead_letters || IsRetryTopic(header.topic)) {
    *refusal = {.code = remoting::kMessageIllegal,
                .remark = "batch request does not support retry group"};
    return {};
  }
  auto drafts =
      UnpackBatch(context_.config, header, send->request->command.body, born_host, refusal);
  for (MessageDraft& draft : drafts) {
    if (topic.multi_tag) draft.sys_flag |= kSysFlagMultiTags;
  }
  if (!drafts.empty()) {
    send->unique_key = FindProperty(drafts.front().properties, "UNIQ_KEY");
  }
  return drafts;
}

std::vector<MessageDraft> SendProcessor::Drafts(const TopicConfig& topic, Send* send,
                                                Refusal* refusal) const {
  const remoting::SendMessageRequest& header = send->header;
  const remoting::Command& command = send->request->command;
  const KnownProperties known = ScanProperties(header.properties);
  *refusal = CheckMessageType(header.sys_flag, known);
  if (*refusal) return {};
  auto born_host = ParseHostPort(send->request->client_address);
  const HostPort host = born_host.ok() ? std::move(born_host).value() : context_.store_host;
  if (header.batch || command.code == remoting::kSendBatchMessage) {
    return BatchDrafts(topic, host, send, refusal);
  }
  MessageDraft draft;
  draft.topic = Topic(header.topic);
  draft.queue_id = QueueId(header.queue_id);
  draft.flag = header.flag;
  draft.sys_flag = header.sys_flag | (topic.multi_tag ? kSysFlagMultiTags : 0);
  draft.born_time_ms = header.born_timestamp_ms;
  draft.born_host = host;
  draft.reconsume_times = header.reconsume_times;
  draft.properties.reserve(header.properties.size() + kAddedPropertyBytes);
  draft.properties = header.properties;
  AddBrokerProperties(context_.config, known, &draft.properties);
  send->unique_key = known.unique_key;
  if (send->unique_key.empty()) {
    send->unique_key = UniqueKey();
    AppendProperty(&draft.properties, "UNIQ_KEY", send->unique_key);
  }
  draft.body = command.body;
  if (!known.delay.empty()) ParkIfDelayed(DelayLevelCount(context_.store.state()), &draft);
  *refusal = CheckSizes(context_.config, draft.body, draft.properties.size());
  if (*refusal) return {};
  std::vector<MessageDraft> drafts;
  drafts.push_back(std::move(draft));
  return drafts;
}

void SendProcessor::Submit(const SendPtr& send, const TopicConfig& topic) {
  Refusal refusal;
  Proposal proposal;
  proposal.messages = Drafts(topic, send.get(), &refusal);
  if (refusal) {
    send->reply(RefusalResponse(send->request->command, refusal));
    return;
  }
  for (const MessageDraft& draft : proposal.messages) {
    send->body_bytes += static_cast<std::int64_t>(draft.body.size());
  }
  refusal = CollectKeys(DedupRuleOf(topic.attributes).mode, send->header, proposal.messages,
                        &proposal.dedup);
  if (refusal) {
    send->reply(RefusalResponse(send->request->command, refusal));
    return;
  }
  proposal.deadline = send->request->arrived + kSendBudget;
  proposal.done = [this, send](const AppendOutcome& outcome) { Answer(*send, outcome); };
  context_.store.appender().Submit(std::move(proposal));
}

void SendProcessor::Answer(const Send& send, const AppendOutcome& outcome) const {
  const remoting::Command& command = send.request->command;
  if (!outcome.status.ok()) {
    context_.counters.put_failed.fetch_add(1, std::memory_order_relaxed);
    send.reply(SendFailure(command, outcome.status));
    return;
  }
  if (send.is_retry_copy) NoteRetryCopy(send);
  const auto count = static_cast<std::int64_t>(outcome.messages.size());
  const auto again = std::count_if(outcome.messages.begin(), outcome.messages.end(),
                                   [](const AppendedMessage& one) { return one.duplicate; });
  context_.counters.put_duplicates.fetch_add(again, std::memory_order_relaxed);
  if (again < count) {
    context_.counters.put_messages.fetch_add(count - again, std::memory_order_relaxed);
    if (!IsSystemTopic(context_.config, send.header.topic)) {
      context_.counters.put_user_messages.fetch_add(count - again, std::memory_order_relaxed);
    }
    const TimePoint now = context_.clock.MonoNow();
    const auto stored = static_cast<std::uint64_t>(count - again);
    context_.counters.NotePut(now, now - send.request->arrived, stored);
    context_.counters.put_sizes.Record(send.body_bytes / count, stored);
  }
  remoting::SendMessageResponse header;
  for (const AppendedMessage& message : outcome.messages) {
    if (!header.msg_id.empty()) header.msg_id += ',';
    header.msg_id += OffsetMessageId(context_.store_host, message.physical_offset);
  }
  const AppendedMessage& first = outcome.messages.front();
  header.queue_id = first.duplicate ? first.first_queue.value() : send.header.queue_id;
  header.queue_offset = first.queue_offset.value();
  header.transaction_id = send.unique_key;
  header.msg_region = context_.config.region_id;
  header.trace_on = context_.config.trace_on;
  remoting::Command response = Success(command);
  response.ext.Reserve(kResponseFields, kResponseBytes + header.msg_id.size());
  header.Encode(&response.ext);
  send.reply(std::move(response));
}

// The client could not send the message back and sent it itself: that is a new copy, the broker
// cannot tell whether the send-back was stored too.
void SendProcessor::NoteRetryCopy(const Send& send) const {
  context_.counters.retry_copies.fetch_add(1, std::memory_order_relaxed);
  static LogRateLimiter limiter{std::chrono::seconds(10)};
  if (const auto suppressed = limiter.Allow(context_.clock.MonoNow())) {
    LOG(WARNING) << "a client sent a failed message to " << send.header.topic
                 << " itself, as its send-back had no good answer; the message may come twice"
                 << SuppressedNote(*suppressed);
  }
}

std::string SendProcessor::UniqueKey() const {
  static const auto kPid = static_cast<std::int32_t>(getpid());
  return MakeUniqueKey(context_.own_host, kPid, context_.clock.WallNowMs(),
                       counter_.fetch_add(1, std::memory_order_relaxed));
}

std::int32_t DelayLevelCount(const ReplicatedState& state) {
  const std::string text = state.delay_levels();
  if (text.empty()) return DelayLevels().max_level();
  const auto levels = DelayLevels::Parse(text);
  return levels.ok() ? levels->max_level() : DelayLevels().max_level();
}

}  // namespace triad::broker
