#include "client/sender.h"

#include <glog/logging.h>

#include <algorithm>
#include <future>
#include <utility>

#include "client/broker_calls.h"
#include "remoting/codes.h"

namespace triad::client {

namespace {

constexpr std::chrono::milliseconds kAttempt{3000};  // then another peer may know more
constexpr int kFewTimes = 3;                         // as the Java client, for codes that may pass

remoting::Command Encode(const SendTask& task, const MessageQueue& queue) {
  remoting::SendMessageRequest header = task.header;
  header.queue_id = queue.queue_id;
  header.broker_name = queue.broker_name;
  remoting::Command request = remoting::Command::Request(header.batch ? remoting::kSendBatchMessage
                                                                      : remoting::kSendMessageV2);
  header.EncodeV2(&request.ext);
  request.body = task.body;
  return request;
}

}  // namespace

SendVerdict JudgeSend(std::int32_t code) {
  switch (code) {
    case remoting::kSuccess: return SendVerdict::kStored;
    case remoting::kSystemError:
    case remoting::kSystemBusy:
    case remoting::kServiceNotAvailable:
    case remoting::kFlowControl:
    case remoting::kGoAway:
    case 204:  // NO_BUYER_ID
    case 205:  // NOT_IN_CURRENT_UNIT
      return SendVerdict::kRetry;
    case remoting::kNoPermission:
    case remoting::kTopicNotExist: return SendVerdict::kRetryFewTimes;
    default: return SendVerdict::kFailed;
  }
}

std::chrono::milliseconds RetryPause(int next, bool connection_failed) {
  if (next <= 2 && connection_failed) return std::chrono::milliseconds(0);
  return std::chrono::milliseconds(std::min(200, 20 << std::min(next - 2, 4)));
}

// One task on its way. Steps follow each other; no two run at once.
class Sender::Run : public std::enable_shared_from_this<Run> {
 public:
  Run(Sender* sender, SendTask task)
      : sender_(sender),
        instance_(sender->instance_),
        task_(std::move(task)),
        deadline_(SystemClock().MonoNow() + task_.timeout) {}

  void Attempt();

 private:
  void LookUpRoute();
  bool ChooseQueue(const Route& route);
  void OnAnswer(const std::string& address, const Result<remoting::Command>& answer);
  void Fail(Status why);
  void RetryAfter(std::chrono::milliseconds pause, Status why);
  void Finish(Result<SendAnswer> result);
  std::chrono::milliseconds Left() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ -
                                                                 SystemClock().MonoNow());
  }

  Sender* const sender_;
  ClientInstance* const instance_;
  SendTask task_;
  const TimePoint deadline_;
  std::optional<MessageQueue> queue_;
  int attempts_ = 0;
  int lookups_ = 0;
  bool outcome_unknown_ = false;  // an attempt may have been stored
  Status last_;
};

void Sender::Run::Attempt() {
  if (sender_->closing_) {
    Finish(Status::Cancelled("the producer was shut down before the message was acknowledged"));
    return;
  }
  if (Left().count() <= 0 || attempts_ >= task_.attempts_max) {
    Fail(last_.ok() ? Status::TimedOut("no time was left to send") : last_);
    return;
  }
  const RoutePtr route = instance_->routes().Find(task_.header.topic);
  if (route == nullptr || (route->publish.empty() && !task_.queue)) {
    LookUpRoute();
    return;
  }
  if (!ChooseQueue(*route)) return;
  const std::string address = instance_->book().Pick(queue_->broker_name, SystemClock().MonoNow());
  if (address.empty()) {
    LookUpRoute();
    return;
  }
  ++attempts_;
  instance_->remoting().Call(
      address, Encode(task_, *queue_), std::clamp(Left(), std::chrono::milliseconds(1), kAttempt),
      [self = shared_from_this(), address](const Result<remoting::Command>& answer) {
        self->OnAnswer(address, answer);
      });
}

void Sender::Run::LookUpRoute() {
  ++lookups_;
  instance_->routes().Fetch(
      task_.header.topic, true, [self = shared_from_this()](const Result<RoutePtr>& route) {
        const std::string& topic = self->task_.header.topic;
        if (route.ok() && (!(*route)->publish.empty() || self->task_.queue) &&
            !(*route)->data.broker_datas.empty()) {
          self->lookups_ = 0;
          self->Attempt();
          return;
        }
        Status why =
            route.ok()
                ? Status::PermissionDenied("topic '" + topic + "' has no queue that may be written")
                : route.status();
        const bool may_come = why.code() == StatusCode::kUnavailable;
        if (!may_come && self->lookups_ >= kFewTimes) {
          self->Fail(std::move(why));
          return;
        }
        self->RetryAfter(RetryPause(self->lookups_ + 2, false), std::move(why));
      });
}

bool Sender::Run::ChooseQueue(const Route& route) {
  if (queue_ && (task_.queue || task_.pick)) return true;  // chosen for good
  if (task_.queue) {
    queue_ = task_.queue;
    return true;
  }
  const std::vector<MessageQueue>& queues = route.publish;
  if (task_.pick) {
    const std::size_t index = task_.pick(queues);
    if (index >= queues.size()) {
      Fail(Status::InvalidArgument("the selector returned " + std::to_string(index) + " of " +
                                   std::to_string(queues.size()) + " queues"));
      return false;
    }
    queue_ = queues[index];
    return true;
  }
  const std::string failed_group = queue_ ? queue_->broker_name : std::string();
  for (std::size_t i = 0; i < queues.size(); ++i) {
    queue_ = queues[sender_->next_queue_.fetch_add(1, std::memory_order_relaxed) % queues.size()];
    if (queue_->broker_name != failed_group) break;  // another group, when there is one
  }
  return true;
}

void Sender::Run::OnAnswer(const std::string& address, const Result<remoting::Command>& answer) {
  AddressBook& book = instance_->book();
  if (!answer.ok()) {
    const StatusCode code = answer.status().code();
    if (code == StatusCode::kCancelled || code == StatusCode::kInvalidArgument) {
      Fail(answer.status());
      return;
    }
    const bool busy = code == StatusCode::kBusy;  // our own queue to that peer is full
    if (!busy && !remoting::NeverSent(answer.status())) outcome_unknown_ = true;
    if (!busy) book.NoteFailure(address, SystemClock().MonoNow());
    instance_->routes().RefreshSoon(task_.header.topic);
    RetryAfter(RetryPause(attempts_ + 1, !busy), answer.status());
    return;
  }
  const SendVerdict verdict = JudgeSend(answer->code);
  if (verdict == SendVerdict::kStored) {
    book.NoteSuccess(address);
    Result<remoting::SendMessageResponse> header =
        remoting::SendMessageResponse::Decode(answer->ext);
    if (!header.ok()) {
      Fail(header.status());
      return;
    }
    SendAnswer sent{std::move(*header), *queue_};
    sent.queue.queue_id = sent.header.queue_id;
    Finish(std::move(sent));
    return;
  }
  Status why = StatusOfCode(*answer, "send to topic '" + task_.header.topic + "' at " + address);
  if (verdict == SendVerdict::kFailed ||
      (verdict == SendVerdict::kRetryFewTimes && attempts_ >= kFewTimes)) {
    Fail(std::move(why));
    return;
  }
  if (answer->code == remoting::kSystemError) outcome_unknown_ = true;
  if (answer->code == remoting::kServiceNotAvailable) {
    book.NoteFailure(address, SystemClock().MonoNow());
  }
  instance_->routes().RefreshSoon(task_.header.topic);
  RetryAfter(RetryPause(attempts_ + 1, false), std::move(why));
}

void Sender::Run::RetryAfter(std::chrono::milliseconds pause, Status why) {
  last_ = std::move(why);
  if (Left() <= pause) {
    Fail(last_);
    return;
  }
  instance_->scheduler().After(pause, [self = shared_from_this()] { self->Attempt(); });
}

void Sender::Run::Fail(Status why) {
  if (outcome_unknown_ && why.code() != StatusCode::kTimedOut) {
    why = Status::TimedOut(
        "outcome unknown: an attempt got no answer and the message may be "
        "stored; the last one: " +
        std::string(why.message()));
  }
  Finish(std::move(why));
}

void Sender::Run::Finish(Result<SendAnswer> result) {
  auto done = std::move(task_.done);
  done(std::move(result));
  sender_->End();
}

Sender::~Sender() {
  Close();
}

void Sender::Begin() {
  std::lock_guard hold(mutex_);
  ++running_;
}

void Sender::End() {
  std::lock_guard hold(mutex_);
  CHECK_GT(running_, 0u);
  if (--running_ == 0) idle_.notify_all();
}

void Sender::Send(SendTask task) {
  CHECK(task.done != nullptr);
  task.header.born_timestamp_ms = WallNowMs();
  Begin();
  std::make_shared<Run>(this, std::move(task))->Attempt();
}

Status Sender::SendOneway(SendTask task) {
  const Result<RoutePtr> route = instance_->routes().Get(task.header.topic, true);
  if (!route.ok()) return route.status();
  const std::vector<MessageQueue>& queues = (*route)->publish;
  if (queues.empty()) {
    return Status::PermissionDenied("topic '" + task.header.topic +
                                    "' has no queue that may be written");
  }
  const MessageQueue& queue = queues[next_queue_.fetch_add(1) % queues.size()];
  const std::string address = instance_->book().Pick(queue.broker_name, SystemClock().MonoNow());
  if (address.empty()) return Status::Unavailable("no address of " + queue.broker_name);
  task.header.born_timestamp_ms = WallNowMs();
  auto sent = std::make_shared<std::promise<Status>>();
  instance_->remoting().Oneway(address, Encode(task, queue),
                               [sent](Status status) { sent->set_value(std::move(status)); });
  return sent->get_future().get();
}

void Sender::Close() {
  closing_ = true;
  std::unique_lock hold(mutex_);
  idle_.wait(hold, [this] { return running_ == 0; });
}

}  // namespace triad::client
