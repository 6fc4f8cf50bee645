// Reads every queue of a topic from its beginning to its present end, and prints what is there.
//
//   pull_consumer 127.0.0.1:9876 [topic]

#include "triad/pull_consumer.h"

#include <cstdio>
#include <string>

namespace {

using triad::client::MessageQueue;
using triad::client::PullConsumer;
using triad::client::Status;

Status Print(PullConsumer* consumer, const MessageQueue& queue) {
  const auto end = consumer->MaxOffset(queue);
  if (!end.ok()) return end.status();
  auto offset = consumer->MinOffset(queue);
  if (!offset.ok()) return offset.status();
  std::int64_t at = *offset;
  while (at < *end) {
    const auto pulled = consumer->Pull(queue, "*", at, 32);
    if (!pulled.ok()) return pulled.status();
    for (const auto& message : pulled->messages) {
      std::printf("queue %d offset %lld: %s\n", queue.queue_id,
                  static_cast<long long>(message.queue_offset), message.body.c_str());
    }
    if (pulled->next_begin_offset == at) break;  // nothing behind it yet
    at = pulled->next_begin_offset;
  }
  return Status::Ok();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s host:port[;host:port] [topic]\n", argv[0]);
    return 2;
  }
  triad::client::PullConsumerOptions options;
  options.client.namesrv_address = argv[1];
  PullConsumer consumer(options);
  Status status = consumer.Start();
  if (status.ok()) {
    const auto queues = consumer.Queues(argc > 2 ? argv[2] : "ExampleTopic");
    status = queues.status();
    if (queues.ok()) {
      for (const MessageQueue& queue : *queues) {
        if (status.ok()) status = Print(&consumer, queue);
      }
    }
  }
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
