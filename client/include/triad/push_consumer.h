// PushConsumer: subscribes to topics and hands messages to a listener; members of a group share the
// queues.
//
// Orderly: one queue is consumed by one thread of one member at a time (queue locks on the broker);
// a failed message is tried again in place. Concurrently: many threads, no locks; a failed message
// comes back later through the broker. Thread: Subscribe and set listeners before Start; all else
// on any thread. Listeners run on the consumer's own threads.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "triad/client_options.h"
#include "triad/message.h"

namespace triad::client {

enum class MessageModel { kClustering, kBroadcasting };
enum class ConsumeFrom {
  kLastOffset,
  kFirstOffset,
  kTimestamp
};  // only for queues without a stored offset

struct PushConsumerOptions {
  ClientOptions client;
  std::string group;
  MessageModel model = MessageModel::kClustering;
  ConsumeFrom consume_from = ConsumeFrom::kLastOffset;
  std::int64_t consume_timestamp_ms = 0;  // for kTimestamp; 0 = half an hour ago
  std::size_t threads = 20;
  std::size_t consume_batch = 1;  // messages per listener call
  std::int32_t pull_batch = 32;
  int max_reconsume_times = -1;               // -1: concurrently 16, orderly unlimited
  std::size_t max_cached_messages = 1000;     // per queue
  std::size_t max_cached_bytes = 100u << 20;  // per queue
  std::chrono::milliseconds suspend_current_queue{
      1000};  // orderly: pause before a failed message is tried again
  // Concurrently: a message that is with its listener for so long goes back to the broker, and its
  // queue moves on. 0: never.
  std::chrono::milliseconds consume_timeout{15 * 60 * 1000};
  std::chrono::milliseconds pull_hold{15000};
  std::chrono::milliseconds rebalance_interval{20000};
  std::chrono::milliseconds lock_interval{20000};
  std::chrono::milliseconds offset_commit_interval{5000};
  std::string
      broadcast_offset_dir;  // broadcasting: offsets are kept in files here; empty = in memory
};

enum class ConcurrentResult { kSuccess, kReconsumeLater };
struct ConcurrentContext {
  MessageQueue queue;
  int delay_level = 0;  // of a failure: 0 = the broker decides (3 + times), -1 = dead letter, > 0
                        // as given. May be changed.
  std::string failure_reason;  // of a failure: goes with the message into the dead letters, at most
                               // 1024 bytes. May be set; an exception's text is taken by itself.
};
enum class OrderlyResult { kSuccess, kSuspendCurrentQueue };
struct OrderlyContext {
  MessageQueue queue;
  // Grows with every new holder of the queue's lock, across consumers and leaders: `... WHERE fence
  // <= ?`. 0 = not offered.
  std::uint64_t fence_token = 0;
  std::chrono::milliseconds suspend{
      -1};  // overrides suspend_current_queue for this failure when >= 0. May be changed.
  std::string failure_reason;  // as ConcurrentContext's
};
using MessageListenerConcurrently = std::function<ConcurrentResult(
    const std::vector<ReceivedMessage>& messages, ConcurrentContext* context)>;
using MessageListenerOrderly = std::function<OrderlyResult(
    const std::vector<ReceivedMessage>& messages, OrderlyContext* context)>;

class PushConsumer {
 public:
  explicit PushConsumer(PushConsumerOptions options);
  ~PushConsumer();  // Shutdown
  PushConsumer(const PushConsumer&) = delete;
  PushConsumer& operator=(const PushConsumer&) = delete;

  // `expression`: "*" or "TagA || TagB". Errors: kInvalidArgument.
  Status Subscribe(const std::string& topic, const std::string& expression = "*");
  void SetListener(MessageListenerConcurrently listener);
  void SetListener(MessageListenerOrderly listener);

  // Errors: kInvalidArgument (no subscription, no listener, bad options), kUnavailable (no name
  // server answers).
  Status Start();
  // Waits for running listeners, commits offsets (acknowledged), releases locks, leaves the group.
  void Shutdown();

  void Suspend();  // no new listener calls
  void Resume();

  // What this member holds now.
  std::vector<MessageQueue> AssignedQueues() const;

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace triad::client
