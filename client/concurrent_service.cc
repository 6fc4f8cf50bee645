#include "client/concurrent_service.h"

#include <glog/logging.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace triad::client {

namespace {
constexpr std::chrono::milliseconds kAgain{5000};  // what could not be sent back is tried here
constexpr std::chrono::milliseconds kSuspended{100};
constexpr int kLateLevel = 3;  // of a message that its listener did not finish in time
}  // namespace

ConcurrentService::ConcurrentService(ConsumerContextPtr context,
                                     MessageListenerConcurrently listener)
    : context_(std::move(context)), listener_(std::move(listener)), retry_(context_.get()) {
  const auto limit = context_->options.consume_timeout;
  if (limit.count() <= 0 || !context_->clustering()) return;
  watch_ =
      std::make_unique<ConsumeWatch>(limit, [this](const ProcessQueuePtr& queue, Messages late) {
        return GiveUp(queue, std::move(late));
      });
}

void ConcurrentService::OnMessages(const ProcessQueuePtr& queue, Messages messages) {
  queue->Track(messages);
  const std::size_t size = context_->options.consume_batch;
  for (std::size_t begin = 0; begin < messages.size(); begin += size) {
    const std::size_t end = std::min(begin + size, messages.size());
    auto batch = std::make_shared<Messages>();
    for (std::size_t i = begin; i < end; ++i) batch->push_back(std::move(messages[i]));
    Submit(queue, std::move(batch));
  }
}

void ConcurrentService::Submit(const ProcessQueuePtr& queue, BatchPtr batch) {
  context_->pool->Submit(
      [self = shared_from_this(), queue, batch = std::move(batch)] { self->Run(queue, batch); });
}

void ConcurrentService::SubmitLater(const ProcessQueuePtr& queue, BatchPtr batch,
                                    std::chrono::milliseconds pause) {
  context_->instance->scheduler().After(
      pause, [self = shared_from_this(), queue, batch = std::move(batch)]() mutable {
        self->Submit(queue, std::move(batch));
      });
}

void ConcurrentService::Run(const ProcessQueuePtr& queue, const BatchPtr& batch) {
  if (context_->stopping || queue->dropped()) return;  // they come again to whoever is next
  if (context_->suspended) {
    SubmitLater(queue, batch, kSuspended);
    return;
  }
  ConcurrentContext call;
  call.queue = queue->queue();
  const std::uint64_t watched = watch_ ? watch_->Begin(queue, *batch) : 0;
  const ConcurrentResult result = CallListener(*batch, &call);
  if (watch_) {
    const std::set<std::int64_t> given_up = watch_->End(watched);
    std::erase_if(*batch, [&](const ReceivedMessage& message) {
      return given_up.contains(message.queue_offset);
    });
  }
  std::vector<std::int64_t> finished;
  for (const ReceivedMessage& message : *batch) finished.push_back(message.queue_offset);
  if (queue->dropped() || finished.empty()) return;
  if (result == ConcurrentResult::kReconsumeLater) {
    Messages failed = SendBack(batch.get(), call);
    for (const ReceivedMessage& message : failed) {
      std::erase(finished, message.queue_offset);
    }
    if (!failed.empty()) {
      SubmitLater(queue, std::make_shared<Messages>(std::move(failed)), kAgain);
    }
  }
  Finish(queue, finished);
}

void ConcurrentService::Finish(const ProcessQueuePtr& queue,
                               const std::vector<std::int64_t>& offsets) {
  const std::optional<std::int64_t> next = queue->Finish(offsets);
  if (next && !queue->dropped()) context_->offsets.Update(queue->queue(), *next, true);
}

std::set<std::int64_t> ConcurrentService::GiveUp(const ProcessQueuePtr& queue, Messages late) {
  ConcurrentContext call;
  call.delay_level = kLateLevel;
  call.failure_reason =
      "not consumed within " + std::to_string(context_->options.consume_timeout.count()) + " ms";
  std::set<std::int64_t> given_up;
  for (const ReceivedMessage& message : late) given_up.insert(message.queue_offset);
  LOG(WARNING) << late.size() << " messages of " << queue->queue().topic << " are with their "
               << "listener for more than " << context_->options.consume_timeout.count()
               << " ms (consume_timeout); they go back to the broker";
  for (const ReceivedMessage& message : SendBack(&late, call)) {
    given_up.erase(message.queue_offset);
  }
  Finish(queue, {given_up.begin(), given_up.end()});
  return given_up;
}

ConcurrentResult ConcurrentService::CallListener(const Messages& batch, ConcurrentContext* call) {
  try {
    return listener_(batch, call);
  } catch (const std::exception& error) {  // the listener is not ours: its failure is a failure
    LOG(ERROR) << "the listener of group " << context_->options.group << " threw: " << error.what();
    if (call->failure_reason.empty()) call->failure_reason = error.what();
    return ConcurrentResult::kReconsumeLater;
  }
}

Messages ConcurrentService::SendBack(Messages* batch, const ConcurrentContext& call) {
  Messages failed;
  if (!context_->clustering()) {
    LOG(WARNING) << "a broadcasting consumer of group " << context_->options.group << " failed on "
                 << batch->size() << " messages; they are dropped, as broadcasting has no retries";
    return failed;
  }
  for (ReceivedMessage& message : *batch) {
    const Status sent = retry_.SendBack(message, call.delay_level, call.failure_reason);
    if (sent.ok()) continue;
    LOG(WARNING) << "message " << message.message_id << " could not be sent back: " << sent
                 << "; consuming it here again in " << kAgain.count() << " ms";
    ++message.reconsume_times;
    failed.push_back(std::move(message));
  }
  return failed;
}

}  // namespace triad::client
