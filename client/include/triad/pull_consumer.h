// PullConsumer: reads queues at offsets the caller chooses. No group membership, no locks.
//
// Thread: every method is safe on every thread; calls block.

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "triad/client_options.h"
#include "triad/message.h"

namespace triad::client {

enum class PullStatus { kFound, kNoNewMessage, kNoMatchedMessage, kOffsetIllegal };
struct PullResult {
  PullStatus status = PullStatus::kNoNewMessage;
  std::int64_t next_begin_offset = 0;
  std::int64_t min_offset = 0;
  std::int64_t max_offset = 0;
  std::vector<ReceivedMessage> messages;
};

struct PullConsumerOptions {
  ClientOptions client;
  std::string group = "TOOLS_CONSUMER";
  std::chrono::milliseconds timeout{10000};
};

class PullConsumer {
 public:
  explicit PullConsumer(PullConsumerOptions options);
  ~PullConsumer();
  PullConsumer(const PullConsumer&) = delete;
  PullConsumer& operator=(const PullConsumer&) = delete;

  Status Start();
  void Shutdown();

  Result<std::vector<MessageQueue>> Queues(const std::string& topic);
  // Up to `max_messages` from `offset`. `hold` > 0: waits so long for a first message.
  Result<PullResult> Pull(const MessageQueue& queue, const std::string& expression,
                          std::int64_t offset, int max_messages,
                          std::chrono::milliseconds hold = std::chrono::milliseconds(0));
  // From one particular peer ("ip:port") instead of the leader; for comparing replicas.
  Result<PullResult> PullFrom(const std::string& address, const MessageQueue& queue,
                              const std::string& expression, std::int64_t offset, int max_messages);

  Result<std::int64_t> MinOffset(const MessageQueue& queue);
  Result<std::int64_t> MaxOffset(const MessageQueue& queue);
  Result<std::int64_t> OffsetByTime(const MessageQueue& queue, std::int64_t time_ms);
  // kNotFound: nothing stored.
  Result<std::int64_t> FetchOffset(const MessageQueue& queue);
  Status CommitOffset(const MessageQueue& queue, std::int64_t offset);

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace triad::client
