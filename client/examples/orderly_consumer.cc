// Consumes a topic queue by queue, each in order, until Enter is pressed. Start several of them
// with one group: they share the queues.
//
//   orderly_consumer 127.0.0.1:9876 [topic] [group]

#include <cstdio>
#include <string>

#include "triad/push_consumer.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s host:port[;host:port] [topic] [group]\n", argv[0]);
    return 2;
  }
  triad::client::PushConsumerOptions options;
  options.client.namesrv_address = argv[1];
  options.group = argc > 3 ? argv[3] : "example_orderly_group";
  options.consume_from = triad::client::ConsumeFrom::kFirstOffset;
  options.max_reconsume_times = 3;  // then the message goes to %DLQ%group and the queue moves on

  triad::client::PushConsumer consumer(options);
  triad::client::Status status = consumer.Subscribe(argc > 2 ? argv[2] : "ExampleTopic");
  consumer.SetListener(triad::client::MessageListenerOrderly(
      [](const std::vector<triad::client::ReceivedMessage>& messages,
         triad::client::OrderlyContext* context) {
        for (const auto& message : messages) {
          std::printf("queue %d offset %lld fence %llu: %s\n", message.queue.queue_id,
                      static_cast<long long>(message.queue_offset),
                      static_cast<unsigned long long>(context->fence_token), message.body.c_str());
        }
        // kSuspendCurrentQueue would deliver the same messages again, and hold those behind them.
        return triad::client::OrderlyResult::kSuccess;
      }));
  if (status.ok()) status = consumer.Start();
  if (!status.ok()) {
    std::fprintf(stderr, "cannot start: %s\n", status.ToString().c_str());
    return 1;
  }
  std::printf("consuming; press Enter to leave\n");
  std::getchar();
  consumer.Shutdown();  // commits offsets and releases the queues
  return 0;
}
