// Producer: sends messages; acknowledged means durable on a majority (the broker's default).
//
// Thread: every method is safe on every thread. Async callbacks run on the client's thread and must
// not block. On a failed send or connection the route is refreshed at once and the other peers of
// the group are tried, so a failover costs the election, not a poll interval.

#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "triad/client_options.h"
#include "triad/message.h"

namespace triad::client {

struct ProducerOptions {
  ClientOptions client;
  std::string group = "DEFAULT_PRODUCER";
  std::chrono::milliseconds send_timeout{10000};  // of one send with all its retries
  int retries = 50;                               // attempts after the first, within the timeout
  std::size_t compress_above_bytes = 4096;        // zlib; 0 = never
  std::size_t max_message_bytes = 4u << 20;
  std::size_t max_inflight = 10000;  // async and ordered sends waiting; beyond: kBusy
};

struct SendResult {
  std::string message_id;         // the message's UNIQ_KEY
  std::string offset_message_id;  // where it is stored
  MessageQueue queue;
  std::int64_t queue_offset = 0;
};

class Producer {
 public:
  explicit Producer(ProducerOptions options);
  ~Producer();  // Shutdown
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;

  // Errors: kInvalidArgument (options), kUnavailable (no name server answers).
  Status Start();
  void Shutdown();

  using Callback = std::function<void(Result<SendResult>)>;
  // Picks a queue: index into `queues`, which is sorted and not empty.
  using Selector =
      std::function<std::size_t(const std::vector<MessageQueue>& queues, const Message& message)>;

  // Errors of all sends: kTimedOut (outcome unknown), kUnavailable, kNotFound (topic), kBusy,
  // kInvalidArgument, kPermissionDenied.
  Result<SendResult> Send(Message message);
  Result<SendResult> Send(Message message, const MessageQueue& queue);
  Result<SendResult> Send(Message message, const Selector& selector);
  void SendAsync(Message message, Callback done);
  // Handed to the kernel, nothing more.
  Status SendOneway(Message message);
  // All to one topic and queue, stored together or not at all.
  Result<std::vector<SendResult>> SendBatch(std::vector<Message> messages);

  // Messages of one key go to one queue, in call order: a later one is not sent before the earlier
  // one's fate is known. A send that failed for good fails everything queued behind it for the same
  // key (kCancelled), so order never breaks.
  Result<SendResult> SendOrdered(Message message, const std::string& key);
  void SendOrderedAsync(Message message, const std::string& key, Callback done);

  // The queues a message of `topic` may go to.
  Result<std::vector<MessageQueue>> Queues(const std::string& topic);

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace triad::client
