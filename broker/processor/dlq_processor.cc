#include "broker/processor/dlq_processor.h"

#include <utility>

#include "broker/processor/failure_properties.h"
#include "broker/processor/names.h"
#include "broker/processor/response.h"
#include "broker/processor/send_checks.h"
#include "remoting/codes.h"
#include "remoting/json.h"

namespace triad::broker {
namespace {

constexpr std::string_view kGroupField = "group";
constexpr std::string_view kQueueField = "queueId";
constexpr std::string_view kOffsetField = "queueOffset";
constexpr std::string_view kToField = "to";
// Answers: what became of the dead letter.
constexpr std::string_view kOutcomeField = "outcome";
constexpr std::string_view kSettledBefore = "settled-before";

}  // namespace

TopicQueue DlqProcessor::Settle::queue() const {
  return {Topic(DlqTopicOf(group.value())), queue_id};
}

void DlqProcessor::Register(Dispatcher* dispatcher) {
  auto policy = LeaderGate::For(kBudget, remoting::kServiceNotAvailable);
  policy.repeatable = true;  // the mark makes the second time a no-op
  dispatcher->RegisterForLeader(
      remoting::kDlqProgress, policy,
      [this](RequestPtr request, Reply reply) { OnProgress(request, reply); });
  dispatcher->RegisterForLeader(
      remoting::kDlqReplay, policy,
      [this](RequestPtr request, Reply reply) { OnSettle(request, reply, true); });
  dispatcher->RegisterForLeader(
      remoting::kDlqDrop, policy,
      [this](RequestPtr request, Reply reply) { OnSettle(request, reply, false); });
}

void DlqProcessor::OnProgress(const RequestPtr& request, const Reply& reply) {
  const auto group = request->command.ext.GetString(kGroupField);
  if (!group.ok()) {
    reply(ResponseOf(request->command, group.status()));
    return;
  }
  context_.reads.Confirm(
      kBudget, [this, request, reply, group = GroupName(group.value())](const Status& confirmed) {
        if (!confirmed.ok()) {
          reply(ResponseOf(request->command, confirmed));
          return;
        }
        const ReplicatedState& state = context_.store.state();
        const auto topic = state.FindTopic(Topic(DlqTopicOf(group.value())));
        remoting::JsonWriter writer;
        writer.BeginObject().Key("queues").BeginArray();
        for (std::int32_t id = 0; topic && id < topic->read_queues; ++id) {
          const QueueRange range = context_.store.RangeOf({topic->name, QueueId(id)});
          const auto progress = state.DlqProgressOf(group, QueueId(id));
          writer.BeginObject();
          writer.Key("floor").Int(std::max(progress.floor, range.min).value());
          writer.Key("maxOffset").Int(range.max.value());
          writer.Key("queueId").Int(id);
          writer.Key("settled").BeginArray();
          for (const QueueOffset offset : progress.settled) writer.Int(offset.value());
          writer.EndArray().EndObject();
        }
        writer.EndArray().EndObject();
        reply(SuccessWith(request->command, writer.Take()));
      });
}

void DlqProcessor::OnSettle(const RequestPtr& request, const Reply& reply, bool replay) {
  const remoting::ExtFields& ext = request->command.ext;
  const auto group = ext.GetString(kGroupField);
  const auto queue = ext.GetInt32(kQueueField);
  const auto offset = ext.GetInt64(kOffsetField);
  for (const Status& status : {group.status(), queue.status(), offset.status()}) {
    if (status.ok()) continue;
    reply(ResponseOf(request->command, status));
    return;
  }
  Settle settle{request,
                reply,
                GroupName(group.value()),
                QueueId(queue.value()),
                QueueOffset(offset.value()),
                ext.StringOr(kToField, {}),
                replay,
                context_.store.node().leader_info().term};
  if (Begin(settle)) Read(settle);
}

bool DlqProcessor::Begin(const Settle& settle) {
  const auto refuse = [&](std::int32_t code, const std::string& remark) {
    settle.reply(remoting::Command::ResponseTo(settle.request->command, code, remark));
    return false;
  };
  const QueueRange range = context_.store.RangeOf(settle.queue());
  if (settle.offset < range.min || settle.offset >= range.max) {
    return refuse(remoting::kSystemError,
                  "no dead letter " + std::to_string(settle.offset.value()) + " in queue " +
                      std::to_string(settle.queue_id.value()) + " of group " +
                      settle.group.value() + ", it holds [" + std::to_string(range.min.value()) +
                      ", " + std::to_string(range.max.value()) + ")");
  }
  if (const Status disk = context_.disk.Writable(); !disk.ok() && settle.replay) {
    return refuse(remoting::kServiceNotAvailable, std::string(disk.message()));
  }
  {
    const std::lock_guard hold(mutex_);
    if (!in_flight_.insert(settle.key()).second) {
      return refuse(remoting::kSystemBusy, "this dead letter is being settled right now");
    }
  }
  // After joining: whoever was in flight before has left its mark by now.
  const ReplicatedState& state = context_.store.state();
  if (state.DlqSettled(settle.group, settle.queue_id, settle.offset)) {
    remoting::Command response = Success(settle.request->command);
    response.ext.Set(kOutcomeField, std::string(kSettledBefore));
    Finish(settle, response);
    return false;
  }
  const auto progress = state.DlqProgressOf(settle.group, settle.queue_id);
  if (progress.settled.size() >= kDlqMarksMax &&
      settle.offset > std::max(progress.floor, range.min)) {
    Finish(settle, Status::Unavailable(
                       std::to_string(kDlqMarksMax) +
                       " dead letters behind the oldest open one are settled already; settle the "
                       "oldest ones first (without --key, --topic and --since)"));
    return false;
  }
  return true;
}

void DlqProcessor::Read(const Settle& settle) {
  const bool taken = context_.store.node().PostReader([this, settle] {
    Proposal proposal;
    proposal.command.dlq_marks.push_back(
        {settle.group, settle.queue_id, settle.offset, context_.store.RangeOf(settle.queue()).min});
    if (settle.replay) {
      const auto units = context_.store.queues().Read(settle.queue(), settle.offset, 1);
      if (!units.ok() || units->empty()) {
        Finish(settle, units.ok() ? Status::NotFound("the dead letter is gone") : units.status());
        return;
      }
      const auto loaded = context_.store.ReadMessage(units->front());
      if (!loaded.ok()) {
        Finish(settle, loaded.status());
        return;
      }
      const auto dead = ParseMessage(loaded->record, false);
      auto copy = dead.ok() ? Copy(settle, *dead) : Result<MessageDraft>(dead.status());
      if (!copy.ok()) {
        Finish(settle, copy.status());
        return;
      }
      proposal.messages.push_back(std::move(copy).value());
    }
    Submit(settle, std::move(proposal));
  });
  if (!taken) Finish(settle, Status::Busy("too many reads from files are waiting"));
}

Result<MessageDraft> DlqProcessor::Copy(const Settle& settle, const MessageView& dead) const {
  MessageDraft draft = DraftFrom(dead);
  const bool own_group = settle.to.empty();
  draft.topic = Topic(own_group ? RetryTopicOf(settle.group.value()) : settle.to);
  if (!own_group && IsSendForbidden(settle.to)) {
    return Status::PermissionDenied("topic[" + settle.to + "] takes no messages");
  }
  const auto topic = context_.store.state().FindTopic(draft.topic);
  if (!topic) return Status::NotFound("topic[" + draft.topic.value() + "] does not exist");
  if ((topic->perm & kPermWrite) == 0 || topic->write_queues <= 0) {
    return Status::PermissionDenied("topic[" + draft.topic.value() + "] is not writable");
  }
  draft.queue_id = QueueId(static_cast<std::int32_t>(settle.offset.value() % topic->write_queues));
  draft.reconsume_times = 0;
  ForgetFailure(own_group, &draft.properties);
  return draft;
}

void DlqProcessor::Submit(const Settle& settle, Proposal proposal) {
  // No deadline: a second proposal while the fate of the first is open would replay twice. The
  // asking tool waits as long as it likes and asks again.
  proposal.deadline = TimePoint::max();
  proposal.only_in = settle.term;
  std::string target;
  std::int32_t target_queue = 0;
  if (settle.replay) {
    target = proposal.messages.front().topic.value();
    target_queue = proposal.messages.front().queue_id.value();
  }
  proposal.done = [this, settle, target, target_queue](const AppendOutcome& outcome) {
    if (!outcome.status.ok()) {
      Finish(settle, outcome.status);
      return;
    }
    remoting::Command response = Success(settle.request->command);
    response.ext.Set(kOutcomeField, std::string(settle.replay ? "replayed" : "dropped"));
    if (settle.replay) {
      response.ext.Set("topic", target);
      response.ext.Set(kQueueField, std::int64_t{target_queue});
      response.ext.Set(kOffsetField, outcome.messages.front().queue_offset.value());
      response.ext.Set(
          "msgId", OffsetMessageId(context_.store_host, outcome.messages.front().physical_offset));
    }
    Finish(settle, response);
  };
  context_.store.appender().Submit(std::move(proposal));
}

void DlqProcessor::Finish(const Settle& settle, const Status& status) {
  Finish(settle, ResponseOf(settle.request->command, status));
}

void DlqProcessor::Finish(const Settle& settle, const remoting::Command& response) {
  {
    const std::lock_guard hold(mutex_);
    in_flight_.erase(settle.key());
  }
  settle.reply(response);
}

}  // namespace triad::broker
