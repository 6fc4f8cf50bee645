// NATS JetStream for the publish and drain loops: a publish with a reply subject, the stream's
// acknowledgement on it; a pull consumer for reading.
//
// Owner: one thread. Source: the NATS client protocol (docs.nats.io): PUB, SUB, MSG, PING, PONG.

#pragma once

#include <string>
#include <string_view>

#include "bin/bench/drain_loop.h"
#include "bin/bench/publish_loop.h"

namespace triad::bench {

class NatsPublish : public PublishProtocol {
 public:
  NatsPublish(std::string address, std::string subject, std::size_t size);
  Status Open(std::size_t i, Stream* stream) override;
  void Append(std::uint64_t request, Nanos now, std::string* out) override;
  Status Read(Stream* stream, AnswerSink* sink) override;

 private:
  const std::string address_;
  const std::string subject_;
  const std::string body_;
};

// Reads stream `stream_name` by its consumer "bench", made before.
class NatsDrain : public DrainProtocol {
 public:
  NatsDrain(std::string address, std::string stream_name);
  Status Open(Stream* stream) override;
  Result<std::uint64_t> Read(Stream* stream) override;

 private:
  void Ask(std::string* out);

  const std::string address_;
  const std::string stream_name_;
  std::uint64_t asked_ = 0;
  std::uint64_t got_ = 0;
};

}  // namespace triad::bench
