// A concurrent push consumer against a small in-memory cluster over loopback sockets.

#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/client/fake_cluster.h"
#include "triad/push_consumer.h"

namespace triad::client {

using remoting::Command;
using std::chrono::milliseconds;

inline ConcurrentResult RefuseOnce(const ReceivedMessage& message) {
  return message.reconsume_times == 0 ? ConcurrentResult::kReconsumeLater
                                      : ConcurrentResult::kSuccess;
}

class ConsumerTest : public testing::Test {
 protected:
  PushConsumerOptions Options(const std::string& instance = {}) {
    PushConsumerOptions options;
    options.client = cluster_.client_options(instance);
    options.group = "g";
    options.consume_from = ConsumeFrom::kFirstOffset;
    options.threads = 4;
    options.offset_commit_interval = milliseconds(20);
    options.rebalance_interval = milliseconds(500);
    return options;
  }

  // Notes every body; `result` decides.
  MessageListenerConcurrently Listener(
      std::function<ConcurrentResult(const ReceivedMessage&)> result = nullptr) {
    return [this, result](const std::vector<ReceivedMessage>& messages, ConcurrentContext*) {
      ConcurrentResult verdict = ConcurrentResult::kSuccess;
      for (const ReceivedMessage& message : messages) {
        if (result) verdict = result(message);
        cluster_.Note([&] {
          bodies_.push_back(message.body);
          messages_.push_back(message);
        });
      }
      return verdict;
    };
  }

  std::unique_ptr<PushConsumer> Start(PushConsumerOptions options,
                                      MessageListenerConcurrently listener,
                                      const std::string& expression = "*") {
    auto consumer = std::make_unique<PushConsumer>(std::move(options));
    EXPECT_TRUE(consumer->Subscribe("T", expression).ok());
    consumer->SetListener(std::move(listener));
    const Status started = consumer->Start();
    EXPECT_TRUE(started.ok()) << started;
    return consumer;
  }

  std::multiset<std::string> Seen() { return {bodies_.begin(), bodies_.end()}; }

  FakeCluster cluster_;
  std::vector<std::string> bodies_;
  std::vector<ReceivedMessage> messages_;
};

}  // namespace triad::client
