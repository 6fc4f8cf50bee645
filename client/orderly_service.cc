#include "client/orderly_service.h"

#include <glog/logging.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace triad::client {

namespace {

constexpr std::chrono::milliseconds kLockCheck{100};
constexpr std::chrono::seconds kRunMax{60};  // then other queues get the thread
constexpr std::chrono::milliseconds kSuspendMin{10};
constexpr std::chrono::milliseconds kSuspendMax{30000};
constexpr std::chrono::milliseconds kOfferAgain{1000};

}  // namespace

OrderlyService::OrderlyService(ConsumerContextPtr context, MessageListenerOrderly listener)
    : context_(std::move(context)), listener_(std::move(listener)), retry_(context_.get()) {}

void OrderlyService::OnMessages(const ProcessQueuePtr& queue, Messages messages) {
  queue->Add(std::move(messages));
  StartIfIdle(queue);
}

void OrderlyService::StartIfIdle(const ProcessQueuePtr& queue) {
  if (context_->stopping || !queue->Claim(MonoNow())) return;
  context_->pool->Submit([self = shared_from_this(), queue] { self->Run(queue); });
}

void OrderlyService::StartLater(const ProcessQueuePtr& queue, std::chrono::milliseconds pause) {
  context_->instance->scheduler().After(
      pause, [self = shared_from_this(), queue] { self->StartIfIdle(queue); });
}

void OrderlyService::Run(const ProcessQueuePtr& queue) {
  const TimePoint begin = MonoNow();
  for (;;) {
    const TimePoint now = MonoNow();
    if (context_->stopping || queue->dropped()) {
      queue->Release();
      return;
    }
    if (context_->suspended || !queue->HasLock(now)) {
      queue->Release();
      StartLater(queue, kLockCheck);
      return;
    }
    if (now - begin > kRunMax) {
      context_->pool->Submit([self = shared_from_this(), queue] { self->Run(queue); });
      return;
    }
    Messages batch = queue->Take(context_->options.consume_batch);
    if (batch.empty()) return;  // and the claim is gone
    if (!ConsumeBatch(queue, std::move(batch))) return;
  }
}

bool OrderlyService::ConsumeBatch(const ProcessQueuePtr& queue, Messages batch) {
  OrderlyContext call;
  call.queue = queue->queue();
  call.fence_token = queue->fence_token();
  const OrderlyResult result = CallListener(batch, &call);
  if (result == OrderlyResult::kSuccess) {
    // Also when the queue is about to go: its offset is committed before its lock is released.
    if (const auto next = queue->Commit()) {
      context_->offsets.Update(queue->queue(), *next, false);
    }
    return true;
  }
  OnFailure(queue, std::move(batch), call);
  return false;
}

OrderlyResult OrderlyService::CallListener(const Messages& batch, OrderlyContext* call) {
  try {
    return listener_(batch, call);
  } catch (const std::exception& error) {  // the listener is not ours: its failure is a failure
    LOG(ERROR) << "the listener of group " << context_->options.group << " threw: " << error.what();
    if (call->failure_reason.empty()) call->failure_reason = error.what();
    return OrderlyResult::kSuspendCurrentQueue;
  }
}

void OrderlyService::OnFailure(const ProcessQueuePtr& queue, Messages batch,
                               const OrderlyContext& call) {
  const int max = context_->max_reconsume_times();
  Messages again;
  Messages open;  // dead letters of unknown outcome: offered again, not consumed once more
  for (ReceivedMessage& message : batch) {
    const bool give_up = max >= 0 && message.reconsume_times >= max;
    if (give_up) {
      const auto [sent, is_open] =
          retry_.SendBack(message, RetrySender::kToDeadLetters, call.failure_reason);
      if (sent.ok()) continue;
      LOG(WARNING) << "message " << message.message_id
                   << " could not be made a dead letter: " << sent
                   << "; it stays in its place and is tried again";
      if (is_open) {
        open.push_back(std::move(message));
        continue;
      }
    }
    ++message.reconsume_times;
    again.push_back(std::move(message));
  }
  const bool pause = !again.empty();
  queue->PutBack(std::move(again));
  if (!open.empty()) {
    OfferLater(queue, std::move(open), call);
    return;
  }
  if (const auto next = queue->Commit()) context_->offsets.Update(queue->queue(), *next, false);
  if (!pause) {
    context_->pool->Submit([self = shared_from_this(), queue] { self->Run(queue); });
    return;
  }
  const auto wanted =
      call.suspend.count() >= 0 ? call.suspend : context_->options.suspend_current_queue;
  const auto suspend = std::clamp(wanted, kSuspendMin, kSuspendMax);
  queue->Pause(MonoNow() + suspend);
  StartLater(queue, suspend + std::chrono::milliseconds(1));
}

// The queue stays claimed: nothing behind them is consumed, nor committed.
void OrderlyService::OfferLater(const ProcessQueuePtr& queue, Messages open,
                                const OrderlyContext& call) {
  context_->instance->scheduler().After(
      kOfferAgain, [self = shared_from_this(), queue, open = std::move(open), call] {
        self->context_->pool->Submit([self, queue, open, call]() mutable {
          if (!self->context_->stopping && !queue->dropped() && queue->HasLock(MonoNow())) {
            self->OnFailure(queue, std::move(open), call);
            return;
          }
          queue->PutBack(std::move(open));
          self->Run(queue);
        });
      });
}

}  // namespace triad::client
