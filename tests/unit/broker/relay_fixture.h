// RelayTest: one broker with topic T (one queue) and group g, its clients, and requests of tools.

#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "remoting/bodies.h"
#include "remoting/codes.h"
#include "tests/unit/broker/one_broker.h"

namespace triad::broker {

using remoting::Command;

inline constexpr std::int32_t kVersion = 479;

class RelayTest : public testing::Test {
 protected:
  RelayTest() {
    StateCommand command;
    TopicConfig& topic = command.put_topics.emplace_back();
    topic.name = Topic("T");
    topic.read_queues = topic.write_queues = 1;
    broker_.peer().Apply(command);
  }
  // A consumer of T in group g.
  std::shared_ptr<RecordingConnection> Consumer(const std::string& id,
                                                std::int32_t version = kVersion) {
    const auto connection = broker_.Connect();
    remoting::HeartbeatData data;
    data.client_id = id;
    remoting::ConsumerData& consumer = data.consumers.emplace_back();
    consumer.group_name = "g";
    consumer.subscriptions.emplace_back().topic = "T";
    consumer.subscriptions.back().sub_string = "*";
    Command request = Command::Request(remoting::kHeartBeat);
    request.version = version;
    request.body = data.Encode();
    broker_.dispatcher().OnRequest(connection, std::move(request));
    EXPECT_EQ(connection->Next().code, 0);
    return connection;
  }
  Command RunningInfo(const std::string& client) {
    return broker_.Ask(remoting::kGetConsumerRunningInfo,
                       {{"consumerGroup", "g"}, {"clientId", client}, {"jstackEnable", "true"}});
  }
  Command UpdateOffset(std::int64_t offset) {
    return broker_.Ask(remoting::kUpdateConsumerOffset, {{"consumerGroup", "g"},
                                                         {"topic", "T"},
                                                         {"queueId", "0"},
                                                         {"commitOffset", std::to_string(offset)}});
  }
  std::string QueryOffset() {
    const Command answer = broker_.Ask(remoting::kQueryConsumerOffset,
                                       {{"consumerGroup", "g"}, {"topic", "T"}, {"queueId", "0"}});
    EXPECT_EQ(answer.code, 0) << answer.remark;
    return answer.ext.StringOr("offset", "");
  }
  void Send(int count) {
    std::vector<MessageDraft> drafts(static_cast<std::size_t>(count), Draft("T", 0, "body"));
    broker_.peer().Send(std::move(drafts));
  }

  OneBroker broker_;
};

}  // namespace triad::broker
