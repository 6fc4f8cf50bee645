// OrderlyService: one queue is consumed by one thread at a time, in order, while its lock is held.
//
// Thread: OnMessages on the remoting client's thread; listeners on the pool. Bounds: one task per
// queue. Source: wire.md §7.7.

#pragma once

#include "client/consumer_context.h"
#include "client/retry_sender.h"

namespace triad::client {

class OrderlyService final : public ConsumeService,
                             public std::enable_shared_from_this<OrderlyService> {
 public:
  OrderlyService(ConsumerContextPtr context, MessageListenerOrderly listener);
  void OnMessages(const ProcessQueuePtr& queue, Messages messages) override;

 private:
  void StartIfIdle(const ProcessQueuePtr& queue);
  void StartLater(const ProcessQueuePtr& queue, std::chrono::milliseconds pause);
  void Run(const ProcessQueuePtr& queue);
  // False when the queue has to pause.
  bool ConsumeBatch(const ProcessQueuePtr& queue, Messages batch);
  OrderlyResult CallListener(const Messages& batch, OrderlyContext* call);
  void OnFailure(const ProcessQueuePtr& queue, Messages batch, const OrderlyContext& call);
  void OfferLater(const ProcessQueuePtr& queue, Messages open, const OrderlyContext& call);

  const ConsumerContextPtr context_;
  const MessageListenerOrderly listener_;
  RetrySender retry_;
};

}  // namespace triad::client
