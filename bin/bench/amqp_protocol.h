// AMQP 0-9-1 for the publish and drain loops: RabbitMQ quorum queues with publisher confirms.
//
// Persistent messages through the default exchange to one queue. Owner: one thread. Source: the
// AMQP 0-9-1 specification (frames, methods); RabbitMQ's confirm.select, basic.ack, basic.nack.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bin/bench/drain_loop.h"
#include "bin/bench/publish_loop.h"

namespace triad::bench {

// Deletes `queue` and makes it anew as a quorum queue.
Status MakeQuorumQueue(const std::string& address, const std::string& queue);

class AmqpPublish : public PublishProtocol {
 public:
  AmqpPublish(std::string address, const std::string& queue, std::size_t size);
  Status Open(std::size_t i, Stream* stream) override;
  void Append(std::uint64_t request, Nanos now, std::string* out) override;
  Status Read(Stream* stream, AnswerSink* sink) override;

 private:
  void Confirm(std::uint64_t tag, bool is_multiple, std::string_view error, AnswerSink* sink);

  const std::string address_;
  std::string message_;          // all frames of one message
  std::uint64_t first_ = 0;      // request of this connection's tag 1
  std::uint64_t next_ = 0;       // request
  std::uint64_t lowest_ = 1;     // unconfirmed tag
  std::vector<bool> confirmed_;  // by tag, of this connection
};

class AmqpDrain : public DrainProtocol {
 public:
  AmqpDrain(std::string address, std::string queue);
  Status Open(Stream* stream) override;
  Result<std::uint64_t> Read(Stream* stream) override;

 private:
  const std::string address_;
  const std::string queue_;
  std::uint64_t tag_ = 0;  // of the last delivery
  std::uint64_t acked_ = 0;
  std::uint64_t body_left_ = 0;
};

}  // namespace triad::bench
