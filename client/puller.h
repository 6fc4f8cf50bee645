// Puller: keeps one pull per queue under way and hands what comes to the consume service.
//
// Asynchronous. Thread: Start on every thread; answers on the remoting client's thread. Bounds: one
// pull per queue; a full ProcessQueue is not pulled for. Source: wire.md §5.

#pragma once

#include <functional>

#include "client/consumer_context.h"
#include "client/pull_request.h"

namespace triad::client {

// Only the tags asked for: the broker compared hashes. Empty `tags` = all.
void KeepTags(const std::vector<std::string>& tags, Messages* messages);

class Puller : public std::enable_shared_from_this<Puller> {
 public:
  // The broker says that the queue's offset is wrong and what is right. On the remoting client's
  // thread.
  using OnOffsetMoved = std::function<void(const ProcessQueuePtr& queue, std::int64_t offset)>;

  Puller(ConsumerContextPtr context, std::shared_ptr<ConsumeService> service,
         OnOffsetMoved on_offset_moved);

  void Start(const ProcessQueuePtr& queue, std::int64_t offset);

 private:
  struct Task {
    ProcessQueuePtr queue;
    std::int64_t next_offset = 0;
    std::int64_t suggested_broker_id = 0;
    int failures = 0;
    TimePoint asked_at{};
  };
  using TaskPtr = std::shared_ptr<Task>;

  void Pull(const TaskPtr& task);
  void PullLater(const TaskPtr& task, std::chrono::milliseconds pause);
  void OnAnswer(const TaskPtr& task, const std::string& address,
                const Result<remoting::Command>& answer);
  void OnFailure(const TaskPtr& task, const std::string& address, const Status& why,
                 std::int32_t code);
  void OnResult(const TaskPtr& task, PullResult result);

  const ConsumerContextPtr context_;
  const std::shared_ptr<ConsumeService> service_;
  const OnOffsetMoved on_offset_moved_;
};

}  // namespace triad::client
