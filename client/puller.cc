#include "client/puller.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "common/log_rate_limiter.h"
#include "remoting/codes.h"

namespace triad::client {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFullPause{10};
constexpr milliseconds kSuspendedPause{100};
constexpr milliseconds kUnlockedPause{100};
constexpr milliseconds kNoAddressPause{500};
constexpr milliseconds kEmptyPause{20};  // when the broker does not hold an empty pull
constexpr milliseconds kRefusedPause{1000};
constexpr milliseconds kAnswerSlack{10000};  // beyond the hold

}  // namespace

void KeepTags(const std::vector<std::string>& tags, Messages* messages) {
  if (tags.empty()) return;
  std::erase_if(*messages, [&tags](const ReceivedMessage& message) {
    return std::find(tags.begin(), tags.end(), message.tag) == tags.end();
  });
}

Puller::Puller(ConsumerContextPtr context, std::shared_ptr<ConsumeService> service,
               OnOffsetMoved on_offset_moved)
    : context_(std::move(context)),
      service_(std::move(service)),
      on_offset_moved_(std::move(on_offset_moved)) {}

void Puller::Start(const ProcessQueuePtr& queue, std::int64_t offset) {
  auto task = std::make_shared<Task>();
  task->queue = queue;
  task->next_offset = offset;
  Pull(task);
}

void Puller::PullLater(const TaskPtr& task, milliseconds pause) {
  context_->instance->scheduler().After(pause,
                                        [self = shared_from_this(), task] { self->Pull(task); });
}

void Puller::Pull(const TaskPtr& task) {
  const ProcessQueuePtr& queue = task->queue;
  if (context_->stopping || queue->dropped()) return;
  const TimePoint now = MonoNow();
  queue->NotePull(now);
  if (context_->suspended) return PullLater(task, kSuspendedPause);
  if (queue->Full()) return PullLater(task, kFullPause);
  if (context_->orderly && !queue->HasLock(now)) return PullLater(task, kUnlockedPause);
  const std::string address =
      context_->instance->book().PickId(queue->queue().broker_name, task->suggested_broker_id, now);
  if (address.empty()) {
    context_->instance->routes().RefreshSoon(queue->queue().topic);
    return PullLater(task, kNoAddressPause);
  }
  PullQuestion question;
  question.group = context_->options.group;
  question.queue = queue->queue();
  question.expression = context_->subscriptions.at(queue->queue().topic).expression;
  question.sub_version = context_->sub_version;
  question.offset = task->next_offset;
  question.max_messages = context_->options.pull_batch;
  question.hold = context_->options.pull_hold;
  task->asked_at = now;
  context_->instance->remoting().Call(
      address, EncodePull(question), question.hold + kAnswerSlack,
      [self = shared_from_this(), task, address](const Result<remoting::Command>& answer) {
        self->OnAnswer(task, address, answer);
      });
}

void Puller::OnAnswer(const TaskPtr& task, const std::string& address,
                      const Result<remoting::Command>& answer) {
  if (context_->stopping || task->queue->dropped()) return;
  if (!answer.ok()) {
    OnFailure(task, address, answer.status(), -1);
    return;
  }
  Result<PullAnswer> decoded = DecodePull(*answer, task->queue->queue(), address);
  if (!decoded.ok()) {
    OnFailure(task, address, decoded.status(), answer->code);
    return;
  }
  context_->instance->book().NoteSuccess(address);
  task->failures = 0;
  task->suggested_broker_id = decoded->suggested_broker_id;
  OnResult(task, std::move(decoded->result));
}

void Puller::OnFailure(const TaskPtr& task, const std::string& address, const Status& why,
                       std::int32_t code) {
  static LogRateLimiter lines(std::chrono::seconds(5));
  ++task->failures;
  task->suggested_broker_id = 0;
  if (auto suppressed = lines.Allow(MonoNow())) {
    LOG(WARNING) << "pull of " << task->queue->queue().topic << " queue "
                 << task->queue->queue().queue_id << " at " << address << " failed: " << why
                 << SuppressedNote(*suppressed);
  }
  if (why.code() == StatusCode::kUnavailable || why.code() == StatusCode::kTimedOut) {
    context_->instance->book().NoteFailure(address, MonoNow());
    context_->instance->routes().RefreshSoon(task->queue->queue().topic);
    const int doublings = std::min(task->failures - 1, 5);
    return PullLater(task, milliseconds(std::min(1000, 20 << doublings)));
  }
  if (code == remoting::kSubscriptionNotExist || code == remoting::kSubscriptionNotLatest ||
      code == remoting::kSubscriptionGroupNotExist) {
    context_->instance->HeartbeatSoon();
  }
  if (code == remoting::kFlowControl) return PullLater(task, kEmptyPause);
  PullLater(task, kRefusedPause);
}

void Puller::OnResult(const TaskPtr& task, PullResult result) {
  const ProcessQueuePtr& queue = task->queue;
  if (result.status == PullStatus::kOffsetIllegal) {
    queue->Drop();
    on_offset_moved_(queue, result.next_begin_offset);
    return;
  }
  const bool progress = result.next_begin_offset != task->next_offset;
  task->next_offset = result.next_begin_offset;
  if (result.status == PullStatus::kFound) {
    KeepTags(context_->subscriptions.at(queue->queue().topic).tags, &result.messages);
    if (!result.messages.empty()) service_->OnMessages(queue, std::move(result.messages));
  }
  if (queue->cached_messages() == 0) {
    context_->offsets.Update(queue->queue(), task->next_offset, true);  // all before was skipped
  }
  if (!progress && MonoNow() - task->asked_at < kEmptyPause) return PullLater(task, kEmptyPause);
  Pull(task);
}

}  // namespace triad::client
