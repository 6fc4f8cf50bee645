// Sender: brings one message (or batch) into a queue, through failures, within its time.
//
// Asynchronous: no thread waits. After a failure the route is fetched anew and the next attempt
// goes to another peer, which forwards; so a failover costs the election. Thread: safe on every
// thread; callbacks on the instance's threads. Bounds: one request in flight per task; a deadline
// and a number of attempts per task; how many tasks there are is the caller's affair.
// Source: wire.md §2.1, §4.4; architecture.md §5.

#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "client/client_instance.h"
#include "remoting/headers.h"

namespace triad::client {

struct SendAnswer {
  remoting::SendMessageResponse header;
  MessageQueue queue;
};

struct SendTask {
  remoting::SendMessageRequest header;  // topic, group, flags, properties; queue and time by Sender
  std::string body;
  // The queue: fixed, or picked once from the topic's queues, or (both empty) any, a new one at
  // every attempt.
  std::optional<MessageQueue> queue;
  std::function<std::size_t(const std::vector<MessageQueue>&)> pick;
  std::chrono::milliseconds timeout{10000};
  int attempts_max = 51;
  std::function<void(Result<SendAnswer>)> done;  // exactly once
};

// What to do with an answer; pure.
enum class SendVerdict { kStored, kRetry, kRetryFewTimes, kFailed };
SendVerdict JudgeSend(std::int32_t code);
// How long to wait before attempt number `next` (the first one is 1).
std::chrono::milliseconds RetryPause(int next, bool connection_failed);

class Sender {
 public:
  // `instance` outlives this object.
  explicit Sender(ClientInstance* instance) : instance_(instance) {}
  ~Sender();  // Close

  void Send(SendTask task);
  // One attempt without an answer.
  Status SendOneway(SendTask task);
  // From now on unfinished tasks fail with kCancelled at their next step; waits for them.
  void Close();

 private:
  class Run;
  void Begin();
  void End();

  ClientInstance* const instance_;
  std::atomic<bool> closing_ = false;
  std::atomic<std::uint32_t> next_queue_{0};
  std::mutex mutex_;  // leaf
  std::condition_variable idle_;
  std::size_t running_ = 0;
};

}  // namespace triad::client
