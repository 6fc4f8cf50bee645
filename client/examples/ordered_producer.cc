// Sends messages of several orders; those of one order arrive in the order they were sent.
//
//   ordered_producer 127.0.0.1:9876 [topic] [messages]

#include <cstdio>
#include <cstdlib>
#include <string>

#include "triad/producer.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s host:port[;host:port] [topic] [messages]\n", argv[0]);
    return 2;
  }
  triad::client::ProducerOptions options;
  options.client.namesrv_address = argv[1];
  options.group = "example_producer";
  const std::string topic = argc > 2 ? argv[2] : "ExampleTopic";
  const int count = argc > 3 ? std::atoi(argv[3]) : 20;

  triad::client::Producer producer(options);
  const triad::client::Status started = producer.Start();
  if (!started.ok()) {
    std::fprintf(stderr, "cannot start: %s\n", started.ToString().c_str());
    return 1;
  }
  for (int i = 0; i < count; ++i) {
    const std::string order = "order-" + std::to_string(i % 5);
    triad::client::Message message;
    message.topic = topic;
    message.tag = "example";
    message.keys = {order};
    message.body = order + " step " + std::to_string(i / 5);
    // Waits until the message is stored, through retries and a change of the leader. A failure
    // here is final; the code says what to do next.
    const auto sent = producer.SendOrdered(message, order);
    if (!sent.ok()) {
      std::fprintf(stderr, "%s: %s\n", message.body.c_str(), sent.status().ToString().c_str());
      return 1;
    }
    std::printf("sent %s to queue %d at offset %lld\n", message.body.c_str(), sent->queue.queue_id,
                static_cast<long long>(sent->queue_offset));
  }
  producer.Shutdown();
  return 0;
}
