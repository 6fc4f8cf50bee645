#include "broker/processor/pull_processor.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "broker/processor/names.h"
#include "broker/processor/response.h"
#include "broker/service/peer_members.h"
#include "remoting/codes.h"

namespace triad::broker {
namespace {

constexpr std::int32_t kCommitBit = 0x1;
constexpr std::int32_t kSuspendBit = 0x2;
constexpr std::int32_t kSubscriptionBit = 0x4;
// A client gives a queue up that it did not hear of for 120 s (wire.md §5.6).
constexpr std::chrono::milliseconds kHoldMax{60000};
constexpr std::chrono::milliseconds kCommitBudget{2500};
constexpr std::chrono::milliseconds kConfirmBudget{1000};
constexpr std::chrono::milliseconds kLeaderBudget{2500};
constexpr std::int32_t kForbiddenHere = 1;  // a forbidden type: by this peer's own permission
constexpr std::chrono::milliseconds kRebuildPatience{3000};
constexpr std::chrono::milliseconds kRebuildPoll{50};
constexpr std::size_t kScanUnitsMax = 800;  // index units looked at per pull with a filter

}  // namespace

void PullProcessor::Register(Dispatcher* dispatcher) {
  for (const std::int32_t code : {remoting::kPullMessage, remoting::kLitePullMessage}) {
    dispatcher->Register(code, [this](RequestPtr request, Reply reply) { OnPull(request, reply); });
  }
}

void PullProcessor::OnPull(const RequestPtr& request, const Reply& reply) {
  if (request->forwarded && !Leads()) {
    reply(NotLeaderResponse(request->command));
    return;
  }
  auto header = remoting::PullMessageRequest::Decode(request->command.ext);
  if (!header.ok()) {
    reply(remoting::Command::ResponseTo(request->command, remoting::kSystemError,
                                        std::string(header.status().message())));
    return;
  }
  auto pull = std::make_shared<Pull>();
  pull->request = request;
  pull->reply = reply;
  pull->header = std::move(header).value();
  pull->queue = {Topic(pull->header.topic), QueueId(pull->header.queue_id)};
  pull->from = QueueOffset(pull->header.queue_offset);
  Refusal refusal = CheckPermissions(pull->header);
  // What this follower has not heard of yet may well exist, or have other permissions by now. Only
  // brokerPermission is its own.
  if (refusal && refusal.forbidden_type != kForbiddenHere && !Leads()) {
    AskLeader(pull);
    return;
  }
  if (!refusal) refusal = FindFilter(pull->header, nullptr, &pull->filter);
  // The consumer's heartbeat may not have come here since this peer was started.
  if (refusal.code == remoting::kSubscriptionNotExist && context_.peer_members != nullptr &&
      context_.peer_members->young()) {
    context_.peer_members->AskSubscription(
        GroupName(pull->header.consumer_group), pull->queue.topic,
        [this, pull](SubscriptionPtr known) {
          Begin(pull, FindFilter(pull->header, std::move(known), &pull->filter));
        });
    return;
  }
  Begin(pull, std::move(refusal));
}

void PullProcessor::Begin(const PullPtr& pull, Refusal refusal) {
  if (refusal) {
    Refuse(*pull, refusal);
    return;
  }
  if ((pull->header.sys_flag & kSuspendBit) != 0) {
    const std::chrono::milliseconds hold =
        context_.config.long_polling ? std::chrono::milliseconds(std::clamp<std::int64_t>(
                                           pull->header.suspend_timeout_ms, 0, kHoldMax.count()))
                                     : context_.config.short_polling.get();
    pull->hold_until = pull->request->arrived + hold;
  } else {
    pull->hold_until = pull->request->arrived;
  }
  CommitOffset(*pull);
  Examine(pull);
}

// After a reset the consumer's next pull goes where the reset says (admin.md §6.2).
bool PullProcessor::AnswerReset(const Pull& pull) {
  const auto target = context_.resets->Take(GroupName(pull.header.consumer_group), pull.queue,
                                            context_.clock.MonoNow());
  if (!target || *target == pull.from) return false;
  Answer(pull, remoting::kPullOffsetMoved, *target, context_.store.RangeOf(pull.queue),
         "the offset was reset", {});
  return true;
}

Refusal PullProcessor::CheckPermissions(const remoting::PullMessageRequest& header) const {
  const ReplicatedState& state = context_.store.state();
  if ((context_.config.broker_permission & kPermRead) == 0) {
    return {.code = remoting::kNoPermission,
            .remark = "the broker[" + context_.config.broker_ip1 + "] pulling message is forbidden",
            .forbidden_type = kForbiddenHere};
  }
  const auto group = state.FindGroup(GroupName(header.consumer_group));
  if (!group &&
      (!context_.config.auto_create_group || !CheckGroupName(header.consumer_group).ok())) {
    return {.code = remoting::kSubscriptionGroupNotExist,
            .remark = "subscription group [" + header.consumer_group + "] does not exist"};
  }
  if (group && !group->consume_enable) {
    return {.code = remoting::kNoPermission,
            .remark = "subscription group no permission, " + header.consumer_group,
            .forbidden_type = 2};
  }
  const auto topic = state.FindTopic(Topic(header.topic));
  if (!topic) {
    return {.code = remoting::kTopicNotExist,
            .remark = "topic[" + header.topic + "] not exist, apply first please!"};
  }
  if ((topic->perm & kPermRead) == 0) {
    return {.code = remoting::kNoPermission,
            .remark = "the topic[" + header.topic + "] pulling message is forbidden",
            .forbidden_type = 3};
  }
  if (header.queue_id < 0 || header.queue_id >= topic->read_queues) {
    return {.code = remoting::kInvalidParameter,
            .remark = "queueId[" + std::to_string(header.queue_id) + "] is illegal, topic[" +
                      header.topic + "] has " + std::to_string(topic->read_queues) +
                      " read queues"};
  }
  return {};
}

Refusal PullProcessor::FindFilter(const remoting::PullMessageRequest& header,
                                  SubscriptionPtr elsewhere, TagFilter* filter) const {
  std::string expression = header.subscription;
  std::string type = header.expression_type;
  if ((header.sys_flag & kSubscriptionBit) == 0) {
    const GroupName group(header.consumer_group);
    const auto config = context_.store.state().FindGroup(group);
    if (config && !config->consume_broadcast_enable) {
      const auto view = context_.consumers.Find(group);
      if (view && view->message_model == remoting::MessageModel::kBroadcasting) {
        return {
            .code = remoting::kNoPermission,
            .remark = "the consumer group[" + group.value() + "] can not consume by broadcast way",
            .forbidden_type = 4};
      }
    }
    auto subscription = context_.consumers.FindSubscription(group, Topic(header.topic));
    if (subscription == nullptr) subscription = std::move(elsewhere);
    if (subscription == nullptr) {
      return {.code = remoting::kSubscriptionNotExist,
              .remark = "the consumer's subscription not exist, group: " + group.value() +
                        ", topic: " + header.topic};
    }
    if (subscription->sub_version < header.sub_version) {
      return {.code = remoting::kSubscriptionNotLatest,
              .remark = "the consumer's subscription not latest, group: " + group.value()};
    }
    expression = subscription->sub_string;
    type = subscription->expression_type;
  }
  if (!type.empty() && type != "TAG") {
    return {.code = remoting::kSystemError,
            .remark = "The broker does not support consumer to filter message by " + type};
  }
  auto parsed = TagFilter::Parse(expression);
  if (!parsed.ok()) {
    return {.code = remoting::kSubscriptionParseFailed,
            .remark = "parse the consumer's subscription failed: " +
                      std::string(parsed.status().message())};
  }
  *filter = std::move(parsed).value();
  return {};
}

void PullProcessor::CommitOffset(const Pull& pull) const {
  const bool wanted = (pull.header.sys_flag & kCommitBit) != 0 && pull.header.commit_offset >= 0;
  if (!wanted || !Leads()) return;
  if (!context_.store.state().FindGroup(GroupName(pull.header.consumer_group))) return;
  if (context_.resets->Pending(GroupName(pull.header.consumer_group), pull.queue,
                               context_.clock.MonoNow())) {
    return;
  }
  OffsetCommit commit;
  commit.key = {GroupName(pull.header.consumer_group), pull.queue};
  commit.offset = QueueOffset(pull.header.commit_offset);
  context_.offsets.Commit(
      std::move(commit), pull.request->arrived + kCommitBudget,
      [](const Status& status) { IgnoreError(status, "the client commits again every 5 s"); });
}

// Decides by where the pull's offset lies; again after every wake-up.
void PullProcessor::Examine(const PullPtr& pull) {
  if (AnswerReset(*pull)) return;
  const QueueRange range = context_.store.RangeOf(pull->queue);
  if (pull->from < range.min || pull->from > range.max) {
    OnOutOfRange(pull, range);
  } else if (pull->from == range.max) {
    HoldOrAnswer(pull);
  } else if (MustNotSpeak() || (!Leads() && IsOrderly(*pull))) {
    AskLeader(pull);
  } else {
    pull->read_at = context_.clock.MonoNow();
    Fetch(pull, false);
  }
}

bool PullProcessor::IsOrderly(const Pull& pull) const {
  return context_.store.state().HoldsLock(GroupName(pull.header.consumer_group));
}

std::int64_t PullProcessor::SuggestBroker(const Pull& pull, PhysicalOffset position) const {
  if (!context_.config.slave_read || IsOrderly(pull) || position >= MemoryBegin()) return 0;
  const auto group = context_.store.state().FindGroup(GroupName(pull.header.consumer_group));
  return (group ? *group : GroupConfig()).which_broker_when_consume_slowly;
}

PhysicalOffset PullProcessor::MemoryBegin() const {
  if (context_.memory_bytes == 0) return PhysicalOffset(0);
  const std::int64_t limit = context_.memory_bytes / 100 * context_.config.in_memory_percent;
  return PhysicalOffset(context_.store.node().end_position().value() - limit);
}

PullProcessor::Bounds PullProcessor::BoundsOf(const Pull& pull, bool in_memory) const {
  const BrokerConfig& config = context_.config;
  const std::int32_t count = in_memory ? config.max_transfer_count_in_memory.get()
                                       : config.max_transfer_count_on_disk.get();
  const std::int32_t bytes = in_memory ? config.max_transfer_bytes_in_memory.get()
                                       : config.max_transfer_bytes_on_disk.get();
  return {static_cast<std::size_t>(std::clamp(pull.header.max_msg_nums, 1, std::max(1, count))),
          static_cast<std::size_t>(
              std::max(1, std::min(bytes, pull.header.max_msg_bytes.value_or(bytes))))};
}

void PullProcessor::Fetch(const PullPtr& pull, bool on_reader) {
  Batch batch = Collect(*pull, on_reader);
  if (batch.needs_file) {
    const bool taken = context_.store.node().PostReader([this, pull] { Fetch(pull, true); });
    if (!taken) Fail(*pull, remoting::kSystemBusy, "too many reads from files are waiting");
    return;
  }
  if (batch.status.code() == StatusCode::kUnavailable) {
    WaitForRebuild(pull, batch.status);
    return;
  }
  if (!batch.status.ok()) {
    Fail(*pull, remoting::kSystemError, std::string(batch.status.message()));
    return;
  }
  const QueueRange range = context_.store.RangeOf(pull->queue);
  if (batch.messages > 0) {
    context_.stats->NoteGet(pull->queue.topic, pull->header.consumer_group, batch.messages,
                            static_cast<std::int64_t>(batch.body.size()));
    context_.counters.get_messages.fetch_add(batch.messages, std::memory_order_relaxed);
    if (!IsSystemTopic(context_.config, pull->queue.topic.value())) {
      context_.counters.get_user_messages.fetch_add(batch.messages, std::memory_order_relaxed);
    }
    context_.counters.get_bytes.fetch_add(static_cast<std::int64_t>(batch.body.size()),
                                          std::memory_order_relaxed);
    const TimePoint now = context_.clock.MonoNow();
    context_.counters.NoteGet(now, now - pull->read_at);
    Answer(*pull, remoting::kSuccess, batch.next, range, "FOUND", std::move(batch.body),
           SuggestBroker(*pull, batch.last_position));
    return;
  }
  pull->from = batch.next;
  if (pull->held &&
      batch.next >= range.max) {  // what came was not for this one: it goes on waiting
    HoldOrAnswer(pull);
    return;
  }
  Answer(*pull, remoting::kPullRetryImmediately, batch.next, range, "NO_MATCHED_MESSAGE", {});
}

PullProcessor::Batch PullProcessor::Collect(const Pull& pull, bool on_reader) const {
  const MessageStore& store = context_.store;
  const PhysicalOffset memory_begin = MemoryBegin();
  const Bounds in_memory = BoundsOf(pull, true);
  const Bounds on_disk = BoundsOf(pull, false);
  const std::size_t units_max =
      pull.filter.matches_all() ? std::max(in_memory.messages, on_disk.messages) : kScanUnitsMax;
  Batch batch;
  batch.next = pull.from;
  std::vector<QueueUnit> units;
  if (auto now = store.queues().ReadNow(pull.queue, pull.from, units_max); now && !now->empty()) {
    units = std::move(*now);
  } else if (on_reader) {
    auto read = store.queues().Read(pull.queue, pull.from, units_max);
    if (!read.ok()) {
      batch.status = read.status();
      return batch;
    }
    units = std::move(read).value();
  } else {
    batch.needs_file = true;
    return batch;
  }
  if (units.empty()) batch.status = Status::Internal("the index of the queue cannot be read");
  for (const QueueUnit& unit : units) {
    const Bounds& bounds = unit.position >= memory_begin ? in_memory : on_disk;
    if (static_cast<std::size_t>(batch.messages) >= bounds.messages) break;
    if (!pull.filter.Matches(unit.tag_code)) {
      ++batch.next;
      continue;
    }
    LoadedMessage message = store.CachedMessage(unit);
    if (message.record.empty() && on_reader) {
      auto read = context_.store.ReadMessage(unit);
      if (!read.ok() && read.status().code() != StatusCode::kNotFound) {
        if (batch.messages == 0) batch.status = read.status();
        break;
      }
      if (read.ok()) message = std::move(read).value();
      if (message.record.empty()) {  // retention was faster
        ++batch.next;
        continue;
      }
    }
    if (message.record.empty()) {
      // What is in memory is handed out first; the next pull goes to the file.
      batch.needs_file = batch.messages == 0;
      break;
    }
    if (batch.messages > 0 && batch.body.size() + message.record.size() > bounds.bytes) break;
    batch.body += message.record;
    batch.last_position = unit.position;
    ++batch.messages;
    ++batch.next;
  }
  return batch;
}

// What rotted here comes back from the log within moments; another peer has it all the while.
void PullProcessor::WaitForRebuild(const PullPtr& pull, const Status& why) {
  if (!Leads()) {
    AskLeader(pull);
    return;
  }
  const TimePoint now = context_.clock.MonoNow();
  if (pull->patience == TimePoint{}) pull->patience = now + kRebuildPatience;
  const bool waits = now < pull->patience && context_.timers.Schedule(kRebuildPoll, [this, pull] {
    pull->request->connection->Post([this, pull] { Examine(pull); });
  }) != 0;
  if (!waits) Fail(*pull, remoting::kSystemBusy, std::string(why.message()) + "; pull again later");
}

void PullProcessor::OnOutOfRange(const PullPtr& pull, QueueRange range) {
  if (Leads()) {
    AnswerMoved(pull);
    return;
  }
  // Behind the leader, most likely: what is asked for is on its way. Only the leader may say that
  // an offset is wrong (wire.md D2).
  if (pull->from > range.max && context_.clock.MonoNow() < pull->hold_until) {
    HoldOrAnswer(pull);
    return;
  }
  AskLeader(pull);
}

void PullProcessor::AnswerMoved(const PullPtr& pull) {
  context_.reads.Confirm(kConfirmBudget, [this, pull](const Status& confirmed) {
    // Read after the confirmation: everything committed before it is applied.
    const QueueRange range = context_.store.RangeOf(pull->queue);
    if (!confirmed.ok() && !Leads()) {
      OnOutOfRange(pull, range);
      return;
    }
    if (!confirmed.ok()) {
      Answer(*pull, remoting::kPullNotFound, pull->from, range, "LEADER_NOT_CONFIRMED", {});
      return;
    }
    if (pull->from >= range.min && pull->from <= range.max) {
      Examine(pull);
      return;
    }
    if (pull->from < range.min) {
      Answer(*pull, remoting::kPullOffsetMoved, range.min, range, "OFFSET_TOO_SMALL", {});
      return;
    }
    const bool empty = range.max == QueueOffset(0);
    Answer(*pull, remoting::kPullOffsetMoved, range.max, range,
           empty ? "NO_MESSAGE_IN_QUEUE" : "OFFSET_OVERFLOW_BADLY", {});
  });
}

void PullProcessor::HoldOrAnswer(const PullPtr& pull) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(pull->hold_until - context_.clock.MonoNow());
  if (left.count() <= 0) {
    const QueueRange range = context_.store.RangeOf(pull->queue);
    if (MustNotSpeak() || (pull->from > range.max && !Leads())) {
      AskLeader(pull);
      return;
    }
    const bool skipped = pull->from > QueueOffset(pull->header.queue_offset);
    Answer(*pull, skipped ? remoting::kPullRetryImmediately : remoting::kPullNotFound, pull->from,
           range, skipped ? "NO_MATCHED_MESSAGE" : "OFFSET_OVERFLOW_ONE", {});
    return;
  }
  pull->held = true;
  NotePulled(*pull, pull->from);
  // The waking thread is the apply or timer thread: the work is the connection's.
  const bool parked = context_.long_polling->Park(
      pull->queue, pull->from, left, pull->request->connection->id(),
      [this, pull](LongPolling::Reason) {
        pull->request->connection->Post([this, pull] { Examine(pull); });
      });
  if (!parked) {
    Fail(*pull, remoting::kSystemBusy, "too many pulls are held");
    return;
  }
  // It may have come between the look and the parking.
  const QueueOffset max = context_.store.RangeOf(pull->queue).max;
  if (pull->from < max) context_.long_polling->OnArrival(pull->queue, max);
}

// A new pull to the leader in this one's name, without a hold and without a commit.
void PullProcessor::AskLeader(const PullPtr& pull) {
  auto request = std::make_shared<Request>(*pull->request);
  request->command.ext.Set(
      "sysFlag", std::int64_t{pull->header.sys_flag} & ~std::int64_t{kSuspendBit | kCommitBit});
  request->command.ext.Set("queueOffset", pull->from.value());
  request->arrived = context_.clock.MonoNow();
  LeaderGate::Policy policy;
  policy.budget = kLeaderBudget;
  policy.repeatable = true;
  policy.late = [this, pull](const Request& late) {
    remoting::Command response = remoting::Command::ResponseTo(
        late.command, remoting::kPullNotFound, "no leader was found in time");
    remoting::PullMessageResponse header;
    // What is committed here; the offset that is asked for may be too: never less than it.
    const QueueRange range = context_.store.RangeOf(pull->queue);
    header.next_begin_offset = pull->from.value();
    header.min_offset = range.min.value();
    header.max_offset = std::max(pull->from, range.max).value();
    header.Encode(&response.ext);
    return response;
  };
  context_.gate.Route(std::move(request), pull->reply, std::move(policy),
                      [this](RequestPtr again, Reply reply) {
                        if (Leads()) {
                          OnPull(again, reply);
                        } else {  // the gate has not heard yet that this peer was deposed
                          reply(NotLeaderResponse(again->command));
                        }
                      });
}

void PullProcessor::NotePulled(const Pull& pull, QueueOffset next) const {
  context_.pulled->Note(pull.header.consumer_group, pull.queue, next,
                        context_.store.node().leader_info().term);
}

void PullProcessor::Answer(const Pull& pull, std::int32_t code, QueueOffset next, QueueRange range,
                           std::string_view remark, std::string body,
                           std::int64_t suggested) const {
  auto& counter =
      code == remoting::kSuccess ? context_.counters.get_found : context_.counters.get_miss;
  counter.fetch_add(1, std::memory_order_relaxed);
  NotePulled(pull, next);
  remoting::Command response =
      remoting::Command::ResponseTo(pull.request->command, code, std::string(remark));
  remoting::PullMessageResponse header;
  header.suggest_which_broker_id = suggested;
  header.next_begin_offset = next.value();
  header.min_offset = range.min.value();
  header.max_offset = range.max.value();
  header.Encode(&response.ext);
  response.body = std::move(body);
  pull.reply(std::move(response));
}

void PullProcessor::Fail(const Pull& pull, std::int32_t code, std::string remark) const {
  context_.counters.get_miss.fetch_add(1, std::memory_order_relaxed);
  pull.reply(remoting::Command::ResponseTo(pull.request->command, code, std::move(remark)));
}

void PullProcessor::Refuse(const Pull& pull, const Refusal& refusal) const {
  context_.counters.get_miss.fetch_add(1, std::memory_order_relaxed);
  remoting::Command response = RefusalResponse(pull.request->command, refusal);
  if (refusal.forbidden_type != 0) response.ext.AddInt("forbiddenType", refusal.forbidden_type);
  pull.reply(std::move(response));
}

}  // namespace triad::broker
