// Consumes a topic on several threads until Enter is pressed; messages that hold "fail" are sent
// back and come again later.
//
//   concurrent_consumer 127.0.0.1:9876 [topic] [group] [expression]

#include <cstdio>
#include <string>

#include "triad/push_consumer.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s host:port[;host:port] [topic] [group] [expression]\n", argv[0]);
    return 2;
  }
  triad::client::PushConsumerOptions options;
  options.client.namesrv_address = argv[1];
  options.group = argc > 3 ? argv[3] : "example_concurrent_group";
  options.consume_from = triad::client::ConsumeFrom::kFirstOffset;
  options.threads = 4;

  triad::client::PushConsumer consumer(options);
  triad::client::Status status =
      consumer.Subscribe(argc > 2 ? argv[2] : "ExampleTopic", argc > 4 ? argv[4] : "*");
  consumer.SetListener(triad::client::MessageListenerConcurrently(
      [](const std::vector<triad::client::ReceivedMessage>& messages,
         triad::client::ConcurrentContext*) {
        for (const auto& message : messages) {
          std::printf("%s (delivery %d): %s\n", message.message_id.c_str(),
                      message.reconsume_times + 1, message.body.c_str());
          if (message.body.find("fail") != std::string::npos) {
            return triad::client::ConcurrentResult::kReconsumeLater;
          }
        }
        return triad::client::ConcurrentResult::kSuccess;
      }));
  if (status.ok()) status = consumer.Start();
  if (!status.ok()) {
    std::fprintf(stderr, "cannot start: %s\n", status.ToString().c_str());
    return 1;
  }
  std::printf("consuming; press Enter to leave\n");
  std::getchar();
  consumer.Shutdown();
  return 0;
}
