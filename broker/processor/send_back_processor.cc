#include "broker/processor/send_back_processor.h"

#include <algorithm>
#include <chrono>
#include <iterator>

#include "broker/processor/failure_properties.h"
#include "broker/processor/names.h"
#include "broker/processor/response.h"
#include "broker/processor/send_processor.h"
#include "broker/processor/system_state.h"
#include "broker/service/delay_topic.h"
#include "remoting/codes.h"

namespace triad::broker {
namespace {

constexpr std::chrono::milliseconds kSendBackBudget{2500};
constexpr std::int32_t kFirstRetryLevel = 3;  // 10 s in the default table
constexpr std::chrono::milliseconds kAskAgain{50};

// The Go client (2.x) takes every answer for a success: an error that may pass would cost its group
// the message. Without an answer it tries again.
bool TakesEveryAnswerForSuccess(const Request& request) {
  return request.command.language == "GO";
}

void AnswerFailed(const RequestPtr& request, const Reply& reply, std::int32_t code,
                  const std::string& remark) {
  if (TakesEveryAnswerForSuccess(*request)) {
    KeepSilent(*request, reply);
  } else {
    reply(remoting::Command::ResponseTo(request->command, code, remark));
  }
}

bool MayPass(std::int32_t code) {
  return code == remoting::kServiceNotAvailable || code == remoting::kSystemBusy;
}

}  // namespace

SendBackProcessor::SendBackProcessor(BrokerContext& context)
    : context_(context), creator_(context.store.appender()) {}

void SendBackProcessor::Register(Dispatcher* dispatcher) {
  auto policy = LeaderGate::For(kSendBackBudget, remoting::kServiceNotAvailable);
  policy.repeatable = true;  // the mark makes the second time a no-op
  policy.silent = TakesEveryAnswerForSuccess;
  dispatcher->RegisterForLeader(
      remoting::kConsumerSendMsgBack, std::move(policy),
      [this](RequestPtr request, Reply reply) { OnSendBack(request, reply); });
}

void SendBackProcessor::OnSendBack(const RequestPtr& request, const Reply& reply) {
  const remoting::Command& command = request->command;
  auto header = remoting::SendBackRequest::Decode(command.ext);
  if (!header.ok()) {
    reply(remoting::Command::ResponseTo(command, remoting::kSystemError,
                                        std::string(header.status().message())));
    return;
  }
  SendBack back;
  back.request = request;
  back.header = std::move(header).value();
  back.key = {GroupName(back.header.group), PhysicalOffset(back.header.offset)};
  back.term = context_.store.node().leader_info().term;
  if (const Refusal refusal = CheckGroup(back.header, &back.group)) {
    reply(RefusalResponse(command, refusal));
    return;
  }
  if (const Status disk = context_.disk.Writable(); !disk.ok()) {
    AnswerFailed(request, reply, remoting::kServiceNotAvailable, std::string(disk.message()));
    return;
  }
  if (back.group.retry_queue_nums <= 0) {  // the group wants no retries
    reply(Success(command));
    return;
  }
  if (JoinInFlight(back.key, request, reply)) return;
  // After joining: whoever was in flight before has left its mark by now.
  if (context_.store.state().SentBack(back.key.first, back.key.second)) {
    Finish(back.key, Status::Ok());
    return;
  }
  EnsureRetryTopic(back);
}

Refusal SendBackProcessor::CheckGroup(const remoting::SendBackRequest& header,
                                      GroupConfig* group) const {
  const auto known = context_.store.state().FindGroup(GroupName(header.group));
  const bool creatable = context_.config.auto_create_group && CheckGroupName(header.group).ok();
  if (!known && !creatable) {
    return {.code = remoting::kSubscriptionGroupNotExist,
            .remark = "subscription group not exist, " + header.group};
  }
  if (known) *group = *known;
  group->name = GroupName(header.group);
  if ((context_.config.broker_permission & kPermWrite) == 0) {
    return {.code = remoting::kNoPermission,
            .remark = "the broker[" + context_.config.broker_ip1 +
                      "] sending message is forbidden (brokerPermission)"};
  }
  return {};
}

bool SendBackProcessor::JoinInFlight(const Key& key, const RequestPtr& request,
                                     const Reply& reply) {
  const std::lock_guard hold(mutex_);
  const auto [found, first] = in_flight_.try_emplace(key);
  found->second.waiters.emplace_back(request, reply);
  return !first;
}

void SendBackProcessor::EnsureRetryTopic(const SendBack& back) {
  StateCommand missing = MissingGroupState(context_.config, context_.store.state(), back.key.first,
                                           false, back.header.unit_mode);
  if (missing.put_groups.empty() && missing.put_topics.empty()) {
    Read(back);
    return;
  }
  creator_.Create(back.header.group, std::move(missing), back.request->arrived + kSendBackBudget,
                  [this, back](const Status& status) {
                    if (status.ok()) {
                      Read(back);
                    } else {
                      Finish(back.key, status);
                    }
                  });
}

void SendBackProcessor::Read(const SendBack& back) {
  const auto topic = context_.store.state().FindTopic(Topic(RetryTopicOf(back.header.group)));
  if (!topic || (topic->perm & kPermWrite) == 0 || topic->write_queues <= 0) {
    Finish(back.key, remoting::kNoPermission,
           "the topic[" + RetryTopicOf(back.header.group) + "] is not writable");
    return;
  }
  if (back.key.second < context_.store.state().applied_position()) {
    Load(back);
    return;
  }
  // Its consumer may have it from a peer that is ahead, or from a queue whose entry is being
  // applied now. "Not there" would make the client send a copy of its own.
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(
      back.request->arrived + kSendBackBudget - context_.clock.MonoNow());
  context_.reads.Confirm(std::max(left, std::chrono::milliseconds(1)),
                         [this, back](const Status& confirmed) {
                           if (confirmed.ok()) {
                             Load(back);
                           } else {
                             Finish(back.key, confirmed);
                           }
                         });
}

void SendBackProcessor::Load(const SendBack& back) {
  const bool taken = context_.store.node().PostReader([this, back] {
    const auto loaded = context_.store.ReadMessageAt(back.key.second);
    if (!loaded.ok()) {
      Finish(back.key, remoting::kSystemError,
             "look message by offset failed, " + std::to_string(back.header.offset) + ": " +
                 std::string(loaded.status().message()));
      return;
    }
    const auto message = ParseMessage(loaded->record, false);
    if (!message.ok()) {
      Finish(back.key, remoting::kSystemError, std::string(message.status().message()));
      return;
    }
    Store(back, *message);
  });
  if (!taken) Finish(back.key, remoting::kSystemBusy, "too many reads from files are waiting");
}

Result<MessageDraft> SendBackProcessor::Redirect(const SendBack& back, const MessageView& message,
                                                 StateCommand* command) const {
  const ReplicatedState& state = context_.store.state();
  MessageDraft draft = DraftFrom(message);
  const std::int64_t now_ms = context_.store.node().LogTimeMs();
  NoteFailure(message, now_ms, back.request->command.ext.StringOr(kReasonField, {}),
              &draft.properties);
  SetProperty(&draft.properties, "WAIT", "false");
  const std::int32_t retries_max =
      back.header.max_reconsume_times.value_or(back.group.retry_max_times);
  const std::int32_t times = std::clamp(message.reconsume_times, 0, kReconsumeTimesMax);
  const bool dead = times >= retries_max || back.header.delay_level < 0;
  std::int32_t level = 0;
  if (!dead) {
    level = back.header.delay_level > 0 ? back.header.delay_level : kFirstRetryLevel + times;
  }
  SetProperty(&draft.properties, "DELAY", std::to_string(level));
  if (dead) NoteDeadLetter(now_ms, &draft.properties);
  draft.topic = Topic(dead ? DlqTopicOf(back.header.group) : RetryTopicOf(back.header.group));
  draft.reconsume_times = times + 1;
  std::int32_t queues = 1;
  if (const auto topic = state.FindTopic(draft.topic)) {
    if ((topic->perm & kPermWrite) == 0 || topic->write_queues <= 0) {
      return Status::PermissionDenied("the topic[" + draft.topic.value() + "] is not writable");
    }
    queues = topic->write_queues;
  } else {
    TopicConfig wanted;
    wanted.name = draft.topic;
    wanted.read_queues = 1;
    wanted.write_queues = 1;
    command->put_topics.push_back(std::move(wanted));
    command->create_only = true;
  }
  // Spread by where the message stood; any queue will do.
  draft.queue_id = QueueId(static_cast<std::int32_t>((back.header.offset >> 3) % queues));
  ParkIfDelayed(DelayLevelCount(state), &draft);
  MakeRoom(kPropertiesBytesMax, &draft.properties);
  return draft;
}

void SendBackProcessor::Store(const SendBack& back, const MessageView& message) {
  Proposal proposal;
  auto draft = Redirect(back, message, &proposal.command);
  if (!draft.ok()) {
    Finish(back.key, draft.status());
    return;
  }
  Refusal refusal = CheckMessageType(draft->sys_flag, ScanProperties(draft->properties));
  if (!refusal) refusal = CheckSizes(context_.config, draft->body, draft->properties.size());
  if (refusal) {
    Finish(back.key, refusal.code, refusal.remark);
    return;
  }
  proposal.messages.push_back(std::move(draft).value());
  proposal.command.send_backs.emplace_back(back.key.first, back.key.second);
  proposal.deadline = back.request->arrived + kSendBackBudget;
  proposal.only_in = back.term;
  const std::string_view origin = FindProperty(message.properties, "RETRY_TOPIC");
  const Topic topic(std::string(origin.empty() ? message.topic : origin));
  proposal.done = [this, topic, key = back.key, term = back.term](const AppendOutcome& outcome) {
    if (outcome.status.ok()) context_.stats->NoteSendBack(topic, key.first.value());
    if (outcome.status.code() == StatusCode::kNotFound) {  // the next one makes the topic again
      Finish(key, remoting::kServiceNotAvailable, std::string(outcome.status.message()));
    } else if (outcome.status.code() == StatusCode::kTimedOut) {
      OnUnknown(key, term, outcome.status);
    } else {
      Finish(key, outcome.status);
    }
  };
  context_.store.appender().Submit(std::move(proposal));
}

void SendBackProcessor::Finish(const Key& key, const Status& status) {
  const int code = ResponseCodeOf(status);
  const bool is_late = status.code() == StatusCode::kTimedOut;
  AnswerAll(key, /*keep=*/false, code, std::string(status.message()), is_late || MayPass(code));
}

void SendBackProcessor::Finish(const Key& key, std::int32_t code, const std::string& remark) {
  AnswerAll(key, /*keep=*/false, code, remark, MayPass(code));
}

void SendBackProcessor::OnUnknown(const Key& key, Term term, const Status& status) {
  AnswerAll(key, /*keep=*/true, ResponseCodeOf(status), std::string(status.message()),
            /*may_pass=*/true);
  AskAgain(key, term);
}

void SendBackProcessor::AskAgain(const Key& key, Term term) {
  if (context_.store.state().SentBack(key.first, key.second)) {
    Finish(key, Status::Ok());
    return;
  }
  const dledger::LeaderInfo info = context_.store.node().leader_info();
  // A later leader has applied the entry before it serves, or the entry is gone.
  if (info.term != term) {
    Finish(key, Status::NotLeader(info.leader.value()));
    return;
  }
  const TimePoint too_old = context_.clock.MonoNow() - kSendBackBudget;
  std::vector<std::pair<RequestPtr, Reply>> late;
  {
    const std::lock_guard hold(mutex_);
    auto& waiters = in_flight_.at(key).waiters;
    const auto late_end = std::stable_partition(
        waiters.begin(), waiters.end(),
        [too_old](const auto& waiter) { return waiter.first->arrived <= too_old; });
    std::move(waiters.begin(), late_end, std::back_inserter(late));
    waiters.erase(waiters.begin(), late_end);
  }
  for (const auto& [request, reply] : late) {
    AnswerFailed(request, reply, remoting::kSystemError,
                 "the message is being sent back, the outcome is unknown");
  }
  // Refused only when the timer is full or stopping: then the key stays, and its next request waits
  // out its budget at the client.
  context_.timers.Schedule(kAskAgain, [this, key, term] { AskAgain(key, term); });
}

void SendBackProcessor::AnswerAll(const Key& key, bool keep, std::int32_t code,
                                  const std::string& remark, bool may_pass) {
  std::vector<std::pair<RequestPtr, Reply>> waiters;
  {
    const std::lock_guard hold(mutex_);
    const auto found = in_flight_.find(key);
    waiters.swap(found->second.waiters);
    if (!keep) in_flight_.erase(found);
  }
  for (const auto& [request, reply] : waiters) {
    if (may_pass) {
      AnswerFailed(request, reply, code, remark);
    } else {
      reply(remoting::Command::ResponseTo(request->command, code, remark));
    }
  }
}

}  // namespace triad::broker
