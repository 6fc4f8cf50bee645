#include "client/concurrent_service.h"

#include <glog/logging.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace triad::client {

namespace {
constexpr std::chrono::milliseconds kAgain{5000};  // what could not be sent back is tried here
constexpr std::chrono::milliseconds kOfferAgain{1000};
constexpr std::chrono::milliseconds kSuspended{100};
constexpr int kLateLevel = 3;  // of a message that its listener did not finish in time

std::vector<std::int64_t> OffsetsOf(const Messages& messages) {
  std::vector<std::int64_t> offsets;
  offsets.reserve(messages.size());
  for (const ReceivedMessage& message : messages) offsets.push_back(message.queue_offset);
  return offsets;
}

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
  if (queue->dropped() || batch->empty()) return;
  if (result == ConcurrentResult::kReconsumeLater) {
    GiveBack(queue, batch, call);
  } else {
    Finish(queue, OffsetsOf(*batch));
  }
}

void ConcurrentService::GiveBack(const ProcessQueuePtr& queue, const BatchPtr& batch,
                                 const ConcurrentContext& call) {
  if (context_->stopping || queue->dropped()) return;
  Left left = SendBack(batch.get(), call);
  Finish(queue, OffsetsOf(*batch));
  if (!left.refused.empty()) {
    SubmitLater(queue, std::make_shared<Messages>(std::move(left.refused)), kAgain);
  }
  if (left.open.empty()) return;
  const auto open = std::make_shared<Messages>(std::move(left.open));
  context_->instance->scheduler().After(kOfferAgain, [self = shared_from_this(), queue, open,
                                                      call] {
    self->context_->pool->Submit([self, queue, open, call] { self->GiveBack(queue, open, call); });
  });
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
  LOG(WARNING) << late.size() << " messages of " << queue->queue().topic << " are with their "
               << "listener for more than " << context_->options.consume_timeout.count()
               << " ms (consume_timeout); they go back to the broker";
  SendBack(&late, call);  // what is left stays with the listener, and is looked at again
  const std::vector<std::int64_t> given_up = OffsetsOf(late);
  Finish(queue, given_up);
  return {given_up.begin(), given_up.end()};
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

ConcurrentService::Left ConcurrentService::SendBack(Messages* batch,
                                                    const ConcurrentContext& call) {
  Left left;
  if (!context_->clustering()) {
    LOG(WARNING) << "a broadcasting consumer of group " << context_->options.group << " failed on "
                 << batch->size() << " messages; they are dropped, as broadcasting has no retries";
    return left;
  }
  Messages gone;
  for (ReceivedMessage& message : *batch) {
    const auto [sent, is_open] = retry_.SendBack(message, call.delay_level, call.failure_reason);
    if (sent.ok()) {
      gone.push_back(std::move(message));
      continue;
    }
    LOG(WARNING) << "message " << message.message_id << " could not be sent back: " << sent
                 << (is_open ? "; sending it back" : "; consuming it here") << " again";
    if (!is_open) ++message.reconsume_times;
    (is_open ? left.open : left.refused).push_back(std::move(message));
  }
  batch->swap(gone);
  return left;
}

}  // namespace triad::client
