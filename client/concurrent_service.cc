#include "client/concurrent_service.h"

#include <glog/logging.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace triad::client {

namespace {
constexpr std::chrono::milliseconds kAgain{5000};  // what could not be sent back is tried here
constexpr std::chrono::milliseconds kSuspended{100};
}  // namespace

ConcurrentService::ConcurrentService(ConsumerContextPtr context,
                                     MessageListenerConcurrently listener)
    : context_(std::move(context)), listener_(std::move(listener)), retry_(context_.get()) {}

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
  const ConcurrentResult result = CallListener(*batch, &call);
  std::vector<std::int64_t> finished;
  for (const ReceivedMessage& message : *batch) finished.push_back(message.queue_offset);
  if (queue->dropped()) return;
  if (result == ConcurrentResult::kReconsumeLater) {
    Messages failed = SendBack(batch.get(), call);
    for (const ReceivedMessage& message : failed) {
      std::erase(finished, message.queue_offset);
    }
    if (!failed.empty()) {
      SubmitLater(queue, std::make_shared<Messages>(std::move(failed)), kAgain);
    }
  }
  const std::optional<std::int64_t> next = queue->Finish(finished);
  if (next && !queue->dropped()) context_->offsets.Update(queue->queue(), *next, true);
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
