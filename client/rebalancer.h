// Rebalancer: decides which queues this consumer holds, starts the new ones, releases the others.
//
// Owns one thread, which makes all blocking calls of this work. Thread: Wake, OffsetMoved, Reset
// and Lost on every thread. Bounds: one round at a time; wake-ups are merged. A queue is released
// only when its listener has finished; its offset is committed before its lock is given up.
// Source: wire.md §7.5, §7.7; §6.4 for where to begin.

#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "client/consumer_context.h"
#include "client/puller.h"
#include "client/queue_table.h"

namespace triad::client {

class Rebalancer : public std::enable_shared_from_this<Rebalancer> {
 public:
  // `local_offsets`: where broadcasting begins.
  Rebalancer(ConsumerContextPtr context, std::shared_ptr<QueueTable> table,
             std::shared_ptr<ConsumeService> service,
             std::map<MessageQueue, std::int64_t> local_offsets);
  ~Rebalancer();  // Stop

  void Start();
  void Stop();

  // A round within `delay`.
  void Wake(std::chrono::milliseconds delay);
  // The queue's offset is to become `offset`, on the broker, too; then the queue starts anew.
  void MoveOffset(const ProcessQueuePtr& queue, std::int64_t offset);
  // Somebody else has had the queue's lock: the queue starts anew.
  void Lost(const ProcessQueuePtr& queue);
  // Locks that were renewed while these queues were released: given back, unless they were taken
  // again.
  void Surplus(const std::vector<MessageQueue>& queues);

  // After Stop and after the listeners ended: commits offsets and releases locks.
  void ReleaseAll();

 private:
  struct Move {
    ProcessQueuePtr queue;
    std::optional<std::int64_t> offset;  // nullopt: only start anew
  };

  void Run();
  void Round();
  void DoMoves();
  bool DoMove(const Move& move);
  void GiveSurplusBack();
  void RebalanceTopic(const std::string& topic);
  // nullopt: not known now, keep what we have.
  std::optional<std::vector<MessageQueue>> WantedQueues(const std::string& topic);
  bool ReleaseQueue(const ProcessQueuePtr& queue);
  // False: the broker group does not answer.
  bool CommitBeforeRelease(const ProcessQueuePtr& queue);
  void StartQueues(const std::vector<MessageQueue>& queues);
  std::map<MessageQueue, std::uint64_t> LockNew(const std::vector<MessageQueue>& queues);
  void GiveBack(const std::map<MessageQueue, std::uint64_t>& locked);
  Result<std::int64_t> FindStart(const MessageQueue& queue, bool* stored);
  Result<std::int64_t> StartWithoutOffset(const MessageQueue& queue);

  const ConsumerContextPtr context_;
  const std::shared_ptr<QueueTable> table_;
  const std::shared_ptr<ConsumeService> service_;
  std::shared_ptr<Puller> puller_;  // set by Start
  const std::map<MessageQueue, std::int64_t> local_offsets_;
  bool changed_assignment_ = false;  // in this round

  std::mutex mutex_;  // leaf
  std::condition_variable woken_;
  TimePoint next_round_ = TimePoint::max();
  std::vector<Move> moves_;
  std::set<MessageQueue> surplus_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace triad::client
