// ConcurrentService: messages are consumed by many threads at once; failures go back to the broker.
//
// Thread: OnMessages on the remoting client's thread; listeners on the pool. Bounds: the process
// queues' flow control. Source: wire.md §7.8.

#pragma once

#include "client/consume_watch.h"
#include "client/consumer_context.h"
#include "client/retry_sender.h"

namespace triad::client {

class ConcurrentService final : public ConsumeService,
                                public std::enable_shared_from_this<ConcurrentService> {
 public:
  ConcurrentService(ConsumerContextPtr context, MessageListenerConcurrently listener);
  void OnMessages(const ProcessQueuePtr& queue, Messages messages) override;

 private:
  using BatchPtr = std::shared_ptr<Messages>;
  void Submit(const ProcessQueuePtr& queue, BatchPtr batch);
  void SubmitLater(const ProcessQueuePtr& queue, BatchPtr batch, std::chrono::milliseconds pause);
  void Run(const ProcessQueuePtr& queue, const BatchPtr& batch);
  ConcurrentResult CallListener(const Messages& batch, ConcurrentContext* call);
  // What did not go back, and leaves *batch.
  struct Left {
    Messages refused;  // for certain: consumed here again
    Messages open;     // the broker may have them: offered again, as one more delivery would be one
                       // too many
  };
  Left SendBack(Messages* batch, const ConcurrentContext& call);
  void GiveBack(const ProcessQueuePtr& queue, const BatchPtr& batch, const ConcurrentContext& call);
  // On the watch's thread: what went back.
  std::set<std::int64_t> GiveUp(const ProcessQueuePtr& queue, Messages late);
  void Finish(const ProcessQueuePtr& queue, const std::vector<std::int64_t>& offsets);

  const ConsumerContextPtr context_;
  const MessageListenerConcurrently listener_;
  RetrySender retry_;
  std::unique_ptr<ConsumeWatch> watch_;  // null: listeners may take as long as they like; last
};

}  // namespace triad::client
