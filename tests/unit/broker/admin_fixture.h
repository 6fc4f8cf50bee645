// One broker, asked as clients and tools ask it: topics, groups, offsets.

#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "remoting/bodies.h"
#include "remoting/codes.h"
#include "tests/unit/broker/one_broker.h"

namespace triad::broker {

using remoting::Command;

inline std::string Heartbeat(const std::string& client, const std::string& group,
                             const std::string& topic) {
  remoting::HeartbeatData data;
  data.client_id = client;
  data.producer_groups = {"p"};
  remoting::ConsumerData& consumer = data.consumers.emplace_back();
  consumer.group_name = group;
  remoting::SubscriptionData& subscription = consumer.subscriptions.emplace_back();
  subscription.topic = topic;
  subscription.sub_string = "*";
  return data.Encode();
}

class AdminTest : public testing::Test {
 protected:
  void CreateTopic(const std::string& name, int queues) {
    const Command answer =
        broker_.Ask(remoting::kUpdateAndCreateTopic, {{"topic", name},
                                                      {"defaultTopic", "TBW102"},
                                                      {"readQueueNums", std::to_string(queues)},
                                                      {"writeQueueNums", std::to_string(queues)},
                                                      {"perm", "6"},
                                                      {"topicFilterType", "SINGLE_TAG"},
                                                      {"order", "false"}});
    ASSERT_EQ(answer.code, 0) << answer.remark;
  }
  void CreateGroup(const std::string& name) {
    remoting::SubscriptionGroupConfigBody body;
    body.group_name = name;
    ASSERT_EQ(broker_.Ask(remoting::kUpdateAndCreateSubscriptionGroup, {}, body.Encode()).code, 0);
  }
  void Send(const std::string& topic, std::int32_t queue, int count) {
    std::vector<MessageDraft> drafts;
    for (int i = 0; i < count; ++i) drafts.push_back(Draft(topic, queue, "body"));
    broker_.peer().Send(std::move(drafts));
  }
  Command QueryOffset(const std::string& group, const std::string& topic, int queue,
                      OneBroker::Fields more = {}) {
    OneBroker::Fields fields = {
        {"consumerGroup", group}, {"topic", topic}, {"queueId", std::to_string(queue)}};
    fields.insert(fields.end(), more.begin(), more.end());
    return broker_.Ask(remoting::kQueryConsumerOffset, fields);
  }
  Command UpdateOffset(const std::string& group, const std::string& topic, int queue, int offset) {
    return broker_.Ask(remoting::kUpdateConsumerOffset, {{"consumerGroup", group},
                                                         {"topic", topic},
                                                         {"queueId", std::to_string(queue)},
                                                         {"commitOffset", std::to_string(offset)}});
  }

  // Creates or updates topic T.
  Command SetT(const std::string& attributes, const char* queues = "1") {
    return broker_.Ask(remoting::kUpdateAndCreateTopic, {{"topic", "T"},
                                                         {"defaultTopic", "TBW102"},
                                                         {"readQueueNums", queues},
                                                         {"writeQueueNums", queues},
                                                         {"perm", "6"},
                                                         {"topicFilterType", "SINGLE_TAG"},
                                                         {"order", "false"},
                                                         {"attributes", attributes}});
  }

  OneBroker broker_;
};

}  // namespace triad::broker
