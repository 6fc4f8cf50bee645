// LockKeeper: renews the queue locks of an orderly consumer.
//
// Owns one thread, since it must be on time whatever the rebalancer waits for. A lock that somebody
// else had in between (another fencing token, or refused) is reported as lost: what was pulled
// under it is worthless. One that was renewed beside its release is left to the rebalancer, who may
// have taken the queue again meanwhile. Bounds: one request per broker group at a time. Source:
// wire.md §7.6.

#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "client/consumer_context.h"
#include "client/queue_table.h"

namespace triad::client {

class LockKeeper {
 public:
  using OnLost = std::function<void(const ProcessQueuePtr&)>;
  using OnSurplus = std::function<void(std::vector<MessageQueue>)>;

  // `table` outlives this object. Both are called on the keeper's thread.
  LockKeeper(ConsumerContextPtr context, QueueTable* table, OnLost on_lost, OnSurplus on_surplus);
  ~LockKeeper();  // Stop
  void Stop();

 private:
  void Run();
  // False when a broker group did not answer.
  bool RenewAll();
  // `asked_at`: when the locks in `held` were asked for. True when the queue was released while we
  // asked: the lock that we got again must be given back.
  bool Judge(const ProcessQueuePtr& queue, const std::map<MessageQueue, std::uint64_t>& held,
             TimePoint asked_at);

  const ConsumerContextPtr context_;
  QueueTable* const table_;
  const OnLost on_lost_;
  const OnSurplus on_surplus_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace triad::client
